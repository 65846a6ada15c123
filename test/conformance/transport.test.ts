/**
 * Where credentials may go: rows about scope (U-103, U-104, R-019 … R-028) and transport (U-98 … U-102, R-018, R-029 … R-033),
 * with a server that may connect to one address beyond loopback, the machine's own, which is not exempt from https.
 *
 * Held elsewhere, word for word:
 *   R-022            test/registries/matrix/matrix.test.ts "no redirect leads a credential astray and none loses it, in at least 600 cells"
 *   test/registries/matrix/urls.test.ts "hand-picked URLs get a credential exactly where they should"
 *   R-029, names     test/registries/matrix/transport.test.ts, its table of what a name resolves to
 *   R-030            test/registries/matrix/transport.test.ts "one thousand browses of a name that changes its address at every look-up leak nothing"
 *   R-031, each row  test/registries/plaintext-exemption.test.ts; below that a server with such a setting does not start
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type Answer, type Server, startRefused, startServer } from "../e2e/server.ts";
import { trustedIdentity } from "../registries/matrix/identity.ts";
import { emptyPage, redirects, type ScriptedRegistry, sends, wellKnown } from "./scripted-registry.ts";
import {
  clientSetup,
  key,
  keySetup,
  keyUnder,
  newId,
  notFound,
  oauthAt,
  openSite,
  refused,
  refusedByUs,
  told,
  upstreamFailed,
} from "./site.ts";

/** Reached over no wire, but not loopback. Machines without network have none; their rows are then left out. */
const elsewhere = Object.values(networkInterfaces())
  .flatMap((list) => list ?? [])
  .find(({ internal, family }) => !internal && family === "IPv4")?.address;
const others = elsewhere === undefined ? [] : [elsewhere];

const identity = trustedIdentity(["127.0.0.1", "localhost", ...others]);
const certificates = mkdtempSync(join(tmpdir(), "troupe-conformance-"));
const certificateFile = join(certificates, "ca.pem");
writeFileSync(certificateFile, identity.cert);
afterAll(() => rmSync(certificates, { recursive: true }));

const settings = {
  NODE_EXTRA_CA_CERTS: certificateFile,
  ...(elsewhere === undefined ? {} : { SERVICE_EGRESS_ALLOWED_CIDRS: `${elsewhere}/32` }),
};
const site = openSite(settings);
const httpsRequired = /^Registry authentication requires https/;

const keyOf = (remote: ScriptedRegistry, path: string): unknown => remote.askedFor(path).at(-1)?.headers["x-k"];

