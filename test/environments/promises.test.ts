/** What the environment page promises is so: each promise is tried by a program on a real server. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ServerChild, startServer } from "../../src/demo/server-child.ts";
import { declarations } from "../../src/environments/javascript/declarations.ts";
import { environmentDocs } from "../../src/environments/javascript/environment-docs.ts";

let server: ServerChild;

beforeAll(async () => {
  server = await startServer();
}, 120_000);

afterAll(() => server?.stop());

async function run(code: string, envConfig: object = {}) {
  const response = await fetch(`${server.http}/processes`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ code, envConfig }),
  });
  const { id } = (await response.json()) as { id: number };
  const read = async (path: string) => (await fetch(`${server.http}/processes/${id}${path}`)).text();
  const { exitState, error } = JSON.parse(await read("?wait=30"));
  return {
    exitState,
    error,
    output: JSON.parse(await read("/output")),
    stdout: await read("/stdout"),
    stderr: await read("/stderr"),
  };
}

test("every declared global is there, and what is said to be missing is not", async () => {
  const declared = [...declarations.matchAll(/^declare (?:const|function) (\w+)/gm)].map(([, name]) => name ?? "");
  const web = ["TextEncoder", "TextDecoder", "URL", "URLSearchParams", "AbortController"];
  const missing = ["fetch", "process", "require", "Intl", "WebAssembly"];
  for (const name of [...web, "Intl", "WebAssembly"]) expect(environmentDocs()).toContain(`\`${name}\``);
  const { output } = await run("return Object.fromEntries(env.names.map((name) => [name, typeof globalThis[name]]))", {
    names: [...declared, ...web, ...missing],
  });
  expect(declared.length).toBeGreaterThan(10);
  for (const name of [...declared, ...web]) expect(`${name} ${output[name]}`).toMatch(/ (function|object)$/);
  for (const name of missing) expect(`${name} ${output[name]}`).toBe(`${name} undefined`);
});

test.each([
  [
    "outputs are merged, the returned object last",
    "output({ a: 1, b: 1 }); output({ b: 2 }); return { b: 3 }",
    { a: 1, b: 3 },
  ],
  ["another value is the result", "return [1, 2]", { result: [1, 2] }],
  ["nothing gives an empty object", "", {}],
  ["types are stripped", "const a: number = 1; return a as unknown", { result: 1 }],
  ["env is frozen at every depth", "return [env, env.deep].every(Object.isFrozen)", { result: true }],
  [
    "a failed call throws an Error with code and status",
    "try { await services.none.tool({}) } catch (e) { return { e: e instanceof Error, code: e.code, status: e.status } }",
    { e: true, code: "not_found", status: 404 },
  ],
  ["timers give numbers", "const t = setTimeout(() => {}, 1); clearTimeout(t); return typeof t", { result: "number" }],
])("%s", async (_, code, output) => {
  expect(await run(code, { deep: { a: 1 } })).toMatchObject({ exitState: "success", error: null, output });
});

test.each([
  ["what JSON cannot hold fails the run and keeps earlier output", "output({ a: 1 }); return 1n", /BigInt/, { a: 1 }],
  ["a syntax error names line and column", "let a = 1;\nlet b = ;", /line 2, column 9/, {}],
  ["waiting for nothing fails at once", "await new Promise(() => {})", /./, {}],
  ["an uncaught error is the error of the process", "throw new Error('Oh no')", /^Oh no$/, {}],
])("%s", async (_, code, error, output) => {
  expect(await run(code)).toMatchObject({ exitState: "failed", error: expect.stringMatching(error), output });
});

test("the console goes to stdout and stderr, and stacks have the submitter's lines", async () => {
  const { stdout, stderr } = await run(
    "console.log(1); console.info(2); console.debug(3);\nconsole.warn(4); console.error(5);\nthrow new Error('six')",
  );
  expect(stdout).toBe("1\n2\n3\n");
  expect(stderr).toMatch(/^4\n5\nError: six\n[\s\S]*:3:/);
});
