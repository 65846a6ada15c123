/**
 * The auto-update sweep over many modules, some of whose new versions are broken, each in another way. Afterwards the rest are updated, the
 * broken ones work as before, the registry was asked for each descriptor once, and neither the memory of the server nor the number of its
 * module processes has grown with the number of modules. TROUPE_SWEEP_MODULES and TROUPE_SWEEP_FAILING say how many; the long script sweeps
 * 500, of which 5 fail.
 */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DevRegistry, startDevRegistry } from "../../../src/dev-registry/dev-registry.ts";
import { moduleArchive } from "../../../src/dev-registry/offers/modules.ts";
import { brokenModuleSources, sampleModuleSource } from "../../../src/dev-registry/offers/sample-modules.ts";
import { moduleProcessesMax } from "../../../src/limits.ts";
import { inLanes } from "../../../src/packages/lanes.ts";
import { newFolder, removeFolder, type Server, startServer } from "../server.ts";
import { type ServerWatch, watchServer } from "./server-watch.ts";

const modules = Number(process.env.TROUPE_SWEEP_MODULES ?? 8);
const failing = Number(process.env.TROUPE_SWEEP_FAILING ?? 2);
const lanes = 8;
/** From the start of the server: by then it has looked at all modules. */
const sweepAfterMs = 5_000 + modules * 20;
const growthMbMax = 100;

const ids = Array.from({ length: modules }, (_, number) => `many${number}`);
/** Spread over all of them, so that the rest come before and after. */
const failingIds = ids.filter((_, number) => number % Math.floor(modules / failing) === 0).slice(0, failing);
const restIds = ids.filter((id) => !failingIds.includes(id));
/** Calls start the module again: of many, these are enough to know. */
const calledIds = [...failingIds, ...restIds.filter((_, number) => number % Math.ceil(restIds.length / 20) === 0)];

/** In the order in which they are dealt out; the last costs the time limit of a start. */
const faults: readonly ((id: string) => void)[] = [
  (id) => publish(id, "1.1.0", { source: brokenModuleSources["throws-at-load"] }),
  (id) => publish(id, "1.1.0", { hash: createHash("sha256").update("other").digest("hex") }),
  (id) => publish(id, "1.1.0", { engines: ">=99.0.0" }),
  (id) => publish(id, "1.1.0", { source: brokenModuleSources["exits-at-load"] }),
  (id) => publish(id, "1.1.0", { source: brokenModuleSources["never-loads"] }),
];

interface Publishing {
  readonly source?: string;
  readonly hash?: string;
  readonly engines?: string;
}

let folder: string;
let registry: DevRegistry;
let server: Server;
let watch: ServerWatch | undefined;

beforeAll(async () => {
  folder = await newFolder();
  registry = await startDevRegistry();
});

afterAll(async () => {
  watch?.stop();
  await server?.kill("SIGTERM");
  await registry.close();
  await removeFolder(folder);
});

function publish(id: string, version: string, { source, ...more }: Publishing = {}): void {
  const code = source ?? sampleModuleSource("adapter", version);
  const content = moduleArchive({ id, name: id, type: "adapter", description: id, version, source: code });
  registry.publish("modules", { id, version, content, ...more });
}

async function inService(id: string): Promise<void> {
  const expectStatus = async (status: number, path: string, body: object): Promise<void> => {
    const answer = await server.post(path, body);
    expect(answer.status, answer.text).toBe(status);
  };
  await expectStatus(201, "/modules", { registryId: "dev-registry", moduleId: id, autoUpdate: true });
  await expectStatus(200, `/modules/${id}/enabled`, { enabled: true });
  await expectStatus(201, "/services", { id: `s_${id}`, adapter: id, definition: "ping" });
  await expectStatus(200, `/services/s_${id}/enabled`, { enabled: true });
}

const logged = (event: string): Record<string, unknown> | undefined => {
  const line = server.lines.find((text) => text.includes(`"event":"${event}"`));
  return line === undefined ? undefined : JSON.parse(line);
};

async function logging(event: string, mostMs: number): Promise<void> {
  await expect.poll(() => logged(event), { timeout: mostMs }).toBeDefined();
}

async function note(what: string, work: () => Promise<unknown>): Promise<void> {
  const startedAt = performance.now();
  await work();
  console.info(`${what}: ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`);
}

describe(`a sweep over ${modules} modules, of which ${failing} fail`, { timeout: 60_000 + modules * 3_000 }, () => {
  it("begins with all of them installed, enabled and serving", async () => {
    for (const id of ids) publish(id, "1.0.0");
    server = await startServer({ folder });
    watch = watchServer(server.child.pid ?? 0);
    expect((await server.post("/registries", { baseUrl: registry.url })).status).toBe(201);
    await note(`${modules} modules installed and enabled, each with a service`, () => inLanes(ids, lanes, inService));
    console.info("installing", watch.stop());
    expect(watch.stop().processesPeak).toBeLessThanOrEqual(moduleProcessesMax);
    await note("shutdown", () => server.kill("SIGTERM"));
  });

  it("updates the rest, leaves the failing as they were, and stays within its memory", async () => {
    for (const [number, id] of failingIds.entries()) faults[number % faults.length]?.(id);
    for (const id of restIds) publish(id, "1.1.0");
    registry.clearRequests();
    server = await startServer({ folder, settings: { SERVICE_AUTO_UPDATE_INTERVAL_MS: String(sweepAfterMs) } });
    await note("modules looked at after the start", () => logging("modules-started", sweepAfterMs));
    expect(logged("modules-started")).toMatchObject({ modules, faulty: 0 });
    watch = watchServer(server.child.pid ?? 0);
    await note("sweep, with the wait for it", () => logging("auto-update-sweep", 60_000 + modules * 2_000));
    const descriptors = registry.requestCounts("descriptor");
    const seen = watch.stop();
    console.info("sweep", logged("auto-update-sweep"), seen);

    expect(logged("auto-update-sweep")).toMatchObject({
      checked: modules,
      updated: restIds.length,
      failed: failing,
      skipped: 0,
    });
    expect(descriptors).toEqual(Object.fromEntries(ids.map((id) => [`/v1/modules/${id}`, 1])));
    // Nobody has used one since the start.
    expect(seen.processesBegin).toBe(0);
    expect(seen.processesPeak).toBeLessThanOrEqual(moduleProcessesMax);
    expect(seen.rssMbPeak - seen.rssMbBegin).toBeLessThanOrEqual(growthMbMax);
  });

  it("leaves every module in service", async () => {
    await inLanes(ids, lanes, async (id) => {
      const version = failingIds.includes(id) ? "1.0.0" : "1.1.0";
      expect((await server.get(`/modules/${id}`)).body).toMatchObject({ id, version, enabled: true, reason: null });
    });
    await inLanes(calledIds, lanes, async (id) => {
      const version = failingIds.includes(id) ? "1.0.0" : "1.1.0";
      const answer = await server.post(`/tools/s_${id}/ping/invoke`, {});
      expect(answer.body.result, answer.text).toMatchObject({ version });
    });
  });
});
