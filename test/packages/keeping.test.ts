/** Packages go: one by one, all but some, and while others come. */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Packages } from "../../src/ports/packages.ts";
import { file, sha256, tgz } from "./archive-maker.ts";
import { archive, hash, manifest, moduleWith } from "./modules.ts";
import { failureOf, openStage, serverVersion, treeOf } from "./stage.ts";

const nobody = "f".repeat(64);

describe("removing a package", () => {
  it("leaves nothing of it, and the other packages of the module", async () => {
    const { folder, packages, add } = openStage();
    const other = await add(moduleWith());
    await packages.add(archive, hash);
    await packages.remove("csv-table", hash);
    expect((await failureOf(packages.open("csv-table", hash))).kind).toBe("not_found");
    expect(await packages.open("csv-table", other.hash)).toEqual(other);
    await packages.remove("csv-table", other.hash);
    expect(await treeOf(folder)).toEqual({});
  });

  it("that is not there is nothing to do", async () => {
    const { outside, packages } = openStage();
    await packages.remove("csv-table", hash);
    expect(await treeOf(outside)).toEqual({});
  });

  it.each([
    ["..", hash],
    ["../precious", hash],
    ["", hash],
    ["/", hash],
    ["csv-table", ".."],
    ["csv-table", ""],
    ["csv-table", "../../precious"],
  ])("by id %j and hash %j is refused and touches nothing", async (id, wanted) => {
    const { outside, packages } = openStage();
    await packages.add(archive, hash);
    mkdirSync(join(outside, "precious", hash), { recursive: true });
    const before = await treeOf(outside);
    expect((await failureOf(packages.remove(id, wanted))).kind).toBe("invalid_request");
    expect(await treeOf(outside)).toEqual(before);
  });
});

describe("keeping only some packages", () => {
  it("removes the others, what was cut off, and folders left empty", async () => {
    const { folder, packages, add } = openStage();
    const kept = await packages.add(archive, hash);
    const gone = await add(moduleWith());
    const alone = await add(tgz(file("package.json", manifest({ id: "alone" })), file("index.js")));
    for (const left of [".unpacking-abc/made/package", ".removing-abc/package", `empty`, `cut/${nobody}`]) {
      mkdirSync(join(folder, left), { recursive: true });
    }
    await packages.keepOnly([{ id: "csv-table", hash }]);
    expect(await readdir(folder)).toEqual(["csv-table"]);
    expect(await readdir(join(folder, "csv-table"))).toEqual([hash]);
    expect(await packages.open("csv-table", hash)).toEqual(kept);
    for (const {
      manifest: { id },
      hash: removed,
    } of [gone, alone]) {
      expect((await failureOf(packages.open(id, removed))).kind).toBe("not_found");
    }
  });

  it("touches nothing that cannot be ours, and follows no link", async () => {
    const { outside, folder, packages } = openStage();
    mkdirSync(join(outside, "precious", nobody), { recursive: true });
    mkdirSync(join(folder, "csv-table", "notes"), { recursive: true });
    mkdirSync(join(folder, "lost+found"));
    writeFileSync(join(folder, "README"), "of the operator");
    symlinkSync(join(outside, "precious"), join(folder, "linked"));
    symlinkSync(join(outside, "precious"), join(folder, ".unpacking-linked"));
    symlinkSync(join(outside, "precious"), join(folder, "csv-table", nobody));
    const before = await treeOf(outside);
    await packages.keepOnly([{ id: "..", hash: "precious" }]);
    expect(await treeOf(outside)).toEqual(before);
  });

  it("says when it cannot look, and goes on", async () => {
    const { folder, packages, events } = openStage();
    writeFileSync(folder, "in the way");
    await packages.keepOnly([]);
    expect(events.map(({ event }) => event)).toEqual(["package-not-removed"]);
  });

  it("is nothing to do where no package was ever added", async () => {
    const { outside, packages } = openStage();
    await packages.keepOnly([]);
    expect(await treeOf(outside)).toEqual({});
  });
});

describe("many at once", () => {
  it("the same package added many times is there once, whole", async () => {
    const { folder, packages } = openStage();
    const added = await Promise.all(Array.from({ length: 8 }, () => packages.add(archive, hash)));
    for (const one of added) expect(one).toEqual(added[0]);
    expect(await packages.open("csv-table", hash)).toEqual(added[0]);
    expect(await readdir(folder)).toEqual(["csv-table"]);
  });

  it("packages added and removed in any order are whole or not there", async () => {
    const { folder, packages, openAs } = openStage();
    // Each adds only a few at once; together they are as many as can meet.
    const servers = Array.from({ length: 10 }, () => openAs(serverVersion));
    const archives = ["1.0.0", "1.1.0"].map((version) =>
      tgz(file("package.json", manifest({}, version)), file("index.js", version)),
    );
    const conflicts: string[] = [];
    await Promise.all(
      Array.from({ length: 60 }, async (_, at) => {
        const chosen = archives[at % 2]!;
        if (at % 3 === 0) return packages.remove("csv-table", sha256(chosen));
        // To be overtaken five times in a row is possible, and said.
        const adding = servers[at % servers.length]!.add(chosen, sha256(chosen));
        return adding.then(undefined, (error) => conflicts.push(error.kind));
      }),
    );
    expect(new Set([...conflicts, "conflict"])).toEqual(new Set(["conflict"]));
    for (const chosen of archives) await expectWholeOrGone(packages, sha256(chosen));
    expect((await readdir(folder)).filter((name) => name.startsWith("."))).toEqual([]);
  });
});

async function expectWholeOrGone(packages: Packages, wanted: string): Promise<void> {
  const outcome = await packages.open("csv-table", wanted).then(
    () => "whole",
    (error) => error.kind,
  );
  expect(["whole", "not_found"]).toContain(outcome);
}
