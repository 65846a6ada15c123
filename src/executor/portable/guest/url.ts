/**
 * URL and URLSearchParams. Parsing and serialising are the child's own (`host`, JSON text both ways); these classes only hold
 * the parts. Runs inside QuickJS: see bridge.ts.
 */
import type { HostCall } from "./bridge.ts";

export function installUrl(host: HostCall): Record<string, unknown> {
  const { parse, stringify } = JSON;
  type Pair = [name: string, value: string];
  type Parts = Record<string, string>;

  class URLSearchParams {
    #pairs: Pair[] = [];
    #changed: (() => void) | undefined;

    constructor(init: unknown = "") {
      if (typeof init === "object" && init !== null) {
        const iterable = (init as { [Symbol.iterator]?: unknown })[Symbol.iterator];
        if (iterable === undefined)
          this.#pairs = Object.entries(init).map(([name, value]) => [name, String(value).toWellFormed()]);
        else {
          for (const pair of init as Iterable<Iterable<unknown>>) {
            const [name, value, ...rest] = [...pair];
            if (value === undefined || rest.length > 0) throw new TypeError("Each pair must have a name and a value");
            this.#pairs.push([String(name).toWellFormed(), String(value).toWellFormed()]);
          }
        }
      } else this.#pairs = parse(host("params-parse", stringify(String(init))) as string) as Pair[];
    }

    /** The search of a URL: changes are told to it. */
    static attached(search: string, changed: () => void): URLSearchParams {
      const params = new URLSearchParams(search);
      params.#changed = changed;
      return params;
    }

    static replace(params: URLSearchParams, search: string): void {
      params.#pairs = new URLSearchParams(search).#pairs;
    }

    get size(): number {
      return this.#pairs.length;
    }
    append(name: unknown, value: unknown): void {
      this.#pairs.push([String(name).toWellFormed(), String(value).toWellFormed()]);
      this.#changed?.();
    }
    delete(name: unknown, value?: unknown): void {
      this.#pairs = this.#pairs.filter(
        ([key, held]) => key !== String(name) || (value !== undefined && held !== String(value)),
      );
      this.#changed?.();
    }
    get(name: unknown): string | null {
      return this.#pairs.find(([key]) => key === String(name))?.[1] ?? null;
    }
    getAll(name: unknown): string[] {
      return this.#pairs.filter(([key]) => key === String(name)).map(([, value]) => value);
    }
    has(name: unknown, value?: unknown): boolean {
      return this.#pairs.some(([key, held]) => key === String(name) && (value === undefined || held === String(value)));
    }
    set(name: unknown, value: unknown): void {
      const at = this.#pairs.findIndex(([key]) => key === String(name));
      if (at < 0) this.#pairs.push([String(name).toWellFormed(), String(value).toWellFormed()]);
      else {
        const kept = this.#pairs.filter(([key], index) => index === at || key !== String(name));
        (kept[kept.findIndex(([key]) => key === String(name))] as Pair)[1] = String(value).toWellFormed();
        this.#pairs = kept;
      }
      this.#changed?.();
    }
    sort(): void {
      this.#pairs.sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0));
      this.#changed?.();
    }
    forEach(action: (value: string, name: string, params: URLSearchParams) => void, self?: unknown): void {
      for (const [name, value] of this.#pairs) action.call(self, value, name, this);
    }
    *entries(): IterableIterator<Pair> {
      for (const [name, value] of this.#pairs) yield [name, value];
    }
    *keys(): IterableIterator<string> {
      for (const [name] of this.#pairs) yield name;
    }
    *values(): IterableIterator<string> {
      for (const [, value] of this.#pairs) yield value;
    }
    [Symbol.iterator](): IterableIterator<Pair> {
      return this.entries();
    }
    toString(): string {
      return parse(host("params-write", stringify(this.#pairs)) as string) as string;
    }
  }

  // Reached through these constants only: a program sees no statics that the standard does not have.
  const { attached, replace } = URLSearchParams;
  Reflect.deleteProperty(URLSearchParams, "attached");
  Reflect.deleteProperty(URLSearchParams, "replace");

  const ask = (operation: string, value: unknown): Parts | undefined => {
    const answer = host(operation, stringify(value));
    return answer === undefined ? undefined : (parse(answer) as Parts);
  };

  class URL {
    #parts: Parts;
    #params: URLSearchParams | undefined;

    constructor(address: unknown, base?: unknown) {
      const parts = URL.#read(address, base);
      if (parts === undefined) {
        const error = new TypeError("Invalid URL") as TypeError & { code: string };
        error.code = "ERR_INVALID_URL";
        throw error;
      }
      this.#parts = parts;
    }

    static #read(address: unknown, base: unknown): Parts | undefined {
      return ask("url-parse", base === undefined ? [String(address)] : [String(address), String(base)]);
    }
    static canParse(address: unknown, base?: unknown): boolean {
      return URL.#read(address, base) !== undefined;
    }
    static parse(address: unknown, base?: unknown): URL | null {
      return URL.canParse(address, base) ? new URL(address, base) : null;
    }
    static part(url: URL, name: string): string {
      return url.#parts[name] as string;
    }
    static change(url: URL, name: string, value: string): void {
      const parts = ask("url-set", [url.#parts.href, name, value]);
      if (parts === undefined) throw new TypeError("Invalid URL");
      url.#parts = parts;
      if (url.#params !== undefined) replace(url.#params, parts.search as string);
    }

    get searchParams(): URLSearchParams {
      this.#params ??= attached(this.#parts.search as string, () => {
        this.#parts = ask("url-set", [this.#parts.href, "search", String(this.#params)]) as Parts;
      });
      return this.#params;
    }
    toString(): string {
      return this.#parts.href as string;
    }
    toJSON(): string {
      return this.#parts.href as string;
    }
  }

  const { part, change } = URL;
  Reflect.deleteProperty(URL, "part");
  Reflect.deleteProperty(URL, "change");
  const writable = [
    "href",
    "protocol",
    "username",
    "password",
    "host",
    "hostname",
    "port",
    "pathname",
    "search",
    "hash",
  ];
  for (const name of [...writable, "origin"]) {
    const accessor: PropertyDescriptor = {
      configurable: true,
      enumerable: true,
      get(this: URL) {
        return part(this, name);
      },
    };
    if (name !== "origin") {
      accessor.set = function (this: URL, value: unknown) {
        change(this, name, String(value));
      };
    }
    Object.defineProperty(URL.prototype, name, accessor);
  }
  return { URL, URLSearchParams };
}
