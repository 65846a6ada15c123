import { describe, expect, test } from "vitest";
import { isFailure } from "../../src/errors/failure.ts";
import type { EntryKind } from "../../src/ports/registry-reader.ts";
import { pageUrl, readPage } from "../../src/registries/pages.ts";
import { bytes } from "./fixtures.ts";

const capability = "https://reg.test/v1/list?tenant=7";
const what = 'The definitions page of registry "r"';
const read = (page: unknown, kind: EntryKind = "definitions") => readPage(bytes(page), kind, capability, what);
const entry = (more: object) => ({ id: "pets", source: "/e/pets", ...more });

function faultOf(page: unknown, kind: EntryKind = "definitions"): string {
  try {
    read(page, kind);
  } catch (error) {
    if (!isFailure(error)) throw error;
    expect(error.kind).toBe("upstream_failed");
    expect(error.message.startsWith(`${what} `)).toBe(true);
    return error.message.slice(what.length + 1);
  }
  return expect.unreachable("The page was accepted");
}

describe("the question", () => {
  const ask = (url: string, more = {}): string => pageUrl(url, { limit: 50, ...more });

  test("holds what the caller gave and the limit", () => {
    expect(ask("https://reg.test/d")).toBe("https://reg.test/d?limit=50");
    const all = { query: "pets & dogs", kind: "openapi@3", type: "adapter", cursor: "a+b/c==", limit: 25 };
    expect(Object.fromEntries(new URL(ask("https://reg.test/d", all)).searchParams)).toEqual({ ...all, limit: "25" });
  });

  test.each(["a+b/c==&x=1#y", "é +", " blanks ", "%2F%", "\u0000", "💡", "null", "a\r\nb"])(
    "the text %j arrives as it was",
    (text) => {
      const { searchParams } = new URL(ask("https://reg.test/d", { cursor: text, query: text }));
      expect([searchParams.get("cursor"), searchParams.get("query")]).toEqual([text, text]);
    },
  );

  test.each([
    ["?tenant=x", "?tenant=x&limit=50"],
    ["?tenant=7&limit=3", "?tenant=7&limit=50"],
    ["?limit=1&limit=2&tenant", "?tenant&limit=50"],
    ["?%6cimit=3&sig=a%2fb+c%20d", "?sig=a%2fb+c%20d&limit=50"],
    ["?limits=3&query=kept", "?limits=3&query=kept&limit=50"],
    ["?&&a=1&", "?a=1&limit=50"],
  ])("parameters the capability carries stay as they are, except of the same name: %s", (search, expected) => {
    expect(new URL(ask(`https://reg.test/d${search}`)).search).toBe(expected);
  });
});

