/** Unpacking that takes too long, be it for the disk or for an archive that brings the reader to a halt. */
import { expect, it, vi } from "vitest";
import { largeArchive } from "./modules.ts";
import { failureOf, openStage, treeOf } from "./stage.ts";

vi.mock("../../src/limits.ts", async (original) => ({ ...(await original<object>()), packageUnpackMs: 1 }));

it("an archive that is not unpacked in time is given up and leaves nothing", async () => {
  const { folder, add } = openStage();
  const failure = await failureOf(add(largeArchive()));
  expect([failure.kind, failure.message]).toEqual([
    "timeout",
    "Unpacking the archive takes more than the 1 ms allowed",
  ]);
  expect(await treeOf(folder)).toEqual({});
});
