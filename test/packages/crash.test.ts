/** The process dies while it adds or removes a package: what has the name of a package afterwards is whole, and the next start tidies up. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { isFailure } from "../../src/errors/failure.ts";
import { sha256 } from "./archive-maker.ts";
import { largeArchive } from "./modules.ts";
import { openStage, treeOf } from "./stage.ts";

const child = join(import.meta.dirname, "crash-child.ts");
const kills = 12;
/** One round of the child takes some 100 ms. */
const killWithinMs = 250;

it("a package is whole or not there after a kill at any moment, and what was cut off is removed at the next start", async () => {
  const { folder, packages } = openStage();
  mkdirSync(folder);
  const hash = sha256(largeArchive());
  let cutOff = 0;
  for (let kill = 0; kill < kills; kill += 1) {
    await runAndKill(folder, (killWithinMs * kill) / kills);
    const outcome = await packages.open("csv-table", hash).then(
      () => "whole",
      (error) => (isFailure(error) ? error.kind : error),
    );
    expect(["whole", "not_found"]).toContain(outcome);
    const kept = outcome === "whole" ? [{ id: "csv-table", hash }] : [];
    cutOff += (await readdir(folder)).filter((name) => name.startsWith(".")).length;
    await packages.keepOnly(kept);
    expect(await readdir(folder)).toEqual(kept.map(({ id }) => id));
  }
  // Else every kill came too late or too early, and the test has seen nothing.
  expect(cutOff).toBeGreaterThan(0);
  await packages.keepOnly([]);
  expect(await treeOf(folder)).toEqual({});
});

async function runAndKill(folder: string, afterMs: number): Promise<void> {
  const running = spawn(process.execPath, [child, folder], { stdio: ["ignore", "pipe", "inherit"] });
  const gone = once(running, "exit");
  await Promise.race([once(running.stdout, "data"), gone]);
  await sleep(afterMs);
  running.kill("SIGKILL");
  expect(await gone).toEqual([null, "SIGKILL"]);
}
