/** One server for a file of rows, with registries that live as long as a test. */
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { type DevRegistry, type DevRegistryOptions, startDevRegistry } from "../../src/dev-registry/dev-registry.ts";
import { type Answer, removeFolder, type Server, startServer } from "../e2e/server.ts";
import {
  emptyPage,
  type Script,
  type ScriptedOptions,
  type ScriptedRegistry,
  startScripted,
  wellKnown,
} from "./scripted-registry.ts";

export const key = "CANARY-key-1a2b3c";
export const clientId = "CANARY-client";
export const clientSecret = "CANARY-secret-9z8y";
export const keySetup = { type: "apiKey", apiKey: key };
export const clientSetup = { type: "oauth2", clientId, clientSecret };
export const keyed = { auth: "apikey", apiKey: key } as const;
export const guarded = { auth: "oauth2", clientId, clientSecret } as const;

export interface LogRecord {
  readonly level: string;
  readonly event: string;
  readonly message: string;
}

export interface Site {
  readonly server: Server;
  readonly servers: Server[];
  dev(options?: DevRegistryOptions): Promise<DevRegistry>;
  /** An id of its own, `/d` as definitions, and an empty page there; `document` adds to the advertisement. */
  scripted(
    document?: object,
    scripts?: Readonly<Record<string, Script>>,
    options?: ScriptedOptions,
  ): Promise<ScriptedRegistry>;
  add(remote: { readonly url: string }, auth?: object, path?: string): Promise<Answer>;
  /** Adds and expects it to succeed; answers the id. */
  added(remote: { readonly url: string }, auth?: object, path?: string): Promise<string>;
  browse(id: string, query?: string): Promise<Answer>;
  setAuth(id: string, setup: object): Promise<Answer>;
  getAuth(id: string): Promise<Answer>;
  refresh(id: string): Promise<Answer>;
  /** Log records of registry auth about one registry, in order. */
  records(id: string): LogRecord[];
  /** Their events. */
  events(id: string): string[];
}

let idCount = 0;
/** Unique in the file, and in the log. */
export const newId = (): string => `r${process.pid}-${++idCount}`;

export function openSite(settings: Readonly<Record<string, string>> = {}): Site {
  let server: Server | undefined;
  const servers: Server[] = [];
  const remotes: { close(): Promise<void> }[] = [];
  const current = (): Server => server ?? expect.unreachable("The server is not started");

  beforeAll(async () => {
    server = await startServer({ settings });
  });
  afterEach(async () => {
    await Promise.all(remotes.splice(0).map((remote) => remote.close()));
  });
  afterAll(async () => {
    for (const one of [...servers, current()]) {
      await one.kill();
      await removeFolder(one.folder);
    }
  });

  const site: Site = {
    get server() {
      return current();
    },
    servers,
    async dev(options = {}) {
      const remote = await startDevRegistry({ id: newId(), ...options });
      remotes.push(remote);
      return remote;
    },
    async scripted(document = {}, scripts = {}, options = {}) {
      const advertised = { id: newId(), definitions: { v1: "/d" }, ...document };
      const remote = await startScripted({ [wellKnown]: advertised, "/d": emptyPage, ...scripts }, options);
      remotes.push(remote);
      return remote;
    },
    add: (remote, auth, path = "") =>
      current().post("/registries", { baseUrl: remote.url + path, ...(auth === undefined ? {} : { auth }) }),
    async added(remote, auth, path) {
      const answer = await site.add(remote, auth, path);
      expect(answer.status, answer.text).toBe(201);
      if (auth !== undefined) expect(answer.body.auth, answer.text).toMatchObject({ status: "configured" });
      return answer.body.id;
    },
    browse: (id, query = "") => current().get(`/registries/${id}/definitions${query}`),
    setAuth: (id, setup) => current().post(`/registries/${id}/auth`, setup),
    getAuth: (id) => current().get(`/registries/${id}/auth`),
    refresh: (id) => current().post(`/registries/${id}/refresh`),
    records: (id) => authRecords(current().lines, id),
    events: (id) => site.records(id).map(({ event }) => event),
  };
  return site;
}

/** A line of another form than JSON is not a log record. */
function authRecords(lines: readonly string[], id: string): LogRecord[] {
  return lines
    .filter((line) => line.startsWith("{") && line.includes(`"registryId":"${id}"`))
    .map((line) => JSON.parse(line) as LogRecord)
    .filter(({ event }) => event.startsWith("registry-auth-"));
}

/** Status and code, for one comparison. */
export const told = ({ status, body }: Answer): [number, string | undefined] => [status, body?.code];
export const refusedByUs: [number, string] = [400, "invalid_request"];
export const refused: [number, string] = [400, "refused"];
export const upstreamFailed: [number, string] = [502, "upstream_failed"];
export const notFound: [number, string] = [404, "not_found"];

/** An answer is never ours to blame: an envelope with a code, not 500. */
export function expectEnvelope({ status, body, text }: Answer): void {
  expect(status, text).not.toBe(500);
  expect(body, text).toEqual({ error: expect.any(String), code: expect.any(String) });
}

export const oauthAt = (tokenEndpoint: string, more: object = {}): object => ({
  auth: { type: "oauth2", tokenEndpoint, ...more },
});
export const keyUnder = (name: string, more: object = {}): object => ({ auth: { type: "apiKey", name, ...more } });
export const countOf = (remote: DevRegistry, route: string): number =>
  remote.requests.filter((request) => request.route === route).length;
