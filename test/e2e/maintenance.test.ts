/**
 * MaintenanceService over real sockets, called by @grpc/grpc-js: a backup is taken while clients write, restored into a new folder and served
 * from there, with its secrets, services and modules; the store is proved; and a drain ends the process with 0 and loses nothing.
 */
import { once } from "node:events";
import { copyFile, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type DescMethod, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PetStore, startPetStore } from "../../src/demo/pet-store.ts";
import { type DevRegistry, startDevRegistry } from "../../src/dev-registry/dev-registry.ts";
import { moduleArchive } from "../../src/dev-registry/offers/modules.ts";
import { sampleModuleSource } from "../../src/dev-registry/offers/sample-modules.ts";
import { DrainState } from "../../src/gen/troupe/v1/maintenance_pb.ts";
import { MaintenanceService } from "../../src/gen/troupe/v1/maintenance_service_pb.ts";
import { writeBackup } from "../../src/maintenance/backup.ts";
import { restore } from "../../src/maintenance/restore.ts";
import { verifyFolder } from "../../src/maintenance/verify-folder.ts";
import { collect } from "../maintenance/parts.ts";
import { removeFolder, type Server, startServer } from "./server.ts";

let server: Server;
let restored: Server;
let registry: DevRegistry;
let pets: PetStore;
let work: string;

beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), "troupe-maintenance-"));
  [server, registry, pets] = await Promise.all([
    startServer({ settings: { SERVICE_SHUTDOWN_TIMEOUT_MS: "2000" } }),
    startDevRegistry(),
    startPetStore({ port: 0, apiKey: "CANARY-pet-key" }),
  ]);
  await server.post("/registries", { baseUrl: registry.url });
  const toy = { id: "toy", name: "toy", type: "adapter", description: "A toy" } as const;
  const content = moduleArchive({ ...toy, version: "1.0.0", source: sampleModuleSource("adapter", "1.0.0") });
  registry.publish("modules", { id: "toy", version: "1.0.0", content });
  expect((await server.post("/modules", { registryId: "dev-registry", moduleId: "toy" })).status).toBe(201);
  expect((await server.post("/modules/toy/enabled", { enabled: true })).status).toBe(200);
  await server.post("/services", { id: "toys", adapter: "toy", definition: "ping\npong" });
  await server.post("/services/toys/enabled", { enabled: true });
  await server.post("/services", { id: "petstore", url: pets.documentUrl });
  await server.patch("/services/petstore/config", { op: "add", path: "/serverVar_port", value: String(pets.port) });
  await server.patch("/services/petstore/secrets", { op: "add", path: "/petKey", value: "CANARY-pet-key" });
  expect((await server.post("/services/petstore/enabled", { enabled: true })).status).toBe(200);
});

afterAll(async () => {
  await server.kill();
  await restored?.kill();
  await Promise.all([registry.close(), pets.close()]);
  for (const folder of [server.folder, work]) await removeFolder(folder);
});

type Methods = typeof MaintenanceService.method;

/** Ends with the stream: rejects with grpc-js's ServiceError. */
async function* call<Name extends keyof Methods>(
  of: Server,
  name: Name,
): AsyncGenerator<MessageShape<Methods[Name]["output"]>> {
  const method: DescMethod = MaintenanceService.method[name];
  const client = new grpc.Client(of.grpc, grpc.credentials.createInsecure());
  const stream = client.makeServerStreamRequest(
    `/troupe.v1.MaintenanceService/${method.name}`,
    (message: MessageShape<DescMethod["input"]>) => Buffer.from(toBinary(method.input, message)),
    (bytes: Buffer) => fromBinary(method.output, bytes),
    create(method.input),
  );
  try {
    for await (const message of stream) yield message as MessageShape<Methods[Name]["output"]>;
  } finally {
    stream.cancel();
    client.close();
  }
}

async function* chunksOf(of: Server): AsyncGenerator<Uint8Array> {
  for await (const { chunk } of call(of, "backup")) if (chunk !== undefined) yield chunk;
}

async function pages(of: Server, path: string): Promise<Record<string, unknown>[]> {
  const items: Record<string, unknown>[] = [];
  for (let cursor = ""; ; ) {
    const { body } = await of.get(`${path}?limit=100${cursor}`);
    items.push(...body.items);
    if (!body.hasMore) return items;
    cursor = `&cursor=${body.nextCursor}`;
  }
}

const findings = async (messages: AsyncIterable<object>): Promise<unknown[]> =>
  (await collect(messages)).flatMap((message) => ("finding" in message ? [message.finding] : []));

