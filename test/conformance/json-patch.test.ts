/** The JSON Patch suite as callers meet it: PATCH of a configuration that holds each document under one key. */
import { describe, expect, it } from "vitest";
import { type PatchCase, patchCases, removesWhatIsNotThere } from "../json/patch-suite.ts";
import { add, openServiceBench } from "./service-bench.ts";
import { openSite, refusedByUs, told } from "./site.ts";

const site = openSite();
const bench = openServiceBench(site);
let configured: Promise<string> | undefined;

/** What is a pointer into the document becomes one into the configuration; all else stays as wrong as it is. */
function below(key: string, operation: unknown): unknown {
  if (typeof operation !== "object" || operation === null) return operation;
  const moved = Object.entries(operation).map(([name, value]) => {
    const isPointer = (name === "path" || name === "from") && typeof value === "string" && /^(\/|$)/.test(value);
    return [name, isPointer ? `/${key}${value}` : value];
  });
  return Object.fromEntries(moved);
}

/** Taking the document itself away is no change of its content here: the key goes. */
const isWhole = ({ patch }: PatchCase) =>
  patch.some(
    (one) => (one as { op?: string; path?: string }).op === "remove" && (one as { path?: string }).path === "",
  );

describe("R-047 – R-056 the suite through PATCH /services/{id}/config", () => {
  it("has all of its cases", () => {
    expect(patchCases).toHaveLength(108);
    expect(patchCases.filter(isWhole)).toEqual([]);
  });

  it.each(patchCases)("$name", async (row) => {
    configured ??= bench.configured({ type: "object" });
    const id = await configured;
    expect((await bench.patchConfig(id, add("/doc", row.doc))).status).toBe(200);
    const answer = await bench.patchConfig(id, ...row.patch.map((operation) => below("doc", operation)));
    if (row.expected !== undefined || removesWhatIsNotThere(row)) {
      expect([answer.status, answer.body.config.doc]).toEqual([200, row.expected?.doc ?? row.doc]);
    } else {
      expect(told(answer), answer.text).toEqual(refusedByUs);
      expect((await bench.config(id)).config).toEqual({ doc: row.doc });
    }
  });
});
