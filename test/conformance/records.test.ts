/**
 * Rows "Add, list, delete, refresh" (1–39) and the cursor rows of GET /registries (128–136). Where the API document or the
 * decisions say otherwise than the row, the title says so.
 *
 * Held elsewhere, word for word:
 *   U-15, U-16       test/e2e/registries.test.ts "of something that does not answer, or answers nonsense, is 502 and nothing is stored"
 *   U-33             test/e2e/registries.test.ts "are read, listed newest first, refreshed without changing their id, and deleted"
 */
import { describe, expect, it } from "vitest";
import { inTurn, later, redirects, type ScriptedRegistry, sends, wellKnown } from "./scripted-registry.ts";
import {
  clientSetup,
  expectEnvelope,
  guarded,
  key,
  keyed,
  keySetup,
  newId,
  notFound,
  openSite,
  refusedByUs,
  told,
  upstreamFailed,
} from "./site.ts";

const site = openSite();
const post = (body: unknown) => site.server.post("/registries", body);
const get = (id: string) => site.server.get(`/registries/${id}`);
const list = (query = "") => site.server.get(`/registries${query}`);
const cursorOf = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

describe("the list", () => {
  it("U-27 is empty at first: items [], nextCursor null, hasMore false", async () => {
    const { status, body } = await list();
    expect([status, body]).toEqual([200, { items: [], nextCursor: null, hasMore: false }]);
  });

  async function fill(remote: ScriptedRegistry, from: number, to: number): Promise<void> {
    for (let n = from; n < to; n++) {
      const answer = await post({ baseUrl: `${remote.url}${n}/`, id: `list-${String(n).padStart(3, "0")}` });
      expect(answer.status, answer.text).toBe(201);
    }
  }

  it("U-28 of 5 by 2 gives 2, 2 and 1, newest first, and ends with nextCursor null", async () => {
    await fill(await site.scripted(), 0, 5);
    const pages: { items: { id: string }[]; nextCursor: string | null; hasMore: boolean }[] = [];
    do {
      const cursor = pages.at(-1)?.nextCursor;
      pages.push((await list(`?limit=2${cursor ? `&cursor=${cursor}` : ""}`)).body);
    } while (pages.at(-1)?.hasMore);
    expect(pages.map(({ items }) => items.map(({ id }) => id))).toEqual([
      ["list-004", "list-003"],
      ["list-002", "list-001"],
      ["list-000"],
    ]);
    expect(pages.at(-1)?.nextCursor).toBeNull();
    expect(pages.slice(0, -1).every(({ nextCursor }) => typeof nextCursor === "string")).toBe(true);
  });

  it("U-29 has 20 items without a limit; U-30 at most 100, whatever is asked", async () => {
    await fill(await site.scripted(), 5, 30);
    expect((await list()).body.items).toHaveLength(20);
    await fill(await site.scripted(), 30, 150);
    const { body } = await list("?limit=1000");
    expect([body.items.length, body.hasMore]).toEqual([100, true]);
  });

  it.each(["0", "-1", "1.5", "abc", "", "1e1", "0x10", "%207", "5.0"])("U-31 with limit %j is 400", async (limit) => {
    expect(told(await list(`?limit=${limit}`))).toEqual(refusedByUs);
  });

  it.each([
    ["text that is no cursor", "nope", "invalid_cursor"],
    ["nothing", "", "invalid_cursor"],
    ["what is no base64", "%25%25%25", "invalid_cursor"],
    ["what is no JSON", Buffer.from("not json").toString("base64url"), "invalid_cursor"],
    ["a cursor that was padded", `${cursorOf({ v: 1, k: [1, "a"] })}=`, "invalid_cursor"],
  ])("U-128 with %s as cursor is 400 %s", async (_what, cursor, code) => {
    expect(told(await list(`?cursor=${cursor}`))).toEqual([400, code]);
  });

  it("U-129, U-130 a cursor of another version, or of none, is 400 cursor_expired, except that none is a wrong shape", async () => {
    expect(told(await list(`?cursor=${cursorOf({ v: 99, k: [1, "a"] })}`))).toEqual([400, "cursor_expired"]);
    expect(told(await list(`?cursor=${cursorOf({ k: [1, "a"] })}`))).toEqual([400, "invalid_cursor"]);
  });

  it.each([
    ["one key", [1]],
    ["three keys", [1, "a", "b"]],
    ["keys of the wrong types", ["a", 1]],
    ["a list inside", [1, ["a"]]],
    ["no list", "a"],
  ])("U-131, U-132 a cursor with %s is 400 invalid_cursor", async (_what, k) => {
    expect(told(await list(`?cursor=${cursorOf({ v: 1, k })}`))).toEqual([400, "invalid_cursor"]);
  });

  it("U-133 a cursor of another version whose keys are no list is 400 invalid_cursor", async () => {
    expect(told(await list(`?cursor=${cursorOf({ v: 99, k: "a" })}`))).toEqual([400, "invalid_cursor"]);
  });

  it("U-134 a cursor of 2049 characters is 400", async () => {
    expect(told(await list(`?cursor=${"A".repeat(2_049)}`))).toEqual([400, "invalid_cursor"]);
  });

  it("U-135, U-136 pages neither repeat nor lose a record when others are added between them, also at the same instant", async () => {
    const remote = await site.scripted();
    const ids = Array.from({ length: 6 }, () => newId());
    await Promise.all(ids.map((id, at) => post({ baseUrl: `${remote.url}same/${at}`, id })));
    const seen: string[] = [];
    let cursor: string | null = null;
    for (let page = 0; page < 6; page++) {
      const { body } = await list(`?limit=1${cursor === null ? "" : `&cursor=${cursor}`}`);
      seen.push(body.items[0].id);
      cursor = body.nextCursor;
      await post({ baseUrl: `${remote.url}later/${page}`, id: newId() });
    }
    expect(seen.sort()).toEqual(ids.sort());
  });
});

