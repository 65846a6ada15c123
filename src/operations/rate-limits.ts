/**
 * How often each caller may use each route. Both faces count in the same windows: an operation has one limit, whichever way it is called.
 * Callers are keys by their names; without keys, addresses.
 *
 * Counters are memory of this node: a restart forgets them, and in a cluster each node counts for itself.
 */
import { type Exhaustion, Failure } from "../errors/failure.ts";
import { rateLimitedCallersMax } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import { FixedWindows, type Window, type WindowRule } from "./fixed-windows.ts";

const minuteMs = 60_000;
const perMinute = (limit: number): WindowRule => ({ limit, windowMs: minuteMs });

/** By `METHOD /path`; what is not named has the rule of `*`. */
const defaultRules: Readonly<Record<string, WindowRule>> = {
  "POST /registries": perMinute(30),
  "POST /registries/{id}/refresh": perMinute(30),
  "POST /registries/{id}/auth": perMinute(10),
  "POST /modules": perMinute(30),
  "POST /modules/reload": perMinute(30),
  "POST /modules/{id}/update": perMinute(30),
  "POST /modules/{id}/rollback": perMinute(30),
  "POST /services": perMinute(30),
  "POST /services/{id}/update": perMinute(30),
  "POST /services/{id}/sync": perMinute(30),
};
const everythingElse = perMinute(6_000);

/** `POST /processes=600/60s; *=6000/60s`, or `off` (null). Answers a sentence when it cannot be read. */
export function parseRateLimits(text: string): ReadonlyMap<string, WindowRule> | null | string {
  if (text.trim() === "off") return null;
  const rules = new Map<string, WindowRule>();
  for (const part of text.split(/[;\n]/)) {
    const entry = part.trim();
    if (entry === "") continue;
    const match = /^(\*|[A-Z]+ +\/[^ =]*) *= *([1-9][0-9]{0,8})\/([1-9][0-9]{0,4})s$/.exec(entry);
    if (match === null) return `"${entry}" is not of the form "POST /processes=600/60s", "*=6000/60s" or "off"`;
    const [, route = "", limit, seconds] = match;
    rules.set(normalised(route.replace(/ +/, " ")), { limit: Number(limit), windowMs: Number(seconds) * 1_000 });
  }
  return rules;
}

export class RateLimits {
  readonly #clock: Clock;
  readonly #overrides: ReadonlyMap<string, WindowRule>;
  readonly #routes = new Map<string, RouteLimit>();

  constructor(overrides: ReadonlyMap<string, WindowRule>, clock: Clock) {
    this.#clock = clock;
    this.#overrides = overrides;
  }

  /** `path` with parameters as `{id}` or `:id`. The same route always has the same windows; HEAD counts as GET. */
  ofRoute(method: string, path: string): RouteLimit {
    return this.#named(`${method === "HEAD" ? "GET" : method} ${path}`);
  }

  /** Of a stream the method is GET. */
  ofOperation({ route }: { readonly route: { readonly method?: string; readonly path: string } }): RouteLimit {
    return this.ofRoute(route.method ?? "GET", route.path);
  }

  /** For requests that reach no route, or are refused before their caller is known. */
  get elsewhere(): RouteLimit {
    return this.#named("*");
  }

  /** Overrides that name no route. */
  unknownRoutes(routes: readonly { readonly method: string; readonly path: string }[]): readonly string[] {
    const known = new Set(["*", ...routes.map(({ method, path }) => normalised(`${method} ${path}`))]);
    return [...this.#overrides.keys()].filter((name) => !known.has(name));
  }

  #named(route: string): RouteLimit {
    const name = normalised(route);
    const made = this.#routes.get(name);
    if (made !== undefined) return made;
    const rule = this.#overrides.get(name) ?? rules.get(name) ?? this.#overrides.get("*") ?? everythingElse;
    const windows = new FixedWindows(rule, this.#clock, rateLimitedCallersMax);
    const limit = new RouteLimit(route.replace(/:(\w+)/g, "{$1}"), windows, this.#clock);
    this.#routes.set(name, limit);
    return limit;
  }
}

export class RouteLimit {
  /** `POST /services/{id}/sync`, or `*`. */
  readonly route: string;
  readonly #windows: FixedWindows;
  readonly #clock: Clock;

  constructor(route: string, windows: FixedWindows, clock: Clock) {
    this.route = route;
    this.#windows = windows;
    this.#clock = clock;
  }

  /** Counts one request. Throws Failure rate_limit_exceeded. */
  admit(caller: string): Window {
    const window = this.#windows.count(caller);
    if (window.isExceeded) throw exceeded(window, this.#clock, "Too many requests", this.route);
    return window;
  }
}

export function exceeded(window: Window, clock: Clock, what: string, route?: string): Failure {
  const retryAfterSeconds = Math.max(1, Math.ceil((window.endsAt - clock.monotonic()) / 1_000));
  return new Failure("rate_limit_exceeded", `${what}: try again in ${retryAfterSeconds} s`, {
    exhaustion: {
      limit: window.limit,
      remaining: 0,
      resetAt: window.resetAt,
      retryAfterSeconds,
      ...(route === undefined ? {} : { route }),
    },
  });
}

/** What an answer says of the window it counted in, over whichever face. */
export function quotaHeaders({ limit, remaining, resetAt }: Omit<Exhaustion, "retryAfterSeconds">) {
  return {
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-reset": String(Math.ceil(resetAt)),
  };
}

function normalised(route: string): string {
  return route.replace(/:\w+|\{\w*\}/g, "{}");
}

const rules = new Map(Object.entries(defaultRules).map(([route, rule]) => [normalised(route), rule]));