describe("the answer", () => {
  test("entries come in the registry's order with the known fields only", () => {
    const page = {
      definitions: [
        {
          id: "b",
          source: "https://reg.test/e/b",
          name: " B ",
          description: "",
          kind: "github",
          type: "wat",
          extra: 1,
        },
        { id: "a", source: "a.json", icon: { url: "/i/a.png", hash: " abc ", size: 3 }, compatibility: {} },
        { id: "a", source: "?a=1#f" },
      ],
      nextCursor: "abc",
      total: 3,
    };
    expect(read(page)).toEqual({
      entries: [
        { id: "b", source: "https://reg.test/e/b", name: " B ", description: "", kind: "github" },
        { id: "a", source: "https://reg.test/v1/a.json", icon: { url: "https://reg.test/i/a.png", hash: "abc" } },
        { id: "a", source: "https://reg.test/v1/list?a=1" },
      ],
      nextCursor: "abc",
    });
  });

  test("modules have a type and no kind", () => {
    const page = { modules: [entry({ type: "adapter", kind: 7 }), entry({ type: "environment" })] };
    expect(read(page, "modules").entries).toEqual([
      { id: "pets", source: "https://reg.test/e/pets", type: "adapter" },
      { id: "pets", source: "https://reg.test/e/pets", type: "environment" },
    ]);
  });

  test.each([
    [undefined, null],
    [null, null],
    ["", null],
    ["abc", "abc"],
    [" ", " "],
  ])("nextCursor %j becomes %j", (nextCursor, expected) => {
    expect(read({ definitions: [], nextCursor }).nextCursor).toBe(expected);
  });

  test.each([[42], [true], [{}], [["a"]]])("nextCursor %j is refused", (nextCursor) => {
    expect(faultOf({ definitions: [], nextCursor })).toBe('is malformed: "nextCursor" is neither a string nor null');
  });

  test.each([
    [{}, '"definitions" is missing'],
    [{ modules: [] }, '"definitions" is missing'],
    [{ definitions: {} }, '"definitions" is not an array'],
    [{ definitions: null }, '"definitions" is not an array'],
    [{ definitions: "[]" }, '"definitions" is not an array'],
    [[], "it is not a JSON object"],
  ])("the page %j is refused", (page, fault) => {
    expect(faultOf(page)).toBe(`is malformed: ${fault}`);
  });

  test.each([
    [null, "in entry 2, there is no object"],
    ["pets", "in entry 2, there is no object"],
    [[], "in entry 2, there is no object"],
    [{ source: "/e" }, 'in entry 2, "id" is missing'],
    [{ id: "a b", source: "/e" }, 'in entry 2, "id" may hold only letters, digits, "_" and "-"'],
    [{ id: 7, source: "/e" }, 'in entry 2, "id" is not a string'],
    [{ id: "pets" }, 'in entry 2 ("pets"), "source" is missing'],
    [entry({ source: "" }), 'in entry 2 ("pets"), "source" is blank'],
    [entry({ source: 7 }), 'in entry 2 ("pets"), "source" is not a string'],
    [entry({ source: "https://evil.test/x" }), 'in entry 2 ("pets"), "source" leaves the origin "https://reg.test"'],
    [entry({ source: "//evil.test/x" }), 'in entry 2 ("pets"), "source" leaves the origin "https://reg.test"'],
    [entry({ source: "http://reg.test/x" }), 'in entry 2 ("pets"), "source" leaves the origin "https://reg.test"'],
    [entry({ source: "https://u@reg.test/x" }), 'in entry 2 ("pets"), "source" holds a user name or password'],
    [entry({ source: "javascript:1" }), 'in entry 2 ("pets"), "source" is neither an http nor an https URL'],
    [entry({ source: "https://[bad" }), 'in entry 2 ("pets"), "source" is not a URL'],
    [entry({ name: null }), 'in entry 2 ("pets"), "name" is not a string'],
    [entry({ description: 7 }), 'in entry 2 ("pets"), "description" is not a string'],
    [entry({ kind: "" }), 'in entry 2 ("pets"), "kind" is blank'],
    [entry({ kind: 3 }), 'in entry 2 ("pets"), "kind" is not a string'],
    [entry({ icon: "/i.png" }), 'in entry 2 ("pets"), "icon" is not an object'],
    [entry({ icon: null }), 'in entry 2 ("pets"), "icon" is not an object'],
    [entry({ icon: { url: "/i.png" } }), 'in entry 2 ("pets"), in "icon", "hash" is missing'],
    [entry({ icon: { hash: "a" } }), 'in entry 2 ("pets"), in "icon", "url" is missing'],
    [
      entry({ icon: { url: "https://evil.test/i.png", hash: "a" } }),
      'in entry 2 ("pets"), in "icon", "url" leaves the origin "https://reg.test"',
    ],
  ])("one bad entry spoils the page, by name: %j", (bad, fault) => {
    expect(faultOf({ definitions: [entry({}), bad] })).toBe(`is malformed: ${fault}`);
  });

  test.each([[undefined], [null], ["wat"], ["Adapter"], [7]])("a module of type %j is refused", (type) => {
    expect(faultOf({ modules: [entry({ type })] }, "modules")).toBe(
      'is malformed: in entry 1 ("pets"), "type" is neither "adapter" nor "environment"',
    );
  });

  test("a prototype key inside an entry or an icon is refused", () => {
    for (const part of ['"__proto__":{"name":"x"}', '"icon":{"__proto__":{"url":"/x","hash":"y"}}'])
      expect(faultOf(`{"definitions":[{"id":"a","source":"/e",${part}}]}`)).toBe('has the forbidden key "__proto__"');
  });
});
