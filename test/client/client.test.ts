/** `troupe/client` against the real server, over both protocols: results, errors, waits across a restart, deadlines. */
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  createTroupeClient,
  ProcessExitState,
  ProcessState,
  type TroupeClient,
  type TroupeClientOptions,
  TroupeError,
} from "../../src/client/client.ts";
import { removeFolder, type Server, startServer } from "../e2e/server.ts";

const keys = { agent: "agent-key-of-the-test", operator: "operator-key-of-the-test" };

let server: Server;
const clients: TroupeClient[] = [];

beforeAll(async () => {
  server = await startServer({
    settings: { SERVICE_API_KEYS: `robot:agent:${keys.agent},boss:operator:${keys.operator}` },
  });
});

afterAll(async () => {
  for (const client of clients) client.close();
  await server.kill("SIGTERM");
  await removeFolder(server.folder);
});

function connect(options: Partial<TroupeClientOptions> = {}): TroupeClient {
  const client = createTroupeClient({ baseUrl: `http://${server.grpc}`, apiKey: keys.operator, ...options });
  clients.push(client);
  return client;
}

async function refusal(work: Promise<unknown>): Promise<TroupeError> {
  try {
    await work;
  } catch (error) {
    expect(error).toBeInstanceOf(TroupeError);
    return error as TroupeError;
  }
  throw new Error("The call was not refused");
}

const endless = "await new Promise((done) => setTimeout(done, 120_000));";

