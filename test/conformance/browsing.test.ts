/**
 * Rows "Browse" (40–68) and the rows of the reliability table about pages. A malformed page or entry is
 * 502 here, by decision 7, where the rows say 400.
 *
 * Held elsewhere, word for word:
 *   R-034   test/registries/registry-requests.test.ts "cookies are neither kept nor sent on"; below for our caller's headers
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { emptyPage, redirects, type ScriptedRegistry, sends, wellKnown } from "./scripted-registry.ts";
import {
  expectEnvelope,
  key,
  keySetup,
  keyUnder,
  notFound,
  openSite,
  refusedByUs,
  told,
  upstreamFailed,
} from "./site.ts";

const site = openSite();
const entry = { id: "pets", source: "/e/pets" };

async function registry(
  page: object = emptyPage,
  document: object = {},
): Promise<{ remote: ScriptedRegistry; id: string }> {
  const remote = await site.scripted({ modules: { v1: "/m" }, ...document }, { "/d": page });
  return { remote, id: await site.added(remote) };
}

function drip(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(200);
  const timer = setInterval(() => response.write(" "), 500);
  response.once("close", () => clearInterval(timer));
}

const searchOf = (remote: ScriptedRegistry, path = "/d"): string | undefined => remote.askedFor(path).at(-1)?.search;
const modules = (id: string, query = "") => site.server.get(`/registries/${id}/modules${query}`);

describe("the question", () => {
  it("W11 keeps blanks around cursor, query and kind: a cursor is opaque", async () => {
    const { remote, id } = await registry();
    expect((await site.browse(id, "?cursor=%20c%20&query=%20q%20&kind=%20k%20")).status).toBe(200);
    expect(Object.fromEntries(new URLSearchParams(searchOf(remote)))).toEqual({
      cursor: " c ",
      query: " q ",
      kind: " k ",
      limit: "50",
    });
  });

  it("U-40 without a query is limit=50 and nothing else", async () => {
    const { remote, id } = await registry();
    await site.browse(id);
    expect(searchOf(remote)).toBe("?limit=50");
  });

  it("U-41 carries query, kind, cursor and limit unchanged", async () => {
    const { remote, id } = await registry();
    expect((await site.browse(id, "?query=a%26b&kind=openapi%403.0&cursor=%2B%2F%3D%3D&limit=25")).status).toBe(200);
    expect(Object.fromEntries(new URLSearchParams(searchOf(remote)))).toEqual({
      query: "a&b",
      kind: "openapi@3.0",
      cursor: "+/==",
      limit: "25",
    });
  });

  it("U-42 takes limits from 1 to 200 in plain digits", async () => {
    const { id } = await registry();
    const statuses = [];
    for (const limit of ["1", "200", "201", "0", "abc", "", "-1", "1.5", "1e2", "%2050"]) {
      statuses.push((await site.browse(id, `?limit=${limit}`)).status);
    }
    expect(statuses).toEqual([200, 200, 400, 400, 400, 400, 400, 400, 400, 400]);
  });

  it.each(["query=", "query=%20%20", "kind=", "cursor=", "query=a&query=b", "limit=1&limit=1"])(
    "U-43, U-44 with %s is 400 and the registry is not asked",
    async (query) => {
      const { remote, id } = await registry();
      expect(told(await site.browse(id, `?${query}`))).toEqual(refusedByUs);
      expect(remote.askedFor("/d")).toEqual([]);
    },
  );

  it("U-45, U-46 forwards any kind, and no parameter it does not know", async () => {
    const { remote, id } = await registry();
    expect((await site.browse(id, "?kind=anything&unknown=1&type=adapter")).status).toBe(200);
    expect(searchOf(remote)).toBe("?kind=anything&limit=50");
  });

  it("U-47, U-48 of a capability that is not offered is 404", async () => {
    const noDefinitions = await registry(emptyPage, { definitions: undefined });
    expect(told(await site.browse(noDefinitions.id))).toEqual(notFound);
    const noModules = await registry(emptyPage, { modules: undefined });
    expect(told(await modules(noModules.id))).toEqual(notFound);
  });

  it("U-49 of an unknown registry is 404", async () => {
    expect(told(await site.browse("nowhere"))).toEqual(notFound);
    expect(told(await modules("no.slug"))).toEqual(notFound);
  });

  it("U-65 keeps the parameters that the capability carries, but for those of the same name", async () => {
    const { remote, id } = await registry(emptyPage, { definitions: { v1: "/d?tenant=x&limit=3" } });
    await site.browse(id, "?limit=7");
    expect(searchOf(remote)).toBe("?tenant=x&limit=7");
  });

  it("R-035 arrives as the caller gave it, and the next cursor comes back as the registry gave it", async () => {
    const cursor = " a+b/c==&x=1#y\u00e9 ";
    const document = { definitions: { v1: "/d?tenant=7&limit=3" } };
    const { remote, id } = await registry({ definitions: [], nextCursor: cursor }, document);
    const { body } = await site.browse(id, "?cursor=a%2Bb%2Fc%3D%3D%26x%3D1%23y&query=%C3%A9%20%2B");
    expect(Object.fromEntries(new URLSearchParams(searchOf(remote)))).toEqual({
      tenant: "7",
      limit: "50",
      cursor: "a+b/c==&x=1#y",
      query: "é +",
    });
    expect(body.nextCursor).toBe(cursor);
  });

  it("R-034 has nothing of what our own caller sent, and no cookie of an earlier answer", async () => {
    const { remote, id } = await registry();
    const other = await site.scripted();
    remote.script("/d", sends("", 302, { "set-cookie": "s=1; Path=/", location: `${other.url}d` }));
    const headers = {
      authorization: "Bearer CALLER",
      cookie: "c=1",
      "x-forwarded-for": "9.9.9.9",
      traceparent: "00-1",
    };
    for (let turn = 0; turn < 2; turn++)
      await site.server.call("GET", `/registries/${id}/definitions`, undefined, headers);
    for (const { headers: seen } of [...remote.askedFor("/d"), ...other.askedFor("/d")]) {
      for (const name of Object.keys(headers)) expect([name, seen[name]]).toEqual([name, undefined]);
    }
    expect([remote.askedFor("/d").length, other.askedFor("/d").length]).toEqual([2, 2]);
  });
});

describe("the page", () => {
  it("U-50, U-58 has absolute sources and icons on the registry's origin", async () => {
    const { remote, id } = await registry({ definitions: [{ ...entry, icon: { url: "i.png", hash: "h" } }] });
    const { body } = await site.browse(id);
    expect(body).toEqual({
      definitions: [{ id: "pets", source: `${remote.url}e/pets`, icon: { url: `${remote.url}i.png`, hash: "h" } }],
      nextCursor: null,
    });
  });

  it.each<[string, object | string]>([
    ["U-51 a source on another origin", { definitions: [{ ...entry, source: "http://127.0.0.1:1/x" }] }],
    ["U-52 one good and one bad entry", { definitions: [entry, { ...entry, id: "b c" }] }],
    ["U-53 an entry without source", { definitions: [{ id: "pets" }] }],
    ["U-53 an entry without id", { definitions: [{ source: "/e" }] }],
    ["U-56 a name that is null", { definitions: [{ ...entry, name: null }] }],
    ["U-56 a description that is a number", { definitions: [{ ...entry, description: 7 }] }],
    ["U-57 an icon that is text", { definitions: [{ ...entry, icon: "/i.png" }] }],
    ["U-57 an icon without hash", { definitions: [{ ...entry, icon: { url: "/i.png" } }] }],
    ["U-57 an icon that is null", { definitions: [{ ...entry, icon: null }] }],
    [
      "U-57 an icon on another origin",
      { definitions: [{ ...entry, icon: { url: "http://127.0.0.1:1/", hash: "h" } }] },
    ],
    ["U-61 no list", { nextCursor: null }],
    ["U-61 an object for the list", { definitions: {} }],
    ["an entry that is null", { definitions: [null] }],
    ["U-62 a next cursor that is a number", { definitions: [], nextCursor: 42 }],
    ["no JSON", "<html>"],
    ["nothing at all", ""],
    ["an empty kind", { definitions: [{ ...entry, kind: "" }] }],
  ])("%s: 502 for the whole page", async (_what, page) => {
    const { remote, id } = await registry();
    remote.script("/d", page);
    const answer = await site.browse(id);
    expectEnvelope(answer);
    expect(told(answer)).toEqual(upstreamFailed);
  });

  it.each(["openapi@3", "openapi@3.0", "openapi@3.0.1", "openapi@3.0.1.1", "openapi@v3", "github"])(
    "U-54, U-55 passes on the kind %j: its form matters only at installation",
    async (kind) => {
      const { id } = await registry({ definitions: [{ ...entry, kind }] });
      expect((await site.browse(id)).body.definitions[0].kind).toBe(kind);
    },
  );

  it("U-56 passes on a blank name as the registry gave it", async () => {
    const { id } = await registry({ definitions: [{ ...entry, name: " ", description: "" }] });
    const [first] = (await site.browse(id)).body.definitions;
    expect(first).toMatchObject({ name: " ", description: "" });
  });

  it("U-59, U-60 of modules takes only the types there are, in the query and in every entry", async () => {
    const { remote, id } = await registry();
    expect(told(await modules(id, "?type=wat"))).toEqual(refusedByUs);
    expect(remote.askedFor("/m")).toEqual([]);
    for (const type of ["wat", undefined, null]) {
      remote.script("/m", { modules: [{ ...entry, type }] });
      expect([type, ...told(await modules(id))]).toEqual([type, ...upstreamFailed]);
    }
    remote.script("/m", { modules: [{ ...entry, type: "environment" }] });
    expect((await modules(id, "?type=environment&query=q&limit=3")).body.modules[0].type).toBe("environment");
    expect(searchOf(remote, "/m")).toBe("?query=q&type=environment&limit=3");
  });

  it.each([
    ["absent", {}, null],
    ["null", { nextCursor: null }, null],
    ["text", { nextCursor: "abc" }, "abc"],
    ["empty: a cursor that could not be followed", { nextCursor: "" }, null],
  ])("U-62 with a next cursor that is %s", async (_what, more, nextCursor) => {
    const { id } = await registry({ definitions: [], ...more });
    expect((await site.browse(id)).body).toEqual({ definitions: [], nextCursor });
  });

  it("U-63 may have 1 MiB, by decision 7, and not a byte more", async () => {
    const { remote, id } = await registry();
    const empty = JSON.stringify(emptyPage);
    remote.script("/d", empty.padEnd(1024 * 1024));
    expect((await site.browse(id)).status).toBe(200);
    remote.script("/d", empty.padEnd(1024 * 1024 + 1));
    expect(told(await site.browse(id))).toEqual(upstreamFailed);
  });

  it("U-66 has the entries in the registry's order and number, repeated ones too, without fields we do not know", async () => {
    const definitions = ["z", "a", "m", "a"].map((id, at) => ({ id, source: `/e/${id}`, name: `${at}`, extra: at }));
    const { remote, id } = await registry({ definitions });
    const { body } = await site.browse(id, "?limit=1&query=none");
    expect(body.definitions).toEqual(
      definitions.map(({ extra: _, ...known }) => ({ ...known, source: remote.origin + known.source })),
    );
  });

  it("U-67 of modules has modules and nextCursor, and no other field", async () => {
    const { remote, id } = await registry();
    remote.script("/m", { modules: [{ ...entry, type: "adapter" }], items: [], hasMore: true });
    expect(Object.keys((await modules(id)).body).sort()).toEqual(["modules", "nextCursor"]);
  });
});

describe("what a registry answers instead", () => {
  it.each([304, 400, 401, 403, 404, 429, 500, 503])("U-64, R-045 status %i is 502 naming it", async (status) => {
    const { remote, id } = await registry();
    remote.script("/d", sends("{}", status, { "retry-after": "1", "x-ratelimit-limit": "1" }));
    const answer = await site.browse(id);
    expect(told(answer)).toEqual(upstreamFailed);
    expect(answer.body.error).toContain(String(status));
    expect([answer.headers.get("retry-after"), answer.headers.get("x-ratelimit-limit")]).not.toContain("1");
    expect(remote.askedFor("/d")).toHaveLength(1);
  });

  it("R-045 no page at all, under status 204, is 502", async () => {
    const { remote, id } = await registry();
    remote.script("/d", sends("", 204));
    expect(told(await site.browse(id))).toEqual(upstreamFailed);
  });

  it("R-045 a whole page under status 206 or another media type is read as the page it is", async () => {
    const { remote, id } = await registry();
    remote.script("/d", sends(emptyPage, 200, { "content-type": "text/html" }));
    expect((await site.browse(id)).status).toBe(200);
    remote.script("/d", sends(emptyPage, 206));
    expect((await site.browse(id)).status).toBe(200);
  });

  it("U-68, R-037 headers or nothing, then silence or a byte a second: 502 within the deadline, others unharmed", {
    timeout: 30_000,
  }, async () => {
    const healthy = await registry();
    const slow = await Promise.all(Array.from({ length: 4 }, () => registry()));
    const [silentBody, silent, dripped, token] = slow;
    silentBody?.remote.script("/d", (_request, response) => void response.writeHead(200).write("{"));
    silent?.remote.script("/d", () => undefined);
    dripped?.remote.script("/d", drip);
    token?.remote.script("/d", redirects("/next"));
    token?.remote.script("/next", drip);
    const started = performance.now();
    const browsed = Promise.all(slow.map(({ id }) => site.browse(id)));
    expect((await site.browse(healthy.id)).status).toBe(200);
    expect(performance.now() - started).toBeLessThan(5_000);
    for (const answer of await browsed) expect(told(answer)).toEqual(upstreamFailed);
    expect(performance.now() - started).toBeLessThan(15_000);
  });
});

describe("R-044 capability URLs", () => {
  it.each([
    ["d", "/.well-known/d"],
    ["/d", "/d"],
    ["../d", "/d"],
    ["./d?x=1", "/.well-known/d"],
    ["../../../d", "/d"],
  ])("%s starts from the document: %s", async (v1, path) => {
    const remote = await site.scripted({ definitions: { v1 } }, { [path]: emptyPage });
    expect((await site.browse(await site.added(remote))).status).toBe(200);
    expect(remote.askedFor(path)).toHaveLength(1);
  });

  it("on another origin are refused, and that origin never sees the key", async () => {
    const other = await site.scripted({}, { "/x": "{}" });
    const { host } = new URL(other.url);
    for (const v1 of [`http://${host}/d`, `//${host}/d`, `http://127.0.0.1@${host}/d`]) {
      const remote = await site.scripted({ ...keyUnder("X-K"), definitions: { v1 } });
      expect([v1, ...told(await site.add(remote, keySetup))]).toEqual([v1, ...upstreamFailed]);
    }
    const remote = await site.scripted(keyUnder("X-K"), {
      "/d": { definitions: [entry, { id: "far", source: `${other.url}x` }] },
    });
    const id = await site.added(remote, keySetup);
    expect(told(await site.browse(id))).toEqual(upstreamFailed);
    expect(remote.askedFor("/d")[0]?.headers["x-k"]).toBe(key);
    expect(other.asked).toEqual([]);
  });

  it("of a document that moves to another origin later are resolved there, where the key does not go", async () => {
    const other = await site.scripted();
    const remote = await site.scripted(keyUnder("X-K"));
    const id = await site.added(remote, keySetup);
    remote.script(wellKnown, redirects(`${other.origin}${wellKnown}`));
    await site.refresh(id);
    expect((await site.browse(id)).status).toBe(200);
    expect(other.askedFor("/d")[0]?.headers["x-k"]).toBeUndefined();
  });
});
