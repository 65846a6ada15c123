/**
 * MCP over real sockets and real pipes, with the official client: given only the URL (and a key) it finds a tool, reads its docs, runs
 * code that calls it and reads the output. The same over `troupe mcp`, whose service goes away and comes back in between.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { CallToolResult, Progress } from "@modelcontextprotocol/sdk/types.js";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type PetStore, startPetStore } from "../../src/demo/pet-store.ts";
import { petStoreDocument } from "../../src/demo/pet-store-document.ts";
import { removeFolder, type Server, startServer } from "./server.ts";

const main = resolve(import.meta.dirname, "../../src/main.ts");
const keys = { agent: "agent-key-of-the-test", operator: "operator-key-of-the-test" };
const settings = { SERVICE_API_KEYS: `robot:agent:${keys.agent},boss:operator:${keys.operator}` };
const asOperator = { authorization: `Bearer ${keys.operator}` };

let server: Server;
let store: PetStore;
const open: Client[] = [];

beforeAll(async () => {
  store = await startPetStore({ port: 0, apiKey: "pets" });
  server = await startServer({ settings });
  const does = async (method: string, path: string, body: unknown) => {
    const { status, text } = await server.call(method, path, body, asOperator);
    if (status >= 300) throw new Error(`${method} ${path} answered ${status}: ${text}`);
  };
  await does("POST", "/services", { id: "petstore", adapter: "openapi", definition: petStoreDocument });
  await does("PATCH", "/services/petstore/config", [
    { op: "add", path: "/serverUrl", value: `http://127.0.0.1:${store.port}/v1` },
  ]);
  await does("PATCH", "/services/petstore/secrets", [{ op: "add", path: "/petKey", value: "pets" }]);
  await does("POST", "/services/petstore/enabled", { enabled: true });
});

afterEach(async () => {
  for (const client of open.splice(0)) await client.close();
});

afterAll(async () => {
  await server.kill("SIGTERM");
  await store.close();
  await removeFolder(server.folder);
});

async function overHttp(key: string | undefined = keys.agent, url = server.http): Promise<Client> {
  const requestInit = key === undefined ? {} : { headers: { authorization: `Bearer ${key}` } };
  const transport = new StreamableHTTPClientTransport(new URL("/mcp", url), { requestInit });
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  open.push(client);
  return client;
}

async function overStdio(env: Record<string, string> = {}, args: readonly string[] = []): Promise<Client> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [main, "mcp", ...args],
    env: { TROUPE_URL: server.http, TROUPE_API_KEY: keys.agent, ...env },
    stderr: "ignore",
  });
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport);
  open.push(client);
  return client;
}

const faces = [
  ["POST /mcp", overHttp as () => Promise<Client>],
  ["troupe mcp", overStdio as () => Promise<Client>],
] as const;

// biome-ignore lint/suspicious/noExplicitAny: results have many shapes
type Structured = any;

async function call(client: Client, name: string, args: Record<string, unknown> = {}, options = {}) {
  const result = (await client.callTool({ name, arguments: args }, undefined, options)) as CallToolResult;
  const texts = result.content.map((block) => (block.type === "text" ? block.text : ""));
  return {
    ...result,
    text: texts[0] ?? "",
    texts,
    structured: result.structuredContent as Structured,
  };
}

const endless = "await new Promise((done) => setTimeout(done, 120_000));";

describe.each(faces)("a client given only %s", (_name, connect) => {
  it("learns what this is and how to go about it", async () => {
    const client = await connect();
    expect(client.getServerVersion()).toMatchObject({
      name: "troupe",
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    });
    expect(client.getInstructions()).toContain("search_tools");
    expect(client.getServerCapabilities()).toEqual({ tools: {} });
    await client.ping();
  });

  it("finds a tool, reads its docs, runs code that calls it, and reads the output", async () => {
    const client = await connect();
    const found = await call(client, "search_tools", { query: "list pets", limit: 3 });
    const [best] = found.structured.items;
    expect(best).toMatchObject({ serviceId: "petstore", toolId: "listPets", callable: true });
    expect(JSON.parse(found.text)).toEqual(found.structured);

    const docs = await call(client, "get_tool_docs", { serviceId: best.serviceId, toolId: best.toolId });
    expect(docs.text).toContain("services.petstore.listPets");
    const environment = await call(client, "get_environment_docs");
    expect(environment.text).toContain("output(");

    const code = `
      const { status, body } = await services.petstore.listPets({ query: { limit: 2 } });
      console.log("asked");
      return { status, count: body.pets?.length ?? body.length };`;
    const run = await call(client, "run_process", { code, ref: "from mcp" });
    expect(run.isError ?? false).toBe(false);
    expect(run.structured).toEqual({
      snapshot: expect.objectContaining({ state: "idle", exitState: "success", ref: "from mcp" }),
      output: { status: 200, count: 2 },
      stdout: "asked\n",
      stderr: "",
    });
    expect(JSON.parse(run.text)).toEqual(run.structured);

    const again = await call(client, "get_process", { id: run.structured.snapshot.id });
    expect(again.structured).toEqual(run.structured);
    const once = await call(client, "invoke_tool", { ...toolOf(best), parameters: { query: { limit: 1 } } });
    expect(once.structured).toMatchObject({ result: { status: 200 } });
  });

  it("is told of progress while it waits: states, and what was printed", async () => {
    const client = await connect();
    const steps: Progress[] = [];
    const code = `for (let i = 0; i < 3; i++) { console.log("step " + i); await new Promise((d) => setTimeout(d, 1200)); }`;
    const run = await call(client, "run_process", { code }, { onprogress: (step: Progress) => steps.push(step) });
    expect(run.structured.snapshot.exitState).toBe("success");
    expect(steps.length).toBeGreaterThan(1);
    const said = steps.map(({ message }) => message).join("\n");
    expect(said).toContain(`Process ${run.structured.snapshot.id} is`);
    expect(said).toContain("step 1");
    for (const [at, step] of steps.entries()) {
      expect(step.total).toBe(30);
      if (at > 0) expect(step.progress).toBeGreaterThan(steps[at - 1]!.progress);
    }
  });

  it("is told how to go on when a program outlasts its wait, goes on, and stops it", async () => {
    const client = await connect();
    const run = await call(client, "run_process", { code: `console.log("begun"); ${endless}`, wait: 1 });
    const { id } = run.structured.snapshot;
    expect(run.structured).toMatchObject({ snapshot: { state: "running" }, stdout: "begun\n" });
    expect(run.structured.next).toContain(`get_process with {"id": ${id}`);
    expect(run.structured).not.toHaveProperty("output");
    expect((await call(client, "kill_process", { id })).structured.snapshot.state).toMatch(/terminating|idle/);
    const ended = await call(client, "get_process", { id, wait: 10 });
    expect(ended.structured).toMatchObject({ snapshot: { state: "idle", exitState: "canceled" }, stdout: "begun\n" });
  });

  it("cancels a wait and leaves the run alone", async () => {
    const client = await connect();
    const stop = new AbortController();
    let said = "";
    const waiting = call(
      client,
      "run_process",
      { code: endless, ref: "left alone" },
      {
        signal: stop.signal,
        onprogress: ({ message }: Progress) => {
          said += message;
          stop.abort("not needed any more");
        },
      },
    );
    await expect(waiting).rejects.toThrow("not needed any more");
    const id = Number(/Process (\d+)/.exec(said)?.[1]);
    await sleep(200);
    expect((await call(client, "get_process", { id })).structured.snapshot.state).toMatch(/queued|running/);
    await call(client, "kill_process", { id });
  });

  it("gets refusals as results of the tool, with a sentence and a code", async () => {
    const client = await connect();
    const refusals: [string, Record<string, unknown>, string, string][] = [
      ["get_process", { id: 999_999 }, "not_found", "There is no process 999999"],
      ["get_process", { id: "first" }, "invalid_request", 'Field "id" is not valid'],
      ["get_process", { id: 1, wait: -1 }, "invalid_request", 'Field "wait" is not valid'],
      ["get_process", {}, "invalid_request", 'Field "id" is not valid'],
      ["run_process", {}, "invalid_request", 'Field "code" is not valid: required'],
      ["run_process", { code: "x".repeat(102_401) }, "invalid_request", "at most 102400 characters"],
      ["run_process", { code: "1", wait: "long" }, "invalid_request", 'Field "wait" is not valid'],
      ["run_process", { code: "1", timeoutMs: 0 }, "invalid_request", 'Field "timeoutMs" is not valid'],
      ["search_tools", { cursor: "!" }, "invalid_cursor", ""],
      ["search_tools", { limit: 0 }, "invalid_request", 'Field "limit" is not valid'],
      ["get_tool_docs", { serviceId: "petstore", toolId: "nothing" }, "not_found", 'has no tool "nothing"'],
      ["invoke_tool", { serviceId: "nobody", toolId: "x" }, "not_found", '"nobody"'],
      ["invoke_tool", { serviceId: "petstore", toolId: "getPet", parameters: {} }, "invalid_request", "path"],
      ["kill_process", { id: 1 }, "conflict", ""],
    ];
    const before = (await server.call("GET", "/processes?limit=1", undefined, asOperator)).body.items[0].id;
    for (const [name, args, code, sentence] of refusals) {
      const { isError, text, structured } = await call(client, name, args);
      expect([name, args, isError, structured.code]).toEqual([name, args, true, code]);
      expect(text).toBe(`${structured.error} (code: ${code})`);
      expect(structured.error).toContain(sentence);
    }
    const after = (await server.call("GET", "/processes?limit=1", undefined, asOperator)).body.items[0].id;
    expect(after).toBe(before);
  });

  it("gets a program's own failure as a result like any other", async () => {
    const client = await connect();
    const { isError, structured } = await call(client, "run_process", { code: `throw new Error("no luck")` });
    expect(isError ?? false).toBe(false);
    expect(structured).toMatchObject({
      snapshot: { exitState: "failed", error: "no luck" },
      reason: "thrown",
      output: {},
      stderr: expect.stringContaining("no luck"),
    });
  });

  it("gets large results cut, with what is small whole, and a note where the rest is", async () => {
    const client = await connect();
    const code = `console.error("small"); return { text: "\\u{1F600}".repeat(200_000) };`;
    const { structured, texts } = await call(client, "run_process", { code });
    expect(structured).toBeUndefined();
    const [head, output, stderr, whole] = texts;
    const { id } = JSON.parse(head ?? "").snapshot;
    expect(output).toMatch(/^output, the first \d+ of 400011 characters:\n\{"text":"/);
    expect(output?.isWellFormed()).toBe(true);
    expect(stderr).toBe("stderr:\nsmall\n");
    expect(whole).toContain(`GET /processes/${id}/output`);
    expect(texts.join("").length).toBeLessThan(257 * 1024);
  });

  it("is told that there is no such tool or method by an error of the protocol", async () => {
    const client = await connect();
    await expect(call(client, "format_disk")).rejects.toMatchObject({ code: -32602 });
    await expect(client.listResources()).rejects.toThrow();
  });
});

const toolOf = ({ serviceId, toolId }: { serviceId: string; toolId: string }) => ({ serviceId, toolId });

it("a client that goes away ends its wait and not the run", async () => {
  const client = await overHttp();
  let said = "";
  const seen = Promise.withResolvers<void>();
  const waiting = call(
    client,
    "run_process",
    { code: endless },
    {
      onprogress: ({ message }: Progress) => {
        said += message;
        seen.resolve();
      },
    },
  );
  waiting.catch(() => undefined);
  await seen.promise;
  await client.close();
  const id = Number(/Process (\d+)/.exec(said)?.[1]);
  await sleep(1_200);
  const snapshot = await server.call("GET", `/processes/${id}`, undefined, asOperator);
  expect(snapshot.body.state).toMatch(/queued|running/);
  await server.call("POST", `/processes/${id}/signals/kill`, {}, asOperator);
});

describe("keys", () => {
  it("are asked for, and agents may do all that this face offers", async () => {
    await expect(overHttp("wrong-key")).rejects.toThrow(/401|bearer/i);
    const none = await server.call("POST", "/mcp", { jsonrpc: "2.0", id: 1, method: "ping" });
    expect([none.status, none.body.code, none.headers.get("www-authenticate")]).toEqual([
      401,
      "unauthenticated",
      "Bearer",
    ]);
    for (const key of [keys.agent, keys.operator]) {
      const { tools } = await (await overHttp(key)).listTools();
      expect(tools).toHaveLength(7);
    }
  });
});

describe("troupe mcp", () => {
  it("takes its key from a file, and its URL from an option", async () => {
    const file = join(server.folder, "agent.key");
    await writeFile(file, `${keys.agent}\n`);
    const client = await overStdio({ TROUPE_API_KEY: "", TROUPE_URL: "" }, [
      "--url",
      `${server.http}/`,
      "--key-file",
      file,
    ]);
    expect((await client.listTools()).tools).toHaveLength(7);
  });

  it("tells a client with a wrong key so, and stays", async () => {
    const { answers, ended } = await lines({ TROUPE_API_KEY: "wrong" }, [
      { jsonrpc: "2.0", id: "a", method: "ping" },
      { jsonrpc: "2.0", id: 0, method: "ping" },
    ]);
    expect(answers.map(({ id, error }) => [id, error.code, error.data.code])).toEqual([
      ["a", -32000, "unauthenticated"],
      [0, -32000, "unauthenticated"],
    ]);
    expect(ended).toEqual({ code: 0, stderr: "" });
  });

  it("answers for a service that is not there, and works as soon as it is", async () => {
    const port = await freePort();
    const client = new StdioClient({ TROUPE_URL: `http://127.0.0.1:${port}`, TROUPE_API_KEY: "" });
    const first = await client.ask({ jsonrpc: "2.0", id: 1, method: "ping" });
    expect(first.error.message).toContain("nothing listens there");
    const late = await startServer({ settings: { SERVICE_HTTP_PORT: String(port) } });
    expect(await client.ask({ jsonrpc: "2.0", id: 2, method: "ping" })).toEqual({ jsonrpc: "2.0", id: 2, result: {} });
    await late.kill();
    expect((await client.ask({ jsonrpc: "2.0", id: 3, method: "ping" })).error.code).toBe(-32000);
    const again = await startServer({ folder: late.folder, settings: { SERVICE_HTTP_PORT: String(port) } });
    expect(await client.ask({ jsonrpc: "2.0", id: 4, method: "ping" })).toEqual({ jsonrpc: "2.0", id: 4, result: {} });
    expect(await client.end()).toEqual({ code: 0, stderr: "" });
    await again.kill();
    await removeFolder(late.folder);
  });

  it("answers what is no message by an error without an id, and goes on", async () => {
    const { answers } = await lines({}, [
      "{",
      "",
      `"${"x".repeat(2 * 1024 * 1024)}"`,
      "null",
      { jsonrpc: "2.0", id: 1, method: "ping" },
    ]);
    const codes = answers.filter(({ id }) => id === null).map(({ error }) => error.code);
    expect(codes.sort()).toEqual([-32600, -32700]);
    expect(answers.filter(({ id }) => id === 1)).toEqual([{ jsonrpc: "2.0", id: 1, result: {} }]);
  });

  it.each([
    ["a word too many", ["now"], {}, 64],
    ["an unknown option", ["--port", "1"], {}, 64],
    ["a URL that is none", ["--url", "somewhere"], {}, 78],
    ["a URL with credentials", ["--url", "http://user:SECRET@127.0.0.1:1"], {}, 78],
    ["a key with a line break", [], { TROUPE_API_KEY: "SECRET\nx" }, 78],
    ["a key file that is not there", ["--key-file", "/nowhere/key"], {}, 78],
  ])("does not begin with %s", async (_what, args, env, code) => {
    const child = new StdioClient(env, args);
    const ended = await child.ended;
    expect(ended.code).toBe(code);
    expect(ended.stderr).toMatch(/./);
    expect(ended.stderr).not.toContain("SECRET");
  });
});

/** A client that writes what it likes, line by line. */
class StdioClient {
  readonly answers: Structured[] = [];
  readonly ended: Promise<{ code: number; stderr: string }>;
  readonly #child;
  #onLine: () => void = () => undefined;

