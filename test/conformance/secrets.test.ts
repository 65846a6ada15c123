/**
 * Rows about what lies on disk and under which key (U-126, U-127, X7, X8).
 *
 * Held elsewhere, word for word:
 *   U-125   test/e2e/registries.test.ts "is kept over a restart: no new exchange, and no secret lies readable on disk or in the log"
 */
import { afterAll, expect, it } from "vitest";
import { type DevRegistry, startDevRegistry } from "../../src/dev-registry/dev-registry.ts";
import { newFolder, removeFolder, type Server, startRefused, startServer } from "../e2e/server.ts";
import { clientSetup, countOf, guarded, keyed, keySetup } from "./site.ts";

const first = Buffer.alloc(32, 1).toString("base64");
const second = Buffer.alloc(32, 2).toString("base64");
const remotes: DevRegistry[] = [];
const folder = await newFolder();
let running: Server | undefined;

afterAll(async () => {
  await running?.kill();
  await Promise.all(remotes.map((remote) => remote.close()));
  await removeFolder(folder);
});

async function restart(settings: Readonly<Record<string, string>>): Promise<Server> {
  await running?.kill("SIGTERM");
  running = await startServer({ folder, settings });
  return running;
}

it("U-126, U-127 keys rotate: read with the previous one, and without it never used anonymously", async () => {
  const byKey = await startDevRegistry({ id: "keyed", ...keyed });
  const byToken = await startDevRegistry({ id: "guarded", ...guarded });
  remotes.push(byKey, byToken);
  let server = await restart({ SERVICE_SECRETS_KEY: first });
  await server.post("/registries", { baseUrl: byKey.url, auth: keySetup });
  await server.post("/registries", { baseUrl: byToken.url, auth: clientSetup });
  const browse = async (): Promise<number[]> =>
    Promise.all(["keyed", "guarded"].map(async (id) => (await server.get(`/registries/${id}/definitions`)).status));
  expect(await browse()).toEqual([200, 200]);

  server = await restart({ SERVICE_SECRETS_KEY: second, SERVICE_SECRETS_PREVIOUS_KEYS: first });
  expect(await browse()).toEqual([200, 200]);
  expect(countOf(byToken, "token")).toBe(1);
  await running?.kill("SIGTERM");
  running = undefined;

  const asked = byKey.requests.length + byToken.requests.length;
  const withoutOld = { SERVICE_SECRETS_KEY: second };
  const other = { SERVICE_SECRETS_KEY: Buffer.alloc(32, 3).toString("base64") };
  const { code, said } = await startRefused({ folder, settings: other });
  expect(code).not.toBe(0);
  expect(said).toContain("The secrets key is not the one this data directory was written with");
  expect(byKey.requests.length + byToken.requests.length).toBe(asked);
  server = await restart(withoutOld);
  expect(await browse()).toEqual([200, 200]);
});
