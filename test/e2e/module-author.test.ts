/**
 * The whole way of a module that somebody writes: made by the scaffold, published, installed through REST, enabled, called from a
 * program, brought to its next version by the sweep, gone back from when that is broken, and deleted.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runModuleNew } from "../../src/cli/module-new.ts";
import { type DevRegistry, startDevRegistry } from "../../src/dev-registry/dev-registry.ts";
import { packModule } from "../dev-registry/pack-module.ts";
import { removeFolder, type Server, startServer } from "./server.ts";

let server: Server;
let registry: DevRegistry;
let workshop: string;

beforeAll(async () => {
  workshop = await mkdtemp(join(tmpdir(), "troupe-author-"));
  registry = await startDevRegistry();
  server = await startServer({ settings: { SERVICE_AUTO_UPDATE_INTERVAL_MS: "300" } });
  expect((await server.post("/registries", { baseUrl: registry.url })).status).toBe(201);
});

afterAll(async () => {
  await registry.close();
  await server.kill("SIGTERM");
  await removeFolder(server.folder);
  await removeFolder(workshop);
});

const folder = (): string => join(workshop, "bookmarks");

/** Changes files of the module and puts it on offer as another version. */
function release(version: string, edit: (main: string) => string = (main) => main): void {
  const manifestFile = join(folder(), "package.json");
  const manifest = JSON.parse(readFileSync(manifestFile, "utf8"));
  writeFileSync(manifestFile, JSON.stringify({ ...manifest, version }));
  const mainFile = join(folder(), manifest.troupe.main);
  const main = readFileSync(mainFile, "utf8");
  writeFileSync(mainFile, edit(main));
  registry.publish("modules", { id: "bookmarks", version, content: packModule(folder()) });
  writeFileSync(mainFile, main);
}

const sweeps = (): readonly Record<string, unknown>[] =>
  server.lines.filter((line) => line.includes('"auto-update-sweep"')).map((line) => JSON.parse(line));

/** Until a sweep that began after this moment has ended. */
async function nextSweep(): Promise<Record<string, unknown>> {
  const seen = sweeps().length;
  await expect.poll(() => sweeps().length, { timeout: 20_000 }).toBeGreaterThan(seen + 1);
  return sweeps().at(-1) ?? {};
}

const read = async () => (await server.get("/modules/bookmarks")).body;
const titles = async (): Promise<unknown> => {
  const { id, exitState, error } = await server.run(
    "return (await services.reading.list({})).map(({ title }) => title)",
  );
  expect([exitState, error]).toEqual(["success", null]);
  return (await server.output(id)).result;
};

const list = {
  title: "Reading",
  bookmarks: [
    { id: "a", title: "First", url: "https://a.test/", tags: [] },
    { id: "b", title: "Second", url: "https://b.test/", tags: ["x"] },
  ],
};

it("is made, published, installed, enabled and called", async () => {
  const said: string[] = [];
  const out = { stdout: (text: string) => said.push(text), stderr: (text: string) => said.push(text) };
  expect(runModuleNew(["bookmarks", "--into", workshop], out), said.join("")).toBe(0);
  release("0.1.0");

  const wish = { registryId: "dev-registry", moduleId: "bookmarks", autoUpdate: true, constraint: "^0.1.0" };
  const installed = await server.post("/modules", wish);
  expect([installed.status, installed.body.version], installed.text).toEqual([201, "0.1.0"]);
  expect((await server.post("/modules/bookmarks/enabled", { enabled: true })).status).toBe(200);
  const created = await server.post("/services", { id: "reading", adapter: "bookmarks", definition: list });
  expect(created.status, created.text).toBe(201);
  expect((await server.post("/services/reading/enabled", { enabled: true })).status).toBe(200);
  expect(await titles()).toEqual(["First", "Second"]);
});

it("is updated by the sweep, within its constraint", async () => {
  release("0.2.0");
  expect(await nextSweep()).toMatchObject({ checked: 1, updated: 0, failed: 0, skipped: 1 });
  expect((await read()).version).toBe("0.1.0");
  release("0.1.1");
  await expect.poll(async () => (await read()).version, { timeout: 20_000 }).toBe("0.1.1");
  expect(await read()).toMatchObject({ previousVersion: "0.1.0", enabled: true });
  expect(await titles()).toEqual(["First", "Second"]);
  expect(await nextSweep()).toMatchObject({ checked: 1, updated: 0, failed: 0, skipped: 1 });
});

it("stays at the version that works when the next one is broken, and no sweep gives up the others for it", async () => {
  release("0.1.2", (main) => `throw new Error("Broken at load");\n${main}`);
  expect(await nextSweep()).toMatchObject({ checked: 1, failed: 1 });
  expect(await read()).toMatchObject({ version: "0.1.1", enabled: true, reason: null });
  expect(await titles()).toEqual(["First", "Second"]);
});

it("goes back by itself from a version that takes over and then crashes, and no sweep takes that one again", async () => {
  release("0.1.3", (main) =>
    main.replace(
      "function invoke(",
      "function invoke(...[]: unknown[]): unknown {\n  process.exit(7);\n}\nfunction unused(",
    ),
  );
  await expect.poll(async () => (await read()).version, { timeout: 20_000 }).toBe("0.1.3");
  const crash = async (): Promise<unknown> => {
    await server.post("/tools/reading/list/invoke", {});
    return (await read()).version;
  };
  await expect.poll(crash, { timeout: 40_000, interval: 100 }).toBe("0.1.1");
  await expect
    .poll(async () => (await server.post("/tools/reading/list/invoke", {})).status, { timeout: 10_000 })
    .toBe(200);
  expect(await nextSweep()).toMatchObject({ checked: 1, updated: 0, failed: 0, skipped: 1 });
  expect(await read()).toMatchObject({ version: "0.1.1", enabled: true, reason: null });
  release("0.1.4");
  await expect.poll(async () => (await read()).version, { timeout: 20_000 }).toBe("0.1.4");
  expect(await titles()).toEqual(["First", "Second"]);
});

it("is deleted", async () => {
  expect((await server.call("DELETE", "/modules/bookmarks")).status).toBe(204);
  expect((await server.get("/modules/bookmarks")).status).toBe(404);
  expect((await server.post("/tools/reading/list/invoke", {})).body.code).toBe("unavailable");
  expect(await nextSweep()).toMatchObject({ checked: 0 });
});