  constructor(env: Record<string, string> = {}, args: readonly string[] = []) {
    const settings = { TROUPE_URL: server.http, TROUPE_API_KEY: keys.agent, ...env };
    this.#child = spawn(process.execPath, [main, "mcp", ...args], { env: settings, stdio: "pipe" });
    let stderr = "";
    this.#child.stderr.on("data", (chunk) => {
      stderr += String(chunk);
    });
    this.ended = once(this.#child, "close").then(([code]) => ({ code: code as number, stderr }));
    let rest = "";
    this.#child.stdout.on("data", (chunk) => {
      const whole = (rest + String(chunk)).split("\n");
      rest = whole.pop() ?? "";
      for (const line of whole) this.answers.push(JSON.parse(line));
      this.#onLine();
    });
  }

  send(message: unknown): void {
    this.#child.stdin.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`);
  }

  async ask(message: { readonly id: number; readonly [field: string]: unknown }): Promise<Structured> {
    this.send(message);
    for (;;) {
      const found = this.answers.find(({ id }) => id === message.id);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        this.#onLine = resolve;
      });
    }
  }

  end() {
    this.#child.stdin.end();
    return this.ended;
  }
}

/** All lines at once, then the end: what is in flight is still answered. */
async function lines(env: Record<string, string>, messages: readonly unknown[]) {
  const client = new StdioClient(env);
  for (const message of messages) client.send(message);
  const ended = await client.end();
  return { answers: client.answers, ended };
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, "close");
  return port;
}
