/**
 * OAuth rows over REST, where both-faces.test.ts does not have them: what token endpoints answer (R-001 … R-014), who may use
 * which token while credentials change (R-014, R-015, X17), and what a restart keeps (U-107, U-112, R-016).
 *
 * Held elsewhere, word for word:
 *   R-003 (the minute before)  needs a manual clock: lifecycle 1 and 4 in both-faces.test.ts hold the default and the margin
 *   R-007                      test/e2e/registries.test.ts "200 first browses at once share one token request …"
 *   both-faces.test.ts, lifecycle 5 and outcomes of a setup
 *   R-010, first run           test/e2e/registries.test.ts "a token short of 30 s serves the browse that waited for it …"
 *   U-112, U-125, R-016        test/e2e/registries.test.ts "is kept over a restart: no new exchange, and no secret lies readable …"
 */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { startServer } from "../e2e/server.ts";
import { until } from "../until.ts";
import { inTurn, later, redirects, type Script, type ScriptedRegistry, sends, wellKnown } from "./scripted-registry.ts";
import {
  clientId,
  clientSecret,
  clientSetup,
  countOf,
  guarded,
  key,
  keySetup,
  keyUnder,
  newId,
  notFound,
  oauthAt,
  openSite,
  refused,
  told,
  upstreamFailed,
} from "./site.ts";

const site = openSite();

/** A registry with a scripted token endpoint at `/t`. */
async function withTokens(token: Script, more: object = {}): Promise<ScriptedRegistry> {
  const remote = await site.scripted({}, { "/t": token });
  remote.script(wellKnown, { id: newId(), definitions: { v1: "/d" }, ...oauthAt(`${remote.url}t`, more) });
  return remote;
}

const bearerOf = (remote: ScriptedRegistry): string | undefined => remote.askedFor("/d").at(-1)?.headers.authorization;
const formsOf = (remote: ScriptedRegistry): URLSearchParams[] =>
  remote.askedFor("/t").map(({ body }) => new URLSearchParams(body));

