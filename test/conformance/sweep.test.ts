/** Rows of the sweep: what it cannot update, it leaves, and goes on. `../e2e/module-author.test.ts` has what it does when all is well. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type DevRegistry, startDevRegistry } from "../../src/dev-registry/dev-registry.ts";
import { moduleArchive } from "../../src/dev-registry/offers/modules.ts";
import { sampleModuleSource } from "../../src/dev-registry/offers/sample-modules.ts";
import { removeFolder, type Server, startServer } from "../e2e/server.ts";

let sweeping: Server;
let registry: DevRegistry;

beforeAll(async () => {
  registry = await startDevRegistry();
  sweeping = await startServer({ settings: { SERVICE_AUTO_UPDATE_INTERVAL_MS: "300" } });
});
afterAll(async () => {
  await registry.close();
  await sweeping.kill();
  await removeFolder(sweeping.folder);
});

it("R-059, R-060 goes on past constraints that nothing satisfies and versions that are none", async () => {
  expect((await sweeping.post("/registries", { baseUrl: registry.url })).status).toBe(201);
  const [betas, odd, refused, good] = ["betas", "odd", "refused", "good"];
  const offer = (id: string, version: string, isLatest = true): void => {
    const source = sampleModuleSource("adapter", version);
    const content = moduleArchive({ id, name: id, type: "adapter", description: "A toy", version, source });
    registry.publish("modules", { id, version, content, isLatest });
  };
  for (const id of [betas, odd, refused, good]) {
    const version = id === betas ? "1.0.0-beta.1" : "1.0.0";
    offer(id, version);
    const wish = { registryId: "dev-registry", moduleId: id, version, autoUpdate: true, constraint: "^1.0.0" };
    expect((await sweeping.post("/modules", wish)).status).toBe(201);
  }
  const versionOf = async (id: string): Promise<string> => (await sweeping.get(`/modules/${id}`)).body.version;
  offer(betas, "1.0.0-beta.2");
  for (const version of ["banana", "1.2", "v1.2.3", "1.2.3.4", "01.2.3", `1.0.1-${"x".repeat(200)}..y`]) {
    offer(odd, version, false);
  }
  offer(odd, "1.0.1");
  offer(refused, "banana");
  offer(good, "1.0.1");
  for (const id of [odd, good]) await expect.poll(() => versionOf(id), { timeout: 10_000 }).toBe("1.0.1");
  expect([await versionOf(betas), await versionOf(refused)]).toEqual(["1.0.0-beta.1", "1.0.0"]);
  const sweeps = () => sweeping.lines.filter((line) => line.includes('"auto-update-sweep"'));
  const before = sweeps().length;
  await expect.poll(() => sweeps().length, { timeout: 10_000 }).toBeGreaterThan(before + 1);
  expect(JSON.parse(sweeps().at(-1) ?? "{}")).toMatchObject({ checked: 4, updated: 0, failed: 2, skipped: 2 });
  expect((await sweeping.get("/readyz")).status).toBe(200);
});
