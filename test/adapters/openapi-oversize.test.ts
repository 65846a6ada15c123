/** Documents at the edge of what may be sent: each is read or refused within its time, and the server keeps turning meanwhile. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { documentBytesMax, documentOperationsMax } from "../../src/limits.ts";
import type { Adapter } from "../../src/ports/adapter.ts";
import { measureLongestTurn, openTestAdapter } from "./adapter-bench.ts";

let adapter: Adapter;

beforeAll(async () => {
  adapter = await openTestAdapter();
});
afterAll(async () => {
  await adapter.close();
});

test("text of 30 MiB is read or refused within its time, and the server keeps turning", async () => {
  const schema = {
    type: "object",
    properties: Object.fromEntries(
      Array.from({ length: 50 }, (_, index) => [`property${index}`, { type: "string", description: "d".repeat(60) }]),
    ),
  };
  const one = JSON.stringify({ post: { requestBody: { content: { "application/json": { schema } } } } });
  const paths = Array.from(
    { length: Math.floor((documentBytesMax - 1_000) / (one.length + 12)) },
    (_, index) => `"/${index}":${one}`,
  );
  const text = `{"openapi":"3.0.0","paths":{${paths.join(",")}}}`;
  expect(text.length).toBeGreaterThan(documentBytesMax * 0.95);
  const turned = measureLongestTurn();
  const outcome = await adapter.define({ text }).catch((error: { kind: string }) => error.kind);
  expect(turned()).toBeLessThan(3_000);
  if (typeof outcome === "string") expect(["timeout", "invalid_request"]).toContain(outcome);
  else expect(outcome.tools).toHaveLength(paths.length);
});

test("many keys in one YAML mapping do not take quadratic time", async () => {
  const text = `openapi: 3.0.0\nx:\n${Array.from({ length: 20_000 }, (_, index) => `  k${index}: 1`).join("\n")}\n`;
  expect((await adapter.define({ text })).tools).toEqual([]);
});

test("YAML nested a hundred thousand deep is refused", async () => {
  const text = `openapi: 3.0.0\nx-deep: ${"[".repeat(100_000)}${"]".repeat(100_000)}\n`;
  // How long the parser takes to exhaust its stack depends on the machine; either way the document is refused.
  await expect(adapter.define({ text })).rejects.toMatchObject({
    message: expect.stringMatching(/nested too deeply$|took longer than/),
  });
});

test("more operations than allowed are refused", async () => {
  const paths = Object.fromEntries(
    Array.from({ length: documentOperationsMax + 1 }, (_, index) => [`/${index}`, { get: {} }]),
  );
  const text = JSON.stringify({ openapi: "3.0.0", paths });
  await expect(adapter.define({ text })).rejects.toMatchObject({
    kind: "invalid_request",
    message: expect.stringMatching(/has more than \d+ operations$/),
  });
});