describe("token answers", () => {
  it.each([
    ["R-001 digits in quotes", { expires_in: "3600" }, 3_600],
    ["U-97 digits in quotes, 60, by decision 7", { expires_in: "60" }, 60],
    ["U-97, R-003 no lifetime", {}, 3_600],
    ["a null lifetime", { expires_in: null }, 3_600],
    ["a fraction", { expires_in: 90.5 }, 90.5],
    ["a lifetime beyond all reason", { expires_in: 1e300 }, 365 * 24 * 3_600],
  ])("with %s are used for as long as they say", async (_what, more, seconds) => {
    const remote = await withTokens({ access_token: "t1", token_type: "Bearer", ...more });
    const before = Date.now();
    const { body } = await site.add(remote, clientSetup);
    const { tokenExpiresAt } = (await site.getAuth(body.id)).body;
    expect(Number.isSafeInteger(tokenExpiresAt)).toBe(true);
    expect(tokenExpiresAt - before - seconds * 1_000).toBeGreaterThanOrEqual(-1);
    expect(tokenExpiresAt - before - seconds * 1_000).toBeLessThan(10_000);
    for (let turn = 0; turn < 2; turn++) expect((await site.browse(body.id)).status).toBe(200);
    expect(remote.askedFor("/t")).toHaveLength(1);
  });

  it.each([{}, { token_type: "bearer" }, { token_type: "BEARER" }, { token_type: "mac" }, { token_type: 7 }])(
    "R-002, D14 with %j are sent as exactly one Bearer header",
    async (more) => {
      const remote = await withTokens({ access_token: "t1", expires_in: 600, ...more });
      await site.browse(await site.added(remote, clientSetup));
      expect(bearerOf(remote)).toBe("Bearer t1");
    },
  );

  it.each([{ scope: ["a", "b"] }, { scope: "" }, { scope: null }, { scope: "a" }, { id_token: {}, unknown: [1] }])(
    "R-004 with %j leave the scopes that were chosen",
    async (more) => {
      const remote = await withTokens({ access_token: "t1", ...more }, { scopes: [{ id: "a" }, { id: "b" }] });
      const id = await site.added(remote, clientSetup);
      expect((await site.getAuth(id)).body.configuredScopes).toEqual(["a", "b"]);
    },
  );

  it.each<[string, Script]>([
    ["HTML", "<html>login</html>"],
    ["nothing", ""],
    ["a list", []],
    ["null", null],
    ["a token that is a number", { access_token: 123 }],
    ["a token that is empty", { access_token: "" }],
    ["a token with a line break", { access_token: "a\r\nX: 1" }],
    ["an error under 200", { error: "invalid_client" }],
    ["a long text", "x".repeat(5_000)],
    ["more than 64 KiB", JSON.stringify({ access_token: "t" }).padEnd(65 * 1024)],
    ["a lifetime that is a word", { access_token: "t", expires_in: "soon" }],
  ])("R-011 with %s: status error at setup, 502 when browsing, never a bearer header", async (_what, script) => {
    const remote = await withTokens(script);
    const id = await site.added(remote);
    const { status, body, text } = await site.setAuth(id, clientSetup);
    expect([status, body.auth.status]).toEqual([200, "error"]);
    expect(text.length).toBeLessThan(400);
    const browsed = await site.browse(id);
    expect(told(browsed)).toEqual(upstreamFailed);
    expect(browsed.body.error).toBe(body.auth.message);
    expect(remote.askedFor("/d")).toEqual([]);
  });

  it("R-012 that repeat the secret in an error are told by their status only, in answers and in the log", async () => {
    const said = { error: "invalid_client", error_description: `bad secret ${clientSecret} of ${clientId}` };
    const remote = await withTokens(sends(said, 400));
    const id = await site.added(remote);
    const set = await site.setAuth(id, clientSetup);
    expect(set.body.auth.message).toBe("The token endpoint answered with status 400");
    const browsed = await site.browse(id);
    expect(browsed.body.error).toBe("The token endpoint answered with status 400");
    const metrics = await site.server.get("/metrics");
    for (const text of [set.text, browsed.text, metrics.text, site.server.lines.join("\n")]) {
      expect(text).not.toContain("CANARY");
    }
  });

  it.each([301, 302, 303, 307, 308])(
    "R-013 with %i are not followed, to another origin or the same",
    async (status) => {
      const evil = await site.scripted({}, { "/token": { access_token: "t" } });
      for (const location of [`${evil.url}token`, "/other"]) {
        const remote = await withTokens(redirects(location, status));
        const { body } = await site.add(remote, clientSetup);
        expect(body.auth.message).toBe(`The token endpoint answered with status ${status}`);
        expect([evil.asked.length, remote.askedFor("/other").length]).toEqual([0, 0]);
      }
    },
  );

  it("U-95 from a closed port say that it cannot be reached", async () => {
    const closed = await site.scripted();
    const remote = await site.scripted(oauthAt(`${closed.url}t`));
    await closed.close();
    const { status, body } = await site.add(remote, clientSetup);
    expect([status, body.auth.status]).toEqual([201, "error"]);
    expect(body.auth.message).toMatch(/^Cannot reach/);
  });

  it("R-010 that live 31 s are used at once, and fetched anew two seconds later", async () => {
    const remote = await withTokens({ access_token: "t", expires_in: 31 });
    const id = await site.added(remote, clientSetup);
    expect((await site.browse(id)).status).toBe(200);
    expect(remote.askedFor("/t")).toHaveLength(1);
    await sleep(2_000);
    expect((await site.browse(id)).status).toBe(200);
    expect(remote.askedFor("/t")).toHaveLength(2);
  });
});