describe("adding", () => {
  it("an id or a base URL that is longer than any needs to be is 400, not 500, and asks nothing", async () => {
    const remote = await site.scripted();
    expect(told(await post({ baseUrl: remote.url, id: "x".repeat(257) }))).toEqual(refusedByUs);
    expect(told(await post({ baseUrl: `${remote.url}${"p".repeat(300_000)}`, id: newId() }))).toEqual(refusedByUs);
    expect(remote.asked).toEqual([]);
  });

  it("U-1 with a base URL alone answers the record, never synced, with auth null", async () => {
    const remote = await site.scripted({ modules: { v1: "/m" } });
    const { status, body } = await site.add({ url: remote.origin });
    expect(status).toBe(201);
    expect(body).toMatchObject({ baseUrl: remote.url, lastSyncedAt: null, auth: null, authType: null });
    expect(body.baseUrl.endsWith("/")).toBe(true);
    expect(body.createdAt).toBe(body.updatedAt);
  });

  it("U-2 trims the id it is given", async () => {
    const id = newId();
    const { status, body } = await post({ baseUrl: (await site.scripted()).url, id: `  ${id}  ` });
    expect([status, body.id]).toEqual([201, id]);
  });

  it.each([
    ["definitions only", { modules: undefined }],
    ["modules only", { definitions: undefined, modules: { v1: "/m" } }],
  ])("U-3 works for %s", async (_what, document) => {
    await site.added(await site.scripted(document));
  });

  it.each([
    ["U-4 neither capability", {}],
    ["U-5 only a version that is not supported", { v9: "/d" }],
  ])("%s is 400 and stores nothing", async (_what, definitions) => {
    const id = newId();
    const answer = await site.add(await site.scripted({ id, definitions }));
    expect(told(answer)).toEqual(refusedByUs);
    expect(answer.body.error).toContain("no supported definitions or modules capability");
    expect(told(await get(id))).toEqual(notFound);
  });

  it("U-6 beside later versions uses v1", async () => {
    const remote = await site.scripted({ definitions: { v1: "/d", v3: "/d3" } });
    expect((await site.browse(await site.added(remote))).status).toBe(200);
    expect([remote.askedFor("/d").length, remote.askedFor("/d3").length]).toEqual([1, 0]);
  });

  it("U-7 ignores keys it does not know", async () => {
    await site.added(await site.scripted({ name: "Any", nested: { deep: [1, { a: null }] }, icon: 7 }));
  });

  it("U-8 with an advertised id that has a blank inside is 502, as every malformed document", async () => {
    expect(told(await site.add(await site.scripted({ id: "a b" })))).toEqual(upstreamFailed);
  });

  it("U-9 without an advertised id is 502 also when the body gives one", async () => {
    const id = newId();
    const remote = await site.scripted({ id: undefined });
    expect(told(await post({ baseUrl: remote.url, id }))).toEqual(upstreamFailed);
    expect(told(await get(id))).toEqual(notFound);
  });

  it.each([
    [undefined],
    [null],
    [7],
    [["http://127.0.0.1/"]],
    ["ftp://127.0.0.1/"],
    ["example.com"],
    ["//example.com/"],
    ["http://"],
    ["http://user:pass@127.0.0.1/"],
    ["   "],
  ])("U-10 with base URL %j is 400", async (baseUrl) => {
    expect(told(await post({ baseUrl }))).toEqual(refusedByUs);
  });

  it.each(["foo/bar", "foo.bar", "", "  ", "a b", "é"])("U-11 with id %j is 400 and asks nothing", async (id) => {
    const remote = await site.scripted();
    expect(told(await post({ baseUrl: remote.url, id }))).toEqual(refusedByUs);
    expect(remote.asked).toEqual([]);
  });

  it.each(['"text"', "[]", "null", "7", "{"])("U-12 with body %s is 400", async (body) => {
    expect(told(await post(body))).toEqual(refusedByUs);
  });

  it("U-13 of an advertised id that is taken is 409 naming the id, and its credentials are never exchanged", async () => {
    const id = await site.added(await site.scripted());
    const second = await site.dev({ id, ...guarded });
    const answer = await site.add(second, clientSetup);
    expect(told(answer)).toEqual([409, "already_exists"]);
    expect(answer.body.error).toContain(`"${id}"`);
    expect(second.requests.filter(({ route }) => route === "token")).toEqual([]);
  });

  it("U-14 of a base URL that is taken, in any spelling, is 409 naming the normalised one, and asks nothing", async () => {
    const remote = await site.scripted();
    const url = remote.url.replace("127.0.0.1", "localhost");
    await site.added({ url });
    const asked = remote.asked.length;
    for (const spelling of [url, url.slice(0, -1), url.toUpperCase(), `${url}?q#f`, ` ${url} `, `${url}a/..`]) {
      const answer = await post({ baseUrl: spelling, id: newId() });
      expect([spelling, ...told(answer)]).toEqual([spelling, 409, "already_exists"]);
      expect(answer.body.error).toContain(`"${url}"`);
    }
    expect(remote.asked).toHaveLength(asked);
  });

  it.each([
    ["U-17 no JSON", "<html>"],
    ["U-18 null", null],
    ["U-18 a number", 42],
    ["U-18 a list", []],
  ])("of a document that is %s is 502", async (_what, document) => {
    const remote = await site.scripted();
    remote.script(wellKnown, document);
    const answer = await site.add(remote);
    expectEnvelope(answer);
    expect(told(answer)).toEqual(upstreamFailed);
  });

  it("U-19 with a capability on another origin is 502, and that origin is never asked", async () => {
    const other = await site.scripted();
    expect(told(await site.add(await site.scripted({ definitions: { v1: `${other.url}d` } })))).toEqual(upstreamFailed);
    expect(other.asked).toEqual([]);
  });

  it("U-20 follows a redirect of the document to another origin and resolves the capability there", async () => {
    const other = await site.scripted();
    const remote = await site.scripted();
    remote.script(wellKnown, redirects(`${other.origin}${wellKnown}`));
    expect((await site.browse(await site.added(remote))).status).toBe(200);
    expect([remote.askedFor("/d").length, other.askedFor("/d").length]).toEqual([0, 1]);
  });

  it.each([
    [5, 201, 6],
    [6, 502, 6],
  ])("U-21, U-22 after %i redirects is %i, with %i requests", async (count, status, requests) => {
    const remote = await site.scripted();
    const document = { id: newId(), definitions: { v1: "/d" } };
    remote.script(wellKnown, inTurn(...Array.from({ length: count }, () => redirects(wellKnown)), document));
    expect((await site.add(remote)).status).toBe(status);
    expect(remote.asked).toHaveLength(requests);
  });

  it.each([302, 304])("U-23 of a document answered with %i and no Location is 502", async (status) => {
    const remote = await site.scripted();
    remote.script(wellKnown, sends("", status));
    expect(told(await site.add(remote))).toEqual(upstreamFailed);
  });

  it.each([
    "http://169.254.169.254/latest/meta-data",
    "http://[fe80::1]/",
    "http://10.1.2.3/",
    "http://0.0.0.0/",
    "http://[::ffff:169.254.169.254]/",
    "http://2852039166/",
  ])("U-24 with a redirect to %s is 502 at once: it is never contacted", async (location) => {
    const remote = await site.scripted();
    remote.script(wellKnown, redirects(location));
    const answer = await site.add(remote);
    expect(told(answer)).toEqual(upstreamFailed);
    expect(answer.body.error).toMatch(/^Cannot reach/);
  });

  it.each([7, "", "  ", null, ["/d"], true, "http://[bad", "javascript:1"])(
    "U-25 with the capability %j is 502",
    async (v1) => {
      expect(told(await site.add(await site.scripted({ definitions: { v1 } })))).toEqual(upstreamFailed);
    },
  );

  it("U-26 with a deep base URL reads the document at the root of the origin", async () => {
    const remote = await site.scripted();
    const { status, body } = await site.add(remote, undefined, "deep/path");
    expect([status, body.baseUrl]).toEqual([201, `${remote.url}deep/path`]);
    expect(remote.asked.map(({ path }) => path)).toEqual([wellKnown]);
  });
});

