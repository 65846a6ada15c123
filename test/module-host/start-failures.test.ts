/** Modules that cannot be started: each costs a clear error, and nothing else. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { adapterCode, hosted, type OpenHost, openSharedHost, writeModule } from "./modules.ts";

/** One for the file: nothing that a module does may spoil it for the next. */
let host: OpenHost;
beforeAll(async () => {
  host = await openSharedHost({ startMs: 2_000 });
});
afterAll(() => host.close());

const working = adapterCode({ ok: `return "ok"` });

describe("at load", () => {
  const cases: readonly (readonly [name: string, code: string, kind: string, message: string])[] = [
    ["throws", `throw new Error("boom at load")`, "invalid_request", `cannot be loaded: boom at load`],
    ["throws no error", `throw null`, "invalid_request", "cannot be loaded"],
    ["does not parse", `export default {`, "invalid_request", "cannot be loaded"],
    ["exits", `process.exit(3)`, "invalid_request", "ended with exit code 3"],
    ["aborts", `process.abort()`, "invalid_request", "was ended by SIGABRT"],
    [
      "rejects unseen",
      `void Promise.reject(new TypeError("unseen")); await new Promise(() => setTimeout(() => {}, 1e6))`,
      "invalid_request",
      "TypeError: unseen",
    ],
    ["never answers", `await new Promise(() => setTimeout(() => {}, 1e6))`, "timeout", "was not ready within 2000 ms"],
    ["computes for ever", `for (;;);`, "timeout", "was not ready within 2000 ms"],
    ["has no default export", `export const a = 1`, "invalid_request", "no default export that is an object"],
    ["has no setup", `export default { type: "adapter" }`, "invalid_request", "no function setup"],
    [
      "is of another type",
      `export default { type: "environment", setup() {} }`,
      "invalid_request",
      `its manifest says "adapter"`,
    ],
    ["is of no type", `export default { setup() {} }`, "invalid_request", `its manifest says "adapter"`],
    [
      "declares a schema that is none",
      `export default { type: "adapter", setup() {}, configSchema: { type: "strin" } }`,
      "invalid_request",
      "configSchema that cannot be used",
    ],
    ["declares a function as schema", `export default { type: "adapter", setup() {}, secretsSchema: () => 1 }`, "", ""],
    [
      "declares a schema without end",
      `const schema = {}; schema.not = schema; export default { type: "adapter", setup() {}, configSchema: schema }`,
      "invalid_request",
      "cannot be loaded",
    ],
    ["imports what is not there", `import "./nowhere.js"`, "invalid_request", "cannot be loaded"],
    [
      "imports the network",
      `import "node:http"; export default {}`,
      "invalid_request",
      "its only way out is context.fetch",
    ],
  ];
  it.each(cases)("one that %s", async (_name, code, kind, message) => {
    const inspected = host.inspect(writeModule(code));
    if (kind === "") await expect(inspected).resolves.toBeDefined();
    else {
      const failure = (await inspected.catch((error: unknown) => error)) as { kind: string; message: string };
      expect(failure).toMatchObject({ kind });
      expect(failure.message).toContain(message);
    }
  });

  it("one that fills its heap", async () => {
    // Filling it may take longer than the others are given.
    const patient = await openSharedHost();
    onTestFinished(() => patient.close());
    const code = `const all = []; for (;;) all.push(new Array(1e5).fill(all.length))`;
    await expect(patient.inspect(writeModule(code))).rejects.toMatchObject({
      kind: "invalid_request",
      message: expect.stringContaining("ran out of memory"),
    });
  });

  it("one that works, after all of them", async () => {
    await expect(host.inspect(writeModule(working))).resolves.toBeDefined();
    expect(host.processes()).toEqual([]);
  });
});

describe("at setup", () => {
  const cases: readonly (readonly [name: string, setup: string, kind: string, message: string])[] = [
    ["throws", `throw new Error("no region")`, "upstream_failed", "cannot be set up: no region"],
    [
      "blames the settings",
      `throw Object.assign(new Error("bad region"), { code: "invalid_request" })`,
      "invalid_request",
      "bad region",
    ],
    [
      "tells its secret",
      `throw new Error("key " + context.secrets.key + " is refused")`,
      "upstream_failed",
      "key *** is refused",
    ],
    ["returns nothing", ``, "upstream_failed", "has no function generateDefinition"],
    ["never answers", `return new Promise(() => setTimeout(() => {}, 1e6))`, "timeout", "was not ready within 2000 ms"],
    ["exits", `process.exit(0)`, "upstream_failed", "ended with exit code 0"],
  ];
  it.each(cases)("one that %s", async (_name, setup, kind, message) => {
    const code = `export default { type: "adapter", setup(context) { ${setup} } }`;
    const opening = host.openAdapter(hosted(writeModule(code), { secrets: { key: "hunter2-hunter2" } }));
    const failure = (await opening.then(
      () => undefined,
      (error: unknown) => error,
    )) as { kind: string; message: string };
    expect(failure).toMatchObject({ kind });
    expect(failure.message).toContain(message);
    expect(host.processes()).toEqual([]);
  });
});
