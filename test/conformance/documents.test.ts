/**
 * What a registry may put into its well-known document (U-78 … U-81, R-039 … R-041), and how much of it (R-036, R-038). A
 * malformed document is 502 here, by decision 7, where the rows say 400.
 *
 * Held elsewhere, word for word:
 *   R-037   browsing.test.ts "U-68, R-037 …"; every phase with its deadline in test/registries/hostile-registries.test.ts "too slow"
 *   R-041   as a table: test/registries/well-known.test.ts "of a key that occurs twice the last one counts"
 */
import { readFileSync } from "node:fs";
import type { RequestListener } from "node:http";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { type Script, sends, wellKnown } from "./scripted-registry.ts";
import {
  clientSetup,
  expectEnvelope,
  key,
  keySetup,
  newId,
  oauthAt,
  openSite,
  refused,
  told,
  upstreamFailed,
} from "./site.ts";

const site = openSite();

describe("the advertised auth", () => {
  it.each<[string, unknown]>([
    ["U-79 a relative token endpoint", { type: "oauth2", tokenEndpoint: "/t" }],
    ["U-79 a token endpoint to write to", { type: "oauth2", tokenEndpoint: "mailto:a@b.test" }],
    ["U-79 no token endpoint", { type: "oauth2" }],
    ["U-80 a scope that is a number", { type: "oauth2", tokenEndpoint: "https://i.test/", scopes: [42] }],
    ["U-80 a scope without id", { type: "oauth2", tokenEndpoint: "https://i.test/", scopes: [{}] }],
    [
      "U-80 a description that is a number",
      { type: "oauth2", tokenEndpoint: "https://i.test/", scopes: [{ id: "a", description: 7 }] },
    ],
    ["U-80 scopes that are text", { type: "oauth2", tokenEndpoint: "https://i.test/", scopes: "a b" }],
    ["U-81 text", "apiKey"],
    ["U-81 a list", []],
    ["U-81 null", null],
    ["U-81 a blank type", { type: " " }],
    ["U-81 no type", { name: "X-K" }],
    ["U-81 a key without a name", { type: "apiKey" }],
  ])("%s breaks whatever reads the document: 502", async (_what, auth) => {
    const remote = await site.scripted({ auth });
    expect(told(await site.add(remote))).toEqual(upstreamFailed);
    const good = await site.scripted();
    const id = await site.added(good);
    good.script(wellKnown, { id, definitions: { v1: "/d" }, auth });
    for (const answer of [await site.refresh(id), await site.getAuth(id), await site.setAuth(id, keySetup)]) {
      expectEnvelope(answer);
      expect(told(answer)).toEqual(upstreamFailed);
    }
  });

  it("U-78 without a grant type means client_credentials", async () => {
    const tokens = await site.scripted({}, { "/t": { access_token: "t" } });
    await site.added(await site.scripted(oauthAt(`${tokens.url}t`)), clientSetup);
    expect(tokens.askedFor("/t")).toHaveLength(1);
  });

  it("U-73, U-77 that is unsupported minds nobody until a setup needs it", async () => {
    for (const auth of [
      { type: "jwt" },
      { type: "oauth2", grantType: "authorization_code", tokenEndpoint: "broken" },
      { type: "apiKey", in: "query", name: "k" },
      { type: "apiKey", in: "cookie" },
    ]) {
      const id = await site.added(await site.scripted({ auth }));
      for (const answer of [await site.browse(id), await site.refresh(id)]) expect(answer.status).toBe(200);
      expect((await site.getAuth(id)).body).toMatchObject({ authType: null, availableScopes: [] });
      expect(told(await site.setAuth(id, keySetup))).toEqual(refused);
    }
  });

  it("lists a scope without description with an empty one", async () => {
    const scopes = [{ id: " a " }, { id: "b", description: "B" }];
    const id = await site.added(await site.scripted(oauthAt("https://i.test/", { scopes })));
    expect((await site.getAuth(id)).body.availableScopes).toEqual([
      { id: "a", description: "" },
      { id: "b", description: "B" },
    ]);
  });

  it("R-041 given twice counts as its last, in what is checked and in what is pinned", async () => {
    const remote = await site.scripted();
    const id = newId();
    const oauth = `{"type":"oauth2","tokenEndpoint":"https://idp.test/t"}`;
    const apiKey = `{"type":"apiKey","name":"X-A"}`;
    remote.script(wellKnown, `{"id":"${id}","definitions":{"v1":"/d"},"auth":${oauth},"auth":${apiKey}}`);
    await site.added(remote);
    expect(told(await site.setAuth(id, clientSetup))).toEqual(refused);
    expect((await site.setAuth(id, keySetup)).body.auth.headerName).toBe("X-A");
    await site.browse(id);
    expect(remote.askedFor("/d")[0]?.headers["x-a"]).toBe(key);
  });
});