describe.each(["connect", "grpc"] as const)("over %s", (protocol) => {
  it("has the operations of every service", async () => {
    const client = connect({ protocol });
    expect((await client.modules.listModules({ isBuiltin: true })).items.map(({ id }) => id)).toContain("openapi");
    expect((await client.registries.listRegistries({})).items).toEqual([]);
    expect((await client.services.listServices({})).items).toEqual([]);
    expect((await client.tools.getEnvironmentDocs({})).docs).toContain("output(");
    expect((await client.processes.listProcesses({ ref: "none of these" })).hasMore).toBe(false);
    expect((await client.logs.listLogs({ limit: 1 })).items).toHaveLength(1);
  });

  it("follows a process for longer than a call may take, and rejects a stream as it does a call", async () => {
    const client = connect({ protocol, timeoutMs: 500 });
    const code = `console.log("first"); await new Promise((done) => setTimeout(done, 1_000)); console.log("second");`;
    const { id } = await client.processes.createProcess({ code });
    let printed = "";
    for await (const { text = "" } of client.processes.watchProcess({ id })) printed += text;
    expect(printed).toBe("first\nsecond\n");
    const iterate = async () => {
      for await (const _ of client.processes.watchProcess({ id: 999_999n })) throw new Error("There is an event");
    };
    expect((await refusal(iterate())).code).toBe("not_found");
  });

  it("runs a program and answers its snapshot, output, stdout and stderr", async () => {
    const client = connect({ protocol, apiKey: keys.agent });
    const code = `console.log("out"); console.error("err"); return { got: env.word };`;
    const run = await client.runProcess({ code, ref: "a run", envConfig: { word: "hello" }, timeoutMs: null });
    expect(run).toMatchObject({ output: { got: "hello" }, stdout: "out\n", stderr: "err\n" });
    expect(run.snapshot).toMatchObject({ state: ProcessState.IDLE, exitState: ProcessExitState.SUCCESS, ref: "a run" });
    expect(await client.waitForProcess(Number(run.snapshot.id))).toEqual(run.snapshot);
  });

  it("answers a program that failed, or took too long, like any other", async () => {
    const client = connect({ protocol });
    const failed = await client.runProcess({ code: `throw new Error("no luck")` });
    expect(failed.snapshot).toMatchObject({ exitState: ProcessExitState.FAILED, error: "no luck" });
    const late = await client.runProcess({ code: endless, timeoutMs: 100 });
    expect(late.snapshot.exitState).toBe(ProcessExitState.TIMEOUT);
  });

  it("rejects with the server's code, sentence and fields", async () => {
    const client = connect({ protocol });
    const unknown = await refusal(client.processes.getProcess({ id: 999_999n }));
    expect(unknown).toMatchObject({ code: "not_found", message: "There is no process 999999", fields: [] });
    const wrong = await refusal(client.processes.createProcess({ code: "1", timeoutMs: -1 }));
    expect(wrong.code).toBe("invalid_request");
    expect(wrong.fields).toEqual([{ field: "timeoutMs", description: "must be above 0" }]);
    expect((await refusal(client.waitForProcess(999_999))).code).toBe("not_found");
    expect((await refusal(client.runProcess({ code: "x".repeat(102_401) }))).code).toBe("invalid_request");
  });

  it("rejects without a key, with a wrong one, and with one whose role is too small", async () => {
    const codes = [];
    for (const apiKey of [undefined, "wrong", keys.agent]) {
      const client = connect({ protocol, apiKey });
      codes.push((await refusal(client.modules.reloadModules({}))).code);
    }
    expect(codes).toEqual(["unauthenticated", "unauthenticated", "forbidden"]);
  });

  it("stops waiting when its time is over or its signal says so, and leaves the run alone", async () => {
    const client = connect({ protocol });
    const { id } = await client.processes.createProcess({ code: endless });
    const late = await refusal(client.waitForProcess(id, { timeoutMs: 300 }));
    expect(late).toMatchObject({ code: "timeout", message: `Process ${id} is not idle after 300 ms` });
    const stop = new AbortController();
    const waiting = refusal(client.waitForProcess(id, { signal: stop.signal }));
    await sleep(200);
    stop.abort();
    expect((await waiting).code).toBe("cancelled");
    expect((await client.processes.getProcess({ id })).process?.state).not.toBe(ProcessState.IDLE);
    await client.processes.killProcess({ id });
    expect((await client.waitForProcess(id)).exitState).toBe(ProcessExitState.CANCELED);
  });

  it("is closed for good: calls in flight fail, and so do later ones", async () => {
    const client = connect({ protocol });
    const { id } = await client.processes.createProcess({ code: endless });
    const waiting = refusal(client.processes.getProcess({ id, wait: 30 }));
    await sleep(200);
    client.close();
    expect((await waiting).code).toBe("connection_lost");
    expect((await refusal(client.processes.getProcess({ id }))).message).toBe("The client is closed");
    await connect({ protocol }).processes.killProcess({ id });
  });

  it("says that nothing is there, within its deadline, and tries what was never sent again", async () => {
    const client = connect({ protocol, baseUrl: `http://127.0.0.1:${await freePort()}`, timeoutMs: 20_000 });
    const read = await refusal(client.processes.getProcess({ id: 1n }));
    const create = await refusal(client.processes.createProcess({ code: "1" }));
    expect([read.code, create.code]).toEqual(["unavailable", "unavailable"]);
    const late = await refusal(client.processes.createProcess({ code: "1" }, { timeoutMs: 250.5 }));
    expect(late.code).toBe("timeout");
  });

  it("waits on while the server is killed and started again", async () => {
    const port = await freePort();
    const settings = { SERVICE_GRPC_PORT: String(port) };
    const first = await startServer({ settings });
    const client = connect({ protocol, baseUrl: `http://127.0.0.1:${port}`, apiKey: undefined });
    const { id } = await client.processes.createProcess({ code: endless });
    const waiting = client.waitForProcess(id, { timeoutMs: 60_000 });
    await sleep(500);
    await first.kill();
    const second = await startServer({ folder: first.folder, settings });
    expect(await waiting).toMatchObject({ state: ProcessState.IDLE, exitState: ProcessExitState.FAILED });
    await second.kill();
    await removeFolder(first.folder);
  });
});

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, "close");
  return port;
}