describe("the request for a token", () => {
  it("R-005 has no scope key, all of them, or the chosen ones; an unknown one is refused before it is made", async () => {
    const scopes = [{ id: "a" }, { id: "b" }, { id: "c" }];
    const plain = await withTokens({ access_token: "t" });
    await site.added(plain, clientSetup);
    expect(formsOf(plain)[0]?.has("scope")).toBe(false);
    const remote = await withTokens({ access_token: "t", expires_in: 10 }, { scopes });
    const id = await site.added(remote, clientSetup);
    await site.browse(id);
    await site.setAuth(id, { ...clientSetup, scopes: ["c", "a"] });
    const answer = await site.setAuth(id, { ...clientSetup, scopes: ["a b"] });
    expect(told(answer)).toEqual(refused);
    expect(answer.body.error).toContain("a b");
    await site.setAuth(id, { ...clientSetup, scopes: [] });
    expect(formsOf(remote).map((form) => form.get("scope"))).toEqual(["a b c", "a b c", "c a", null]);
  });

  it("R-006 carries odd characters encoded once, in the body alone", async () => {
    const odd = { type: "oauth2", clientId: "a:b/c", clientSecret: "p@+w%rd &=é~€\"' " };
    const remote = await withTokens({ access_token: "t" });
    await site.added(remote, odd);
    const [request] = remote.askedFor("/t");
    expect([formsOf(remote)[0]?.get("client_id"), formsOf(remote)[0]?.get("client_secret")]).toEqual([
      odd.clientId,
      odd.clientSecret,
    ]);
    expect(request?.headers["content-type"]).toBe("application/x-www-form-urlencoded");
    expect(request?.headers.authorization).toBeUndefined();
  });
});

