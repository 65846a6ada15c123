/** A disk that fills up under the server and is freed again: refusals, not losses, and no repair by hand. */
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { until } from "../until.ts";
import { newFolder, removeFolder, type Server, startServer } from "./server.ts";

const megabytes = 48;
const folder = await newFolder();
const mounted = mountSmallDisk();

function mountSmallDisk(): boolean {
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", folder], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

afterAll(async () => {
  if (mounted) execFileSync("umount", ["-l", folder]);
  await removeFolder(folder);
});

if (!mounted) {
  test("a full disk was not tried: mounting a small tmpfs needs root", () => {
    expect(mounted).toBe(false);
  });
}

describe.runIf(mounted)("a full disk", () => {
  const filler = join(folder, "filler");
  const acknowledged: number[] = [];
  let server: Server;

  beforeAll(async () => {
    server = await startServer({ folder });
  });

  afterAll(() => server.kill());

  const create = (): ReturnType<Server["post"]> =>
    server.post("/processes", { code: "//".padEnd(90_000, "x"), autorun: false });

  it("answers 503 in the envelope, turns readiness off on both faces, and goes on reading", async () => {
    acknowledged.push((await create()).body.id);
    fill();
    let refused = await create();
    for (let turn = 0; turn < 400 && refused.status === 200; turn++) {
      acknowledged.push(refused.body.id);
      refused = await create();
    }
    expect(refused.status).toBe(503);
    expect(refused.body).toEqual({ error: expect.any(String), code: "unavailable" });
    await until(async () => (await server.get("/readyz")).status === 503, 5_000);
    expect((await server.get("/healthz")).status).toBe(200);
    expect((await server.get(`/processes/${acknowledged[0]}`)).status).toBe(200);
    expect((await create()).status).toBe(503);
  });

  it("freed, is written to again within 10 s, and nothing acknowledged is missing, also after kill -9", async () => {
    rmSync(filler);
    await until(async () => (await create()).status === 200, 10_000);
    expect((await server.get("/readyz")).status).toBe(200);
    for (const id of acknowledged) expect((await server.get(`/processes/${id}`)).status).toBe(200);
    await server.kill();
    server = await startServer({ folder });
    for (const id of acknowledged) expect((await server.get(`/processes/${id}/code`)).status).toBe(200);
  });

  it("that stays full ends the node with a reason, so that its process manager restarts it", {
    timeout: 120_000,
  }, async () => {
    fill();
    while ((await create()).status === 200);
    expect(await new Promise((resolve) => server.child.once("exit", resolve))).toBe(70);
    expect(server.lines.join("\n")).toMatch(/"event":"fatal","message":"The store keeps failing: .*no space/i);
  });

  /** All but a little of what is left. */
  function fill(): void {
    const free = Number(execFileSync("df", ["--output=avail", "-k", folder]).toString().split("\n")[1]);
    writeFileSync(filler, Buffer.alloc(Math.max(0, free - 512) * 1024, 1));
  }
});