describe("scope", () => {
  it("U-104, R-023 with the base path /a covers /a and what is below, in whole segments and in its case", async () => {
    for (const [path, expected] of [
      ["/a/x", key],
      ["/a", key],
      ["/a/", key],
      ["/a?x=1", key],
      ["/ab", undefined],
      ["/a-evil", undefined],
      ["/A/x", undefined],
      ["/", undefined],
      ["/other/a/x", undefined],
    ] as const) {
      const { pathname } = new URL(path, "http://any");
      const document = { ...keyUnder("X-K"), definitions: { v1: path } };
      const remote = await site.scripted(document, { [pathname]: emptyPage });
      const id = await site.added(remote, keySetup, "a");
      expect((await site.browse(id)).status).toBe(200);
      expect([path, keyOf(remote, pathname)]).toEqual([path, expected]);
    }
  });

  it.each([
    ["/api/../admin", "/admin", undefined],
    ["/api/./../admin", "/admin", undefined],
    ["/api/%2e%2e/admin", "/admin", undefined],
    ["/api/x/../../admin", "/admin", undefined],
    ["/api%2f../admin", "/api%2f../admin", undefined],
    ["/api/..%2fadmin", "/api/..%2fadmin", undefined],
    ["/api/x/../y", "/api/y", key],
    ["y", "/api/y", key],
    ["?q=1", "/api/start", key],
    ["#f", "/api/start", key],
  ])("R-024 is judged after a redirect to %s is resolved", async (location, path, expected) => {
    const remote = await site.scripted(
      { ...keyUnder("X-K"), definitions: { v1: "/api/start" } },
      { [path]: emptyPage },
    );
    const hop = redirects(location);
    remote.script("/api/start", (request, response) =>
      (remote.askedFor("/api/start").length === 1 ? hop : sends(emptyPage))(request, response),
    );
    const id = await site.added(remote, keySetup, "api");
    expect((await site.browse(id)).status).toBe(200);
    const last = remote.asked.at(-1);
    expect([last?.headers["x-k"], remote.askedFor("/api/start")[0]?.headers["x-k"]]).toEqual([expected, key]);
  });

  it.each([301, 302, 303, 307, 308])(
    "U-103, R-019, R-020 ends at a redirect (%i) to another port of the same host, for both methods, and begins again on the way back",
    async (status) => {
      const other = await site.scripted();
      for (const [advertised, setup, header] of [
        [() => keyUnder("X-API-Key"), keySetup, "x-api-key"],
        [(remote: ScriptedRegistry) => oauthAt(`${remote.url}t`), clientSetup, "authorization"],
      ] as const) {
        const remote = await site.scripted({}, { "/t": { access_token: "t" }, "/back": emptyPage });
        remote.script(wellKnown, { id: newId(), definitions: { v1: "/d" }, ...advertised(remote) });
        remote.script("/d", redirects(`${other.url}d`, status));
        const id = await site.added(remote, setup);
        other.script("/d", emptyPage);
        expect((await site.browse(id)).status).toBe(200);
        expect(other.asked.at(-1)?.headers[header]).toBeUndefined();
        other.script("/d", redirects(`${remote.url}back`, status));
        expect((await site.browse(id)).status).toBe(200);
        expect(other.asked.at(-1)?.headers[header]).toBeUndefined();
        expect(remote.asked.at(-1)?.headers[header]).toBe(setup === keySetup ? key : "Bearer t");
      }
    },
  );

  it("R-021 ends at a redirect from https to http, loopback or not", async () => {
    const plain = await site.scripted();
    const remote = await site.scripted(keyUnder("X-K"), {}, { identity });
    const id = await site.added(remote, keySetup);
    for (const host of ["127.0.0.1", ...others]) {
      const target = host === "127.0.0.1" ? plain : await site.scripted({}, {}, { host });
      remote.script("/d", redirects(`${target.url}d`));
      expect((await site.browse(id)).status).toBe(200);
      expect([keyOf(remote, "/d"), target.askedFor("/d").length, keyOf(target, "/d")]).toEqual([key, 1, undefined]);
    }
  });

  it("R-026 user names in a Location never become a header, and are not kept of a base URL", async () => {
    const other = await site.scripted();
    const remote = await site.scripted(keyUnder("X-K"));
    const id = await site.added(remote, keySetup);
    for (const target of [remote, other]) {
      const asked = target.askedFor("/page").length;
      remote.script("/d", redirects(target.url.replace("//", "//u:p@").concat("page")));
      expect(told(await site.browse(id))).toEqual(upstreamFailed);
      expect(target.askedFor("/page")).toHaveLength(asked);
    }
    for (const { headers } of [...remote.asked, ...other.asked]) expect(headers.authorization).toBeUndefined();
    const url = remote.url.replace("//", "//user:PASSWORD-canary@");
    expect(told(await site.add({ url }))).toEqual(refusedByUs);
    expect(site.server.lines.join("\n")).not.toContain("PASSWORD-canary");
  });

  it("R-028 a Location that leads nowhere, round in circles or out of the web is 502 after at most 6 requests", async () => {
    const remote = await site.scripted();
    const id = await site.added(remote);
    for (const [what, script] of [
      ["absent", sends("", 302)],
      ["broken", redirects("http://[bad")],
      ["javascript", redirects("javascript:1")],
      ["file", redirects("file:///x")],
      ["data", redirects("data:,x")],
      ["itself", redirects("/d")],
      ["1 MB", redirects(`/${"x".repeat(1_000_000)}`)],
      ["a loop", redirects("/loop")],
    ] as const) {
      const before = remote.asked.length;
      remote.script("/d", script);
      remote.script("/loop", redirects("/d"));
      const started = performance.now();
      expect([what, ...told(await site.browse(id))]).toEqual([what, ...upstreamFailed]);
      expect(remote.asked.length - before).toBeLessThanOrEqual(6);
      expect(performance.now() - started).toBeLessThan(5_000);
    }
  });
});