describe("credentials that change while a token is being fetched", () => {
  it("a browse that waits for a token when the credentials are deleted goes on without", async () => {
    const { remote, id } = await exchanging(1_500);
    const waiting = site.browse(id);
    await until(() => remote.askedFor("/t").length === 2);
    expect((await site.server.call("DELETE", `/registries/${id}/auth`)).status).toBe(204);
    const answer = await waiting;
    expect([answer.status, answer.text]).toEqual([200, answer.text]);
    expect(bearerOf(remote)).toBeUndefined();
  });

  it("R-015 a browse that waits for a token when another client replaces the old one goes on with its token", async () => {
    const { remote, id } = await exchanging(1_500);
    const waiting = site.browse(id);
    await until(() => remote.askedFor("/t").length === 2);
    expect((await site.setAuth(id, second)).body.auth.status).toBe("configured");
    const answer = await waiting;
    expect([answer.status, answer.text]).toEqual([200, answer.text]);
    expect(bearerOf(remote)).toBe("Bearer tB");
  });

  it("X17 a browse that waits for a token when a key replaces the client goes on with the key", async () => {
    const { remote, id } = await exchanging(1_500);
    const started = performance.now();
    const waiting = site.browse(id);
    await until(() => remote.askedFor("/t").length === 2);
    remote.script(wellKnown, { id: "any", definitions: { v1: "/d" }, ...keyUnder("X-K") });
    expect((await site.setAuth(id, keySetup)).body.auth.status).toBe("configured");
    expect((await site.getAuth(id)).body.tokenExpiresAt).toBeNull();
    const answer = await waiting;
    expect([answer.status, performance.now() - started < 5_000, answer.text]).toEqual([200, true, answer.text]);
    expect(remote.askedFor("/d").at(-1)?.headers["x-k"]).toBe(key);
    expect(bearerOf(remote)).toBeUndefined();
  });

  /** Credentials A with a token that is spent, and an exchange for A that takes so long. */
  async function exchanging(ms: number): Promise<{ remote: ScriptedRegistry; id: string }> {
    const slow = later(ms, { access_token: "late-A", expires_in: 3_600 });
    const remote = await withTokens(inTurn({ access_token: "tA", expires_in: 10 }, slow, { access_token: "tB" }));
    return { remote, id: await site.added(remote, clientSetup) };
  }
  const second = { type: "oauth2", clientId: "second", clientSecret: "other" };

  it("R-014, R-015, X17 a token that comes late for the old ones is dropped", async () => {
    const { remote, id } = await exchanging(500);
    const waiting = site.browse(id);
    await until(() => remote.askedFor("/t").length === 2);
    expect((await site.setAuth(id, second)).body.auth.status).toBe("configured");
    const { tokenExpiresAt } = (await site.getAuth(id)).body;
    await waiting;
    await sleep(700);
    expect((await site.browse(id)).status).toBe(200);
    expect(bearerOf(remote)).toBe("Bearer tB");
    expect((await site.getAuth(id)).body.tokenExpiresAt).toBe(tokenExpiresAt);
    expect(remote.asked.map(({ headers }) => headers.authorization)).not.toContain("Bearer late-A");
  });

  it("R-015 of two setups at once the later one is stored, whichever exchange ends last", async () => {
    const remote = await withTokens(inTurn(later(500, { access_token: "tA" }), { access_token: "tB" }));
    const id = await site.added(remote);
    const first = site.setAuth(id, clientSetup);
    await until(() => remote.askedFor("/t").length === 1);
    expect((await site.setAuth(id, second)).body.auth.status).toBe("configured");
    expect(told(await first)).toEqual([409, "conflict"]);
    await sleep(600);
    expect((await site.browse(id)).status).toBe(200);
    expect(bearerOf(remote)).toBe("Bearer tB");
  });

  it("a browse that waits for a token when the registry is deleted ends soon, as 404", async () => {
    const { remote, id } = await exchanging(1_500);
    const started = performance.now();
    const waiting = site.browse(id);
    await until(() => remote.askedFor("/t").length === 2);
    expect((await site.server.call("DELETE", `/registries/${id}`)).status).toBe(204);
    const answer = await waiting;
    expect(told(answer)).toEqual(notFound);
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  it("a setup under way when the registry is deleted ends soon, as 404", async () => {
    const remote = await withTokens(later(1_500, { access_token: "t" }));
    const id = await site.added(remote);
    const started = performance.now();
    const setting = site.setAuth(id, clientSetup);
    await until(() => remote.askedFor("/t").length === 1);
    await site.server.call("DELETE", `/registries/${id}`);
    const answer = await setting;
    expect(told(answer)).toEqual(notFound);
    expect(performance.now() - started).toBeLessThan(5_000);
  });
});

describe("on whose behalf", () => {
  it("U-105 two registries browsed at once each see their own credentials alone", async () => {
    const [one, two] = [await site.scripted(keyUnder("X-One")), await site.scripted(keyUnder("X-Two"))];
    const ids = [await site.added(one, keySetup), await site.added(two, { type: "apiKey", apiKey: "second" })];
    await Promise.all(Array.from({ length: 20 }, (_, turn) => site.browse(ids[turn % 2] ?? "")));
    expect(new Set(one.askedFor("/d").map(({ headers }) => `${headers["x-one"]} ${headers["x-two"]}`))).toEqual(
      new Set([`${key} undefined`]),
    );
    expect(new Set(two.askedFor("/d").map(({ headers }) => `${headers["x-one"]} ${headers["x-two"]}`))).toEqual(
      new Set(["undefined second"]),
    );
  });

  it("W1 the document itself is read without credentials, also after a failed exchange", async () => {
    const remote = await withTokens(inTurn({ access_token: "t", expires_in: 10 }, sends("", 500)));
    const id = await site.added(remote, clientSetup);
    for (const answer of [await site.refresh(id), await site.getAuth(id)]) expect(answer.status).toBe(200);
    expect(told(await site.browse(id))).toEqual(upstreamFailed);
    for (const { headers } of remote.askedFor(wellKnown)) expect(headers.authorization).toBeUndefined();
  });
});

it("U-107 the first browses at once after a restart share one exchange, and send the scopes of the setup", async () => {
  const own = await startServer();
  const remote = await site.dev(guarded);
  const { body } = await own.post("/registries", {
    baseUrl: remote.url,
    auth: { ...clientSetup, scopes: ["modules:read"] },
  });
  remote.revoke();
  await own.kill();
  const again = await startServer({ folder: own.folder });
  site.servers.push(again);
  const browsed = await Promise.all(Array.from({ length: 20 }, () => again.get(`/registries/${body.id}/definitions`)));
  expect(new Set(browsed.map(({ status }) => status))).toEqual(new Set([200]));
  expect(countOf(remote, "token")).toBe(2);
  const forms = remote.requests.filter(({ route }) => route === "token").map((one) => new URLSearchParams(one.body));
  expect(forms.map((form) => form.get("scope"))).toEqual(["modules:read", "modules:read"]);
});
