/** `npm run demo` as a user runs it: exit codes, what is printed, and that nothing is left behind. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { petStoreDocument } from "../../src/demo/pet-store-document.ts";

const demo = fileURLToPath(new URL("../../src/demo/demo.ts", import.meta.url));
/** A cold start of the server and its children on a busy machine. */
const runMsMax = 120_000;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe-e2e-"));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** TMPDIR is a folder of the test's own, so that what is left behind can be seen. */
function start(...words: string[]) {
  const child = spawn(process.execPath, [demo, ...words], { env: { ...process.env, TMPDIR: folder } });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = once(child, "close").then(([code]): Ended => ({ code: code as number | null, stdout, stderr }));
  return { child, ended, printed: () => stdout };
}

async function printed(run: { child: ChildProcess; printed(): string }, text: string): Promise<void> {
  while (!run.printed().includes(text)) {
    if (run.child.exitCode !== null) throw new Error(`The demo ended without printing "${text}":\n${run.printed()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function expectNothingLeft(stdout: string): Promise<void> {
  expect((await readdir(folder)).filter((name) => name.startsWith("troupe-demo-"))).toEqual([]);
  const base = /Troupe: (http:\S+)/.exec(stdout)?.[1];
  if (base !== undefined) await expect(fetch(base)).rejects.toThrow("fetch failed");
}

test("the demo goes from the document to the output of a program", { timeout: runMsMax }, async () => {
  const { code, stdout, stderr } = await start().ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const commands = stdout.split("\n").filter((line) => line.startsWith("$ curl "));
  expect(commands.map((line) => line.replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, "BASE"))).toEqual([
    "$ curl -sS BASE/services \\",
    "$ curl -sS -X PATCH BASE/services/petstore/config \\",
    "$ curl -sS -X PATCH BASE/services/petstore/secrets \\",
    "$ curl -sS BASE/services/petstore/enabled \\",
    "$ curl -sS 'BASE/tools?limit=100'",
    "$ curl -sS BASE/processes \\",
    "$ curl -sS 'BASE/processes/1?wait=30'",
    "$ curl -sS BASE/processes/1/stdout",
    "$ curl -sS BASE/processes/1/output",
    "$ curl -sS BASE/registries \\",
    "$ curl -sS BASE/registries/dev-registry/auth \\",
    "$ curl -sS 'BASE/registries/dev-registry/definitions?query=pet'",
    "$ curl -sS BASE/services \\",
    "$ curl -sS -X PATCH BASE/services/shop/config \\",
    "$ curl -sS -X PATCH BASE/services/shop/secrets \\",
    "$ curl -sS BASE/services/shop/enabled \\",
    "$ curl -sS BASE/processes \\",
    "$ curl -sS 'BASE/processes/2/output?wait=30'",
  ]);
  expect(stdout).toContain("created pet 4");
  const output = /this is its output:\n(\{.*?\n\})\n/s.exec(stdout)?.[1] ?? "";
  expect(JSON.parse(output)).toEqual({
    calm: expect.arrayContaining(["Tapir Tom", "Cat Clara"]),
    created: { id: 4, name: "Otter Olga", status: "available", tags: ["calm", "new"], bornOn: null },
    photo: "image/png",
    pets: 4,
  });
  expect(stdout).toMatch(/counts the same pets:\n\{\n {2}"pets": 4/);
  await expectNothingLeft(stdout);
});

test("the demo shows the tools and docs of a document in a file", { timeout: runMsMax }, async () => {
  const file = join(folder, "my pets.json");
  await writeFile(file, JSON.stringify(petStoreDocument));
  const { code, stdout, stderr } = await start(file).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain(`jq -Rs '{id: "my_pets", adapter: "openapi", definition: .}' '${file}' |`);
  expect(stdout).toContain('"serverVar_port"');
  expect(stdout).toContain('"petKey"');
  expect(stdout).toContain("await services.my_pets.createPet(");
  await expectNothingLeft(stdout);
});

test("the demo installs a document from a URL", { timeout: runMsMax }, async () => {
  const server = createServer((_, response) => response.end(JSON.stringify(petStoreDocument)));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/pets.json`;
  const { code, stdout, stderr } = await start(url).ended.finally(() => server.close());
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain(`-d '{"adapter":"openapi","url":"${url}"}'`);
  await expectNothingLeft(stdout);
});

test.each([
  ["a file that is not there", async () => join(folder, "gone.yaml"), 'gone.yaml": there is no such file'],
  ["a folder", async () => folder, "it is a folder"],
  [
    "a URL nobody answers",
    async () => "http://127.0.0.1:9/openapi.json",
    "Step 1 was answered with 502 instead of 201",
  ],
  ["a file that is not OpenAPI", () => fileWith("notes.md", "# Notes"), "Step 1 was answered with 400 instead of 201"],
])("the demo ends with 1 and the reason for %s", { timeout: runMsMax }, async (_, prepare, reason) => {
  const { code, stdout, stderr } = await start(await prepare()).ended;
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(reason) });
  await expectNothingLeft(stdout);
});

async function fileWith(name: string, text: string): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, text);
  return file;
}

test.each([[["--help"]], [["a.json", "b.json"]]])("the words %j are answered with the usage", async (words) => {
  const { code, stderr } = await start(...words).ended;
  expect({ code, stderr }).toEqual({ code: 64, stderr: "Usage: npm run demo [-- FILE_OR_URL]\n" });
});

test("an interrupted demo cleans up", { timeout: runMsMax }, async () => {
  const run = start();
  await printed(run, "# 1.");
  run.child.kill("SIGINT");
  const { code, stdout, stderr } = await run.ended;
  expect({ code, stderr }).toEqual({ code: 130, stderr: "" });
  await expectNothingLeft(stdout);
});

test("a demo whose reader has gone cleans up", { timeout: runMsMax }, async () => {
  const run = start();
  await printed(run, "Troupe:");
  run.child.stdout?.destroy();
  const { stdout } = await run.ended;
  await expectNothingLeft(stdout);
});