describe("a backup of a server that takes writes", () => {
  const before = new Map<number, string>();
  const file = (): string => join(work, "taken.troupe");

  it("is whole, and has everything that was acknowledged before it was asked for", { timeout: 60_000 }, async () => {
    await server.run("console.log('kept'); return { n: 42 }");
    let writing = true;
    let isAsked = false;
    const writers = Array.from({ length: 8 }, async (_, at) => {
      for (let n = 0; writing; n += 1) {
        const isBefore = !isAsked;
        const code = `return "${at}/${n}/${"x".repeat(5_000)}"`;
        const { status, body } = await server.post("/processes", { code, autorun: false });
        expect(status).toBe(200);
        if (isBefore && !isAsked) before.set(body.id, code);
      }
    });
    await expect.poll(() => before.size, { timeout: 20_000 }).toBeGreaterThan(200);
    isAsked = true;
    const summary = await writeBackup(chunksOf(server), file());
    writing = false;
    await Promise.all(writers);
    expect(summary.header).toMatchObject({ packages: 1, packagesLeftOut: [] });
    expect(summary.header.secretsKeyIds).toHaveLength(1);
    expect(summary.counts.entries).toBeGreaterThan(before.size);
    expect((await server.get("/readyz")).status).toBe(200);
  });

  it("becomes an equal server in a new folder, with the same secrets key", { timeout: 60_000 }, async () => {
    const dataDir = join(work, "restored");
    await restore({ file: file(), dataDir });
    expect(await findings(verifyFolder(dataDir))).toEqual([]);
    await copyFile(join(server.folder, "secrets.key"), join(dataDir, "secrets.key"));
    restored = await startServer({ folder: dataDir });
    const ids = new Set((await pages(restored, "/processes")).map(({ id }) => id));
    expect([...before.keys()].filter((id) => !ids.has(id))).toEqual([]);
    const [id, code] = [...before][0] ?? [];
    expect((await restored.get(`/processes/${id}/code`)).text).toBe(code);
    expect(await restored.output(1)).toEqual({ n: 42 });
    expect((await restored.get("/processes/1/stdout")).text).toBe("kept\n");
    for (const path of ["/services", "/modules", "/registries"]) {
      // The module comes into service in the background.
      const expected = await pages(server, path);
      await expect.poll(() => pages(restored, path), { timeout: 20_000, message: path }).toEqual(expected);
    }
    const invoke = async (of: Server, tool: string, parameters = {}) =>
      (await of.post(`/tools/${tool}/invoke`, { parameters })).body;
    await expect
      .poll(() => invoke(restored, "toys/ping"), { timeout: 20_000 })
      .toMatchObject({
        result: { version: "1.0.0" },
      });
    const pet = async (of: Server) => (await invoke(of, "petstore/getPet", { path: { petId: 1 } })).result?.body;
    expect(await pet(server)).toMatchObject({ id: 1 });
    expect(await pet(restored)).toEqual(await pet(server));
    // Numbers go on where they were.
    const { body } = await restored.post("/processes", { code: "", autorun: false });
    expect(body.id).toBeGreaterThan(Math.max(...before.keys()));
  });

  it("holds nothing of a caller who leaves in the middle", async () => {
    for (let round = 0; round < 6; round += 1) {
      for await (const { chunk } of call(server, "backup")) if (chunk !== undefined) break;
    }
    expect((await writeBackup(chunksOf(server), file())).counts.entries).toBeGreaterThan(0);
  });

  it("is refused when two are under way already", async () => {
    const [one, two] = [call(server, "backup"), call(server, "backup")];
    await Promise.all([one.next(), two.next()]);
    await expect(collect(call(server, "backup"))).rejects.toMatchObject({
      code: grpc.status.RESOURCE_EXHAUSTED,
      details: "2 backups or proofs of the store are under way already",
    });
    await Promise.all([one.return(undefined), two.return(undefined)]);
  });
});

describe("a proof of a server that takes writes", () => {
  it("finds nothing on an honest store, and says what it looked at", async () => {
    const messages = await collect(call(server, "verify"));
    expect(messages.flatMap(({ finding }) => finding ?? [])).toEqual([]);
    const { summary } = messages.at(-1) ?? {};
    expect(summary).toMatchObject({ findings: 0n, packages: 1 });
    expect(Number(summary?.records)).toBeGreaterThan(200);
    expect(Number(summary?.secrets)).toBeGreaterThan(0);
  });
});

describe("a drain", () => {
  const drainOf = async (of: Server) => {
    const closed = once(of.child, "close");
    const told = await collect(call(of, "drain"));
    const [code] = (await closed) as [number];
    return { told, code };
  };

  it("lets a run finish, tells how it goes, and ends the process with 0", { timeout: 60_000 }, async () => {
    const code = "await new Promise((resolve) => setTimeout(resolve, 1400)); return { done: true }";
    const { body } = await restored.post("/processes", { code });
    await expect.poll(async () => (await restored.get(`/processes/${body.id}`)).body.state).toBe("running");
    const waiting = restored.get(`/processes/${body.id}?wait=30`);
    const { told, code: exit } = await drainOf(restored);
    expect(exit, restored.lines.slice(-10).join("\n")).toBe(0);
    expect(told[0]).toMatchObject({ state: DrainState.DRAINING, running: 1 });
    expect(told.length).toBeGreaterThan(2);
    expect(told.at(-1)).toMatchObject({ state: DrainState.DRAINED, running: 0 });
    expect((await waiting).body).toMatchObject({ state: "idle", exitState: "success" });
    expect(restored.lines.some((line) => line.includes('Drain by \\"anonymous\\"'))).toBe(true);
    const messages = await collect(verifyFolder(restored.folder));
    expect(messages).toHaveLength(1);
    expect(messages[0]).toMatchObject({ summary: { findings: 0 } });
  });

  it("ends a run that takes longer than there is, and says so", { timeout: 60_000 }, async () => {
    const { body } = await server.post("/processes", { code: "await new Promise(() => setTimeout(() => {}, 60_000))" });
    await expect.poll(async () => (await server.get(`/processes/${body.id}`)).body.state).toBe("running");
    const { told, code } = await drainOf(server);
    expect(told.at(-1)).toMatchObject({ state: DrainState.CUT, running: 1 });
    expect(code, server.lines.slice(-10).join("\n")).toBe(0);
    expect(await findings(verifyFolder(server.folder))).toEqual([]);
  });
});
