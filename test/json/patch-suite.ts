/**
 * Cases of JSON Patch: the published suite (json-patch-test-suite), and as data the 17 that its newer, unpublished state has beside them
 * (`github.com/json-patch/json-patch-tests`, commit 2a928f9). Licence of the cases: Apache-2.0, Copyright 2014 The Authors.
 */
import { createRequire } from "node:module";

export interface PatchCase {
  readonly name: string;
  readonly doc: unknown;
  readonly patch: readonly unknown[];
  /** Absent: it is refused. */
  readonly expected?: { readonly doc: unknown };
}

interface SuiteCase {
  readonly comment?: string;
  readonly doc: unknown;
  readonly patch?: readonly unknown[];
  readonly expected?: unknown;
  readonly error?: string;
  readonly disabled?: boolean;
}

const require = createRequire(import.meta.url);

const published: readonly PatchCase[] = ["spec_tests.json", "tests.json"]
  .flatMap((file) => require(`json-patch-test-suite/${file}`) as readonly SuiteCase[])
  .flatMap(({ comment, doc, patch, expected, error, disabled }, at) => {
    if (patch === undefined || disabled) return [];
    const name = `${at} ${comment ?? error ?? ""}`;
    return [{ name, doc, patch, ...(error === undefined ? { expected: { doc: expected ?? doc } } : {}) }];
  });

const op = (name: string, path: unknown, more: object = {}): unknown => ({ op: name, path, ...more });
const nested = { foo: { bar: { baz: [{ boo: "net" }] } } };
const renamed = { bar: { baz: [{ boo: "qux" }] } };

const newer: readonly PatchCase[] = [
  { name: "an object becomes a list", doc: {}, patch: [op("add", "", { value: [] })], expected: { doc: [] } },
  { name: "a list becomes an object", doc: [], patch: [op("add", "", { value: {} })], expected: { doc: {} } },
  {
    name: "an item at the end of a list that is all",
    doc: [],
    patch: [op("add", "/-", { value: "hi" })],
    expected: { doc: ["hi"] },
  },
  {
    name: "replace below what is not there",
    doc: { bar: "baz" },
    patch: [op("replace", "/foo/bar", { value: false })],
  },
  { name: "no path", doc: {}, patch: [{ op: "add", value: "bar" }] },
  { name: "null as path", doc: {}, patch: [op("add", null, { value: "bar" })] },
  { name: "a path without its slash", doc: {}, patch: [op("add", "foo", { value: "bar" })] },
  { name: "a copy from nowhere", doc: { foo: 1 }, patch: [op("copy", "/foo", { from: "/bar" })] },
  { name: "a move from nowhere", doc: { foo: 1 }, patch: [op("move", "/foo", { from: "/bar" })] },
  { name: "two zeros as index", doc: ["foo", "bar"], patch: [op("test", "/00", { value: "foo" })] },
  { name: "a zero before the index", doc: ["foo", "bar"], patch: [op("test", "/01", { value: "bar" })] },
  { name: "removing a key that is not there", doc: { foo: "bar" }, patch: [op("remove", "/baz")] },
  { name: "removing deep below what is not there", doc: { foo: "bar" }, patch: [op("remove", "/missing1/missing2")] },
  { name: "removing an index that is not there", doc: ["foo", "bar"], patch: [op("remove", "/2")] },
  {
    name: "capitals are another key",
    doc: { foo: "bar" },
    patch: [op("add", "/FOO", { value: "BAR" })],
    expected: { doc: { foo: "bar", FOO: "BAR" } },
  },
  {
    name: "a copy is changed, its source is not",
    doc: nested,
    patch: [op("copy", "/bak", { from: "/foo" }), op("replace", "/bak/bar/baz/0/boo", { value: "qux" })],
    expected: { doc: { ...nested, bak: renamed } },
  },
  {
    name: "a source is changed, its copy is not",
    doc: nested,
    patch: [op("copy", "/bak", { from: "/foo" }), op("replace", "/foo/bar/baz/0/boo", { value: "qux" })],
    expected: { doc: { foo: renamed, bak: nested.foo } },
  },
];

export const patchCases: readonly PatchCase[] = [...published, ...newer];

/** The one rule of the API document that differs from the RFC: a remove of what is not there is ignored. Such cases have one operation. */
export function removesWhatIsNotThere({ patch, expected }: PatchCase): boolean {
  const [only] = patch as readonly { op?: string; path?: string }[];
  return expected === undefined && patch.length === 1 && only?.op === "remove" && !/\/0[0-9]/.test(only.path ?? "");
}