describe("its bytes", () => {
  const document = (id: string, more = ""): string => `{"id":"${id}","definitions":{"v1":"/d"}${more}}`;

  it("R-039 may begin with a byte order mark", async () => {
    const remote = await site.scripted();
    remote.script(wellKnown, `\uFEFF${document(newId())}`);
    await site.added(remote);
  });

  it.each<[string, Buffer]>([
    ["UTF-16", Buffer.from(`\uFEFF${document("r")}`, "utf16le")],
    ["broken UTF-8 in a name", Buffer.from([...Buffer.from('{"id":"r","name":"'), 0xff, 0xfe, ...Buffer.from('"}')])],
    ["nesting without end", Buffer.from("[".repeat(100_000))],
  ])("R-039 that are %s are refused: 502", async (_what, bytes) => {
    const remote = await site.scripted();
    remote.script(wellKnown, bytes);
    const answer = await site.add(remote);
    expectEnvelope(answer);
    expect(told(answer)).toEqual(upstreamFailed);
  });

  it.each([
    `"__proto__":{"auth":{"type":"apiKey","name":"X"}}`,
    `"constructor":{"prototype":{"p":1}}`,
    `"modules":{"__proto__":{"v1":"/m"}}`,
  ])(
    "R-039, R-040 that say %s change no object: here the document is refused, with or without a mark",
    async (more) => {
      const bystander = await site.added(await site.scripted());
      for (const mark of ["", "\uFEFF"]) {
        const remote = await site.scripted();
        remote.script(wellKnown, `${mark}${document(newId(), `,${more}`)}`);
        const answer = await site.add(remote, keySetup);
        expectEnvelope(answer);
        expect(told(answer)).toEqual(upstreamFailed);
      }
      expect((await site.getAuth(bystander)).body).toEqual({
        authType: null,
        headerName: null,
        tokenExpiresAt: null,
        availableScopes: [],
        configuredScopes: [],
      });
      expect(told(await site.setAuth(bystander, keySetup))).toEqual(refused);
      expect((await site.browse(bystander)).status).toBe(200);
    },
  );

  it("R-040 in an entry or an icon they spoil the page, and nothing else", async () => {
    const remote = await site.scripted();
    const id = await site.added(remote);
    for (const entry of [
      `{"id":"e","source":"/e","__proto__":{"kind":"x"}}`,
      `{"id":"e","source":"/e","icon":{"url":"/i","hash":"h","constructor":{"prototype":{"p":1}}}}`,
    ]) {
      remote.script("/d", `{"definitions":[${entry}],"nextCursor":null}`);
      expect(told(await site.browse(id))).toEqual(upstreamFailed);
    }
    remote.script("/d", { definitions: [{ id: "e", source: "/e" }] });
    expect((await site.browse(id)).body.definitions).toEqual([{ id: "e", source: `${remote.url}e` }]);
  });
});

describe("too much", () => {
  const spaces = gzipSync(Buffer.alloc(64 * 1024 * 1024, " "));
  /** 1 GiB, in members that follow each other. */
  const bomb = sends(Buffer.concat(Array.from({ length: 16 }, () => spaces)), 200, { "content-encoding": "gzip" });
  const endless: RequestListener = (_request, response) => {
    const chunk = Buffer.alloc(64 * 1024, " ");
    const write = (): void => {
      while (!response.destroyed && response.write(chunk));
    };
    response.on("drain", write);
    write();
  };
  const boastful: RequestListener = (_request, response) => {
    response.writeHead(200, { "content-length": "1000000000000" }).write("{");
  };

  it.each<[string, Script]>([
    ["R-036 1 GiB in 1 MB of gzip", bomb],
    ["R-038 no end", endless],
    ["R-038 a declared length of 1 TB", boastful],
  ])("%s, as document, page and token answer: refused soon, without the memory for it", async (_what, script) => {
    const remote = await site.scripted({}, { "/t": { access_token: "t", expires_in: 10 } });
    const healthy = await site.added(await site.scripted());
    const id = newId();
    const good = { id, definitions: { v1: "/d" }, ...oauthAt(`${remote.url}t`) };
    remote.script(wellKnown, good);
    await site.added(remote, clientSetup);
    const before = residentBytes();
    const started = performance.now();
    remote.script("/d", script);
    expect(told(await site.browse(id))).toEqual(upstreamFailed);
    remote.script("/t", script);
    expect((await site.setAuth(id, clientSetup)).body.auth.status).toBe("error");
    remote.script(wellKnown, script);
    expect(told(await site.refresh(id))).toEqual(upstreamFailed);
    expect(performance.now() - started).toBeLessThan(10_000);
    expect(residentBytes() - before).toBeLessThan(64 * 1024 * 1024);
    expect((await site.browse(healthy)).status).toBe(200);
  });

  /** Of the server; the proc file system is there wherever the server is supported in production. */
  function residentBytes(): number {
    const status = readFileSync(`/proc/${site.server.child.pid}/status`, "utf8");
    return Number(/VmRSS:\s+([0-9]+) kB/.exec(status)?.[1]) * 1024;
  }
});