describe("records", () => {
  it("U-32 say that a key is configured and show neither key nor ciphertext anywhere", async () => {
    const id = await site.added(await site.dev(keyed), keySetup);
    const answers = [await get(id), await list("?limit=1"), await site.getAuth(id), await site.refresh(id)];
    expect(answers[1]?.body.items[0]).toMatchObject({ id, authType: "apiKey", tokenExpiresAt: null });
    for (const { text } of answers) {
      expect(text).not.toContain(key);
      expect(text).not.toMatch(/ciphertext|envelope|credentials|"kid"|aes/i);
    }
  });

  it("U-34 deleted and added again have no credentials left", async () => {
    const remote = await site.dev(keyed);
    const id = await site.added(remote, keySetup);
    const deleted = await site.server.call("DELETE", `/registries/${id}`);
    expect([deleted.status, deleted.text]).toEqual([204, ""]);
    expect(await site.added(remote)).toBe(id);
    expect((await site.getAuth(id)).body.authType).toBeNull();
    expect((await site.browse(id)).status).toBe(502);
    expect(remote.requests.at(-1)?.headers["x-dev-registry-key"]).toBeUndefined();
  });

  it("U-35, U-36, U-39 refreshed have all seven fields, the same id, and one time for lastSyncedAt and updatedAt", async () => {
    const remote = await site.dev(keyed);
    const id = await site.added(remote, keySetup);
    const before = (await get(id)).body;
    remote.set({ id: "another" });
    const { status, body } = await site.refresh(id);
    expect(status).toBe(200);
    expect(Object.keys(body).sort()).toEqual(
      ["authType", "baseUrl", "createdAt", "id", "lastSyncedAt", "tokenExpiresAt", "updatedAt"].sort(),
    );
    expect(body).toMatchObject({ id, authType: "apiKey", tokenExpiresAt: null, createdAt: before.createdAt });
    expect(body.lastSyncedAt).toBe(body.updatedAt);
    expect(Date.parse(body.updatedAt)).toBeGreaterThan(Date.parse(before.updatedAt));
  });

  it.each([
    ["U-37 no capability left", { id: "r" }],
    ["a document that is none", "<html>"],
    ["a document that is not there", undefined],
  ])("refreshed with %s are 502 and unchanged", async (_what, document) => {
    const remote = await site.scripted();
    const id = await site.added(remote);
    const before = (await site.refresh(id)).body;
    remote.script(wellKnown, document);
    expect(told(await site.refresh(id))).toEqual(upstreamFailed);
    expect((await get(id)).body).toEqual(before);
  });

  it("U-38 that are not there cannot be refreshed: 404", async () => {
    expect(told(await site.refresh("nowhere"))).toEqual(notFound);
    expect(told(await site.refresh("no.slug"))).toEqual(notFound);
  });

  it("W19 deleted while they are refreshed are 404, and stay deleted", async () => {
    const remote = await site.scripted();
    const id = await site.added(remote);
    remote.script(wellKnown, later(300, { id, definitions: { v1: "/d" } }));
    const refreshed = site.refresh(id);
    await site.server.call("DELETE", `/registries/${id}`);
    expect(told(await refreshed)).toEqual(notFound);
    expect(told(await get(id))).toEqual(notFound);
  });

  it("R-046 keep their id when another is advertised, and change in no field when the registry is gone", async () => {
    const remote = await site.scripted();
    const id = await site.added(remote);
    remote.script(wellKnown, { id: "other", definitions: { v1: "/d" } });
    const { body } = await site.refresh(id);
    expect(body.id).toBe(id);
    expect(body.lastSyncedAt).toBe(body.updatedAt);
    await remote.close();
    expect(told(await site.refresh(id))).toEqual(upstreamFailed);
    expect((await get(id)).body).toEqual(body);
  });
});