describe("transport", () => {
  it("U-100, R-029 plain http to loopback is exempt, however the address is spelled", async () => {
    const remote = await site.scripted(keyUnder("X-K"));
    const { port } = new URL(remote.url);
    for (const host of ["2130706433", "0177.0.0.1", "0x7f.1", "127.1", "localhost"]) {
      remote.script(wellKnown, { id: newId(), definitions: { v1: "/d" }, ...keyUnder("X-K") });
      const answer = await site.server.post("/registries", {
        baseUrl: `http://${host}:${port}/${host}/`,
        auth: keySetup,
      });
      expect([host, answer.status, answer.body.auth?.status]).toEqual([host, 201, "configured"]);
    }
    for (const host of ["127.255.255.254", "::1"]) {
      const far = await site.scripted(keyUnder("X-K"), {}, { host });
      await site.browse(await site.added(far, keySetup));
      expect([host, keyOf(far, "/d")]).toEqual([host, key]);
    }
  });

  for (const host of others) {
    it("U-99, R-029, R-032 plain http beyond loopback is refused at setup in any spelling; without credentials it is read", async () => {
      const remote = await site.scripted(keyUnder("X-K"), {}, { host });
      const { port } = new URL(remote.url);
      const [a = 0, b = 0, c = 0, d = 0] = host.split(".").map(Number);
      const number = ((a * 256 + b) * 256 + c) * 256 + d;
      for (const spelling of [host, `0x${number.toString(16)}`, `${a}.${b}.${c * 256 + d}`, `[::ffff:${host}]`]) {
        const id = newId();
        remote.script(wellKnown, { id, definitions: { v1: "/d" }, ...keyUnder("X-K") });
        const baseUrl = `http://${spelling}:${port}/`;
        const answer = await site.server.post("/registries", { baseUrl, auth: keySetup });
        expect([spelling, ...told(answer)]).toEqual([spelling, ...refused]);
        expect(answer.body.error).toMatch(httpsRequired);
        expect(told(await site.server.get(`/registries/${id}`))).toEqual(notFound);
      }
      const id = await site.added(remote);
      expect((await site.browse(id)).status).toBe(200);
      const set = await site.setAuth(id, keySetup);
      expect(told(set)).toEqual(refused);
      expect(set.body.error).toMatch(httpsRequired);
      expect((await site.getAuth(id)).body.authType).toBeNull();
    });

    it("X5 an oauth2 setup also needs a safe base URL, not only a safe token endpoint", async () => {
      const tokens = await site.scripted({}, { "/t": { access_token: "t" } });
      const remote = await site.scripted(oauthAt(`${tokens.url}t`), {}, { host });
      const answer = await site.add(remote, clientSetup);
      expect(told(answer)).toEqual(refused);
      expect(answer.body.error).toMatch(httpsRequired);
      expect(tokens.askedFor("/t")).toEqual([]);
    });

    it("U-98, R-018 a token endpoint on plain http is refused at setup, https registry or not, and never contacted", async () => {
      const idp = await site.scripted({}, { "/t": { access_token: "t" } }, { host });
      for (const options of [{}, { identity }]) {
        const id = newId();
        const remote = await site.scripted({ id, ...oauthAt(`${idp.url}t`) }, {}, options);
        const answer = await site.add(remote, clientSetup);
        expect(told(answer)).toEqual(refused);
        expect(answer.body.error).toMatch(httpsRequired);
        expect(told(await site.server.get(`/registries/${id}`))).toEqual(notFound);
        await site.added(remote);
        expect(told(await site.setAuth(id, clientSetup))).toEqual(refused);
        expect((await site.getAuth(id)).body.authType).toBeNull();
      }
      expect(idp.asked).toEqual([]);
    });

    it("https carries credentials to any address", async () => {
      const remote = await site.scripted(keyUnder("X-K"), {}, { host, identity });
      expect((await site.browse(await site.added(remote, keySetup))).status).toBe(200);
      expect(keyOf(remote, "/d")).toBe(key);
    });

    it("U-101, U-102, R-018, R-032 an exemption allows setup and use; without it both end in 502 before anything is sent", async () => {
      const exempt = { ...settings, SERVICE_REGISTRY_AUTH_INSECURE_CIDRS: ` ${host}/32 , ,` };
      const first = await startServer({ settings: exempt });
      const [keyedOne, open] = [
        await site.scripted(keyUnder("X-K"), {}, { host }),
        await site.scripted({}, {}, { host }),
      ];
      const idp = await site.scripted({}, { "/t": { access_token: "t", expires_in: 10 } }, { host });
      const guardedOne = await site.scripted(oauthAt(`${idp.url}t`), {}, { identity });
      const add = (remote: ScriptedRegistry, auth?: object): Promise<Answer> =>
        first.post("/registries", { baseUrl: remote.url, auth });
      const ids = [];
      for (const [remote, setup] of [[keyedOne, keySetup], [guardedOne, clientSetup], [open]] as const) {
        const { body } = await add(remote, setup);
        expect(body.auth?.status).toBe(setup === undefined ? undefined : "configured");
        expect((await browseOn(first, body.id)).status).toBe(200);
        ids.push(String(body.id));
      }
      await first.kill();
      const second = await startServer({ folder: first.folder, settings });
      site.servers.push(second);
      const counts = [keyedOne.askedFor("/d").length, idp.asked.length, guardedOne.askedFor("/d").length];
      const [byKey, byToken, anonymous] = await Promise.all(ids.map((id) => browseOn(second, id)));
      for (const answer of [byKey, byToken]) {
        expect([answer?.status, answer?.body.code]).toEqual(upstreamFailed);
        expect(answer?.body.error).toMatch(/requires https.*credentials are not sent over plaintext http/);
      }
      expect(anonymous?.status).toBe(200);
      expect([keyedOne.askedFor("/d").length, idp.asked.length, guardedOne.askedFor("/d").length]).toEqual(counts);
    });
  }

  it("R-031, D7 a range that is none stops the start, and is named", async () => {
    const bad = ["10.77.0.0/33", "10.0.0.0/-1", "10.0.0.0/8.5", "10.0.0.0/", "x/8"];
    const { code, said } = await startRefused({
      settings: { SERVICE_REGISTRY_AUTH_INSECURE_CIDRS: `127.0.0.0/8,${bad.join(",")}` },
    });
    expect(code).toBe(78);
    expect(said).toContain("SERVICE_REGISTRY_AUTH_INSECURE_CIDRS");
    expect(bad.filter((entry) => said.includes(entry)).length).toBeGreaterThan(0);
  });
});

