/** The examples a reader is sent to, run as they are: a real server, a real pet store, real curl. */
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type PetStore, startPetStore } from "../../src/demo/pet-store.ts";
import { type ServerChild, startServer } from "../../src/demo/server-child.ts";

const folder = fileURLToPath(new URL(".", import.meta.url));
const apiKey = "examples";
let store: PetStore;
let server: ServerChild;

beforeAll(async () => {
  store = await startPetStore({ port: 0, apiKey });
  server = await startServer();
  await send("POST", "/services", { id: "petstore", adapter: "openapi", url: store.documentUrl });
  await send("PATCH", "/services/petstore/config", [{ op: "add", path: "/serverVar_port", value: String(store.port) }]);
  await send("PATCH", "/services/petstore/secrets", [{ op: "add", path: "/petKey", value: apiKey }]);
  await send("POST", "/services/petstore/enabled", { enabled: true });
}, 120_000);

afterAll(async () => {
  await server?.stop();
  await store?.close();
});

async function send(method: string, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(`${server.http}${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path} was answered with ${response.status}: ${text}`);
  return response.headers.get("content-type")?.startsWith("application/json") ? JSON.parse(text) : text;
}

async function run(file: string, options: object) {
  const code = await readFile(`${folder}${file}`, "utf8");
  const { id } = (await send("POST", "/processes", { code, ...options })) as { id: number };
  const { state, exitState, error } = (await send("GET", `/processes/${id}?wait=30`)) as Record<string, unknown>;
  const [output, stdout, stderr] = await Promise.all(
    ["output", "stdout", "stderr"].map((name) => send("GET", `/processes/${id}/${name}`)),
  );
  return { state, exitState, error, output, stdout, stderr };
}

const done = { state: "idle", exitState: "success", error: null };

const programs: Readonly<Record<string, readonly [options: object, outcome: object]>> = {
  "01-hello.ts": [{}, { ...done, output: { hello: "world" } }],
  "02-typescript-and-output.ts": [
    { envConfig: { words: ["a", "bcd"] } },
    {
      ...done,
      output: {
        started: true,
        state: "done",
        counts: [
          { word: "a", letters: 1 },
          { word: "bcd", letters: 3 },
        ],
      },
      stdout: "counted 2\n",
      stderr: "nothing to worry about\n",
    },
  ],
  "03-concurrent-tools.ts": [
    {},
    {
      ...done,
      output: { pets: ["Tapir Tom", "Cat Clara"], waitedMs: [300, 300, 300, 300, 300], tookMs: expect.any(Number) },
    },
  ],
  "04-errors.ts": [
    {},
    {
      state: "idle",
      exitState: "failed",
      error: "The example ends here on purpose",
      output: {
        missing: { status: 404, message: 'No pet has the id "999"' },
        badParameters: { code: "invalid_request", status: 400 },
        unknownTool: { code: "not_found", status: 404 },
      },
      stderr: expect.stringContaining("The example ends here on purpose"),
    },
  ],
  "05-timeout.ts": [
    { timeoutMs: 500 },
    { state: "idle", exitState: "timeout", error: expect.stringContaining("500"), output: { reached: "the loop" } },
  ],
};

const scripts: Readonly<Record<string, readonly [snapshot: object, output: object]>> = {
  "01-hello.sh": [done, { result: "Hello" }],
  "05-timeout.sh": [{ state: "idle", exitState: "timeout" }, { reached: "the loop" }],
};

const clients: Readonly<Record<string, string>> = {
  "06-client.ts": '{ answer: 42 } thinking\nno error\nnot_found There is no service "nobody"\n',
};

test("every example is run here", async () => {
  const files = (await readdir(folder)).filter((file) => /^\d\d-/.test(file)).sort();
  expect(files).toEqual([...Object.keys(programs), ...Object.keys(scripts), ...Object.keys(clients)].sort());
});

test.each(Object.entries(programs))("the program %s ends as it says", async (file, [options, outcome]) => {
  expect(await run(file, options)).toMatchObject(outcome);
});

test.each(Object.entries(scripts))(
  "the script %s prints a snapshot and an output",
  async (file, [snapshot, output]) => {
    const env = { ...process.env, TROUPE_URL: server.http };
    const { stdout } = await promisify(execFile)("sh", [`${folder}${file}`], { env });
    const answers = stdout.trim().split("\n");
    expect(answers.map((line) => JSON.parse(line))).toMatchObject([snapshot, output]);
  },
);

test.each(Object.entries(clients))("the client %s prints what it says", async (file, printed) => {
  // The condition leads from the package's name to these sources, where a user has the built ones.
  const args = ["--conditions=troupe-source", `${folder}${file}`];
  const env = { ...process.env, TROUPE_GRPC_URL: `http://${server.grpc}` };
  expect((await promisify(execFile)(process.execPath, args, { env })).stdout).toBe(printed);
});