describe("R-033 header names and values", () => {
  it.each([
    "X Key",
    "X-K\r\nX-Evil: 1",
    "X-K:",
    "é",
    "Host",
    "Content-Length",
    "Transfer-Encoding",
    "Connection",
    "Cookie",
    "",
    "   ",
  ])("the advertised name %j is refused at setup, and nothing is stored", async (name) => {
    const remote = await site.scripted(keyUnder(name));
    const id = await site.added(remote);
    expect(told(await site.setAuth(id, keySetup))).toEqual(refused);
    expect((await site.getAuth(id)).body.authType).toBeNull();
    expect((await site.browse(id)).status).toBe(200);
    expect(JSON.stringify(remote.asked)).not.toContain("CANARY");
  });

  it.each(["k\r\nX: 1", "k\nX: 1", "k\u0000", "ké", "", " ", "k".repeat(70_000)])(
    "the key %.20j is refused, and nothing is stored",
    async (apiKey) => {
      const id = await site.added(await site.scripted(keyUnder("X-K")));
      expect(told(await site.setAuth(id, { type: "apiKey", apiKey }))).toEqual(refusedByUs);
      expect((await site.getAuth(id)).body.authType).toBeNull();
    },
  );

  it("U-69, U-71 a name with blanks around it is trimmed, pinned and used; in may be header", async () => {
    const remote = await site.scripted(keyUnder("  X-K  ", { in: "header" }));
    const id = await site.added(remote, keySetup);
    expect((await site.getAuth(id)).body.headerName).toBe("X-K");
    await site.browse(id);
    expect(keyOf(remote, "/d")).toBe(key);
  });
});

const browseOn = (server: Server, id: string): Promise<Answer> => server.get(`/registries/${id}/definitions`);
