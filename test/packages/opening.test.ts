/** Opening what was added: it is proved each time, and what is wrong with it is said. */
import { cpSync, mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { ModulePackage } from "../../src/ports/packages.ts";
import { file, tgz } from "./archive-maker.ts";
import { archive, hash, icon, manifest, moduleWith } from "./modules.ts";
import { failureOf, openStage } from "./stage.ts";

const nobody = "f".repeat(64);

describe("opening a package", () => {
  it("answers what adding it answered", async () => {
    const { packages } = openStage();
    const added = await packages.add(archive, hash);
    expect(await packages.open("csv-table", hash)).toEqual(added);
  });

  it.each([
    ["another hash", "csv-table", nobody],
    ["another id", "csv", hash],
    ["an id that leads outside", "..", hash],
    ["an id with a path in it", "../modules/csv-table", hash],
    ["an absolute id", "/etc", hash],
    ["no id", "", hash],
    ["an id every object has", "toString", hash],
    ["a hash that leads outside", "csv-table", "../../.."],
    ["a hash in capitals", "csv-table", hash.toUpperCase()],
    ["no hash", "csv-table", ""],
  ])("by %s is not found", async (_title, id, wanted) => {
    const { packages } = openStage();
    await packages.add(archive, hash);
    expect((await failureOf(packages.open(id, wanted))).kind).toBe("not_found");
  });

  it.each<[damage: string, damage: (root: string) => void, says: RegExp]>([
    ["emptied", (root) => replaced(join(root, "package")), /its file "package.json" is missing/],
    ["emptied, seal included", (root) => replaced(root), /its seal is missing or damaged/],
    ["without its contents", (root) => rmSync(join(root, "package"), { recursive: true }), /cannot be read: ENOENT/],
    ["without its seal", (root) => unlinkSync(join(root, "seal.json")), /its seal is missing or damaged/],
    ["with half a seal", (root) => truncateSync(join(root, "seal.json"), 40), /its seal is missing or damaged/],
    [
      "with a seal of zeros",
      (root) => writeFileSync(join(root, "seal.json"), Buffer.alloc(9)),
      /its seal is missing or damaged/,
    ],
    [
      "with an endless seal",
      (root) => writeFileSync(join(root, "seal.json"), Buffer.alloc(5 * 2 ** 20, " ")),
      /its seal is missing or damaged/,
    ],
    ["without a file", (root) => unlinkSync(join(root, "package/lib/rows.js")), /its file "lib\/rows.js" is missing/],
    [
      "without a folder",
      (root) => rmSync(join(root, "package/lib"), { recursive: true }),
      /its file "lib\/rows.js" is missing/,
    ],
    [
      "with a file cut off",
      (root) => truncateSync(join(root, "package/index.js"), 3),
      /its file "index.js" was changed/,
    ],
    [
      "with a file made longer",
      (root) => writeFileSync(join(root, "package/index.js"), "//", { flag: "a" }),
      /its file "index.js" was changed/,
    ],
    [
      "with a file of zeros",
      (root) => writeFileSync(join(root, "package/lib/rows.js"), Buffer.alloc(24)),
      /its file "lib\/rows.js" was changed/,
    ],
    [
      "with another package.json",
      (root) => writeFileSync(join(root, "package/package.json"), manifest()),
      /its file "package.json" was changed/,
    ],
    [
      "with a file too many",
      (root) => writeFileSync(join(root, "package/lib/more.js"), ""),
      /"lib\/more.js" does not belong to it/,
    ],
    [
      "with a link too many",
      (root) => symlinkSync("/etc/passwd", join(root, "package/more")),
      /"more" does not belong to it/,
    ],
    [
      "with a link in place of a file",
      (root) => linked(join(root, "package/index.js")),
      /"index.js" does not belong to it/,
    ],
    ["with a link in place of a folder", (root) => linked(join(root, "package/lib")), /"lib" does not belong to it/],
    ["that became a file", (root) => replaced(root, "file"), /it is no folder/],
    ["that became a link", (root) => linked(root), /it is no folder/],
  ])("%s is refused by saying so", async (_title, damage, says) => {
    const { folder, packages } = openStage();
    await packages.add(archive, hash);
    damage(join(folder, "csv-table", hash));
    const failure = await failureOf(packages.open("csv-table", hash));
    expect(failure.message).toMatch(says);
    expect(failure.message).toContain(`The package "${hash}" of module "csv-table" `);
    expect(failure.kind).toBe("invalid_request");
  });

  it("is refused under the id of another module", async () => {
    const { folder, packages } = openStage();
    await packages.add(archive, hash);
    cpSync(join(folder, "csv-table"), join(folder, "other"), { recursive: true });
    expect((await failureOf(packages.open("other", hash))).message).toMatch(/it is one of module "csv-table"/);
  });

  it("is refused under the hash of another archive", async () => {
    const { folder, packages } = openStage();
    await packages.add(archive, hash);
    cpSync(join(folder, "csv-table", hash), join(folder, "csv-table", nobody), { recursive: true });
    expect((await failureOf(packages.open("csv-table", nobody))).message).toMatch(/its seal is missing or damaged/);
  });

  it("is refused by a server that its range leaves out since", async () => {
    const { packages, add, openAs } = openStage();
    const added = await add(tgz(file("package.json", manifest({ engines: "^1.0.0" })), file("index.js")));
    expect((await failureOf(openAs("2.0.0").open("csv-table", added.hash))).message).toMatch(
      /"\^1\.0\.0" \(troupe\.engines\), and this is version "2\.0\.0"/,
    );
    expect(await packages.open("csv-table", added.hash)).toEqual(added);
  });
});

describe("the icon", () => {
  it("is there when the package names one", async () => {
    const { packages } = openStage();
    expect(await packages.icon(await packages.add(archive, hash))).toEqual(icon);
  });

  it("is undefined when it names none", async () => {
    const { packages, add } = openStage();
    expect(await packages.icon(await add(moduleWith()))).toBeUndefined();
  });

  it.each<[title: string, change: (added: ModulePackage) => void, says: RegExp]>([
    [
      "that was changed",
      ({ folder }) => writeFileSync(join(folder, "icon.png"), "something else"),
      /its icon is missing or was changed/,
    ],
    ["that was removed", ({ folder }) => unlinkSync(join(folder, "icon.png")), /its icon is missing or was changed/],
    ["that became a link", ({ folder }) => linked(join(folder, "icon.png")), /cannot be read: ELOOP/],
    [
      "that grew without end",
      ({ folder }) => writeFileSync(join(folder, "icon.png"), Buffer.alloc(2 ** 20)),
      /its icon is missing or was changed/,
    ],
  ])("%s is refused", async (_title, change, says) => {
    const { packages } = openStage();
    const added = await packages.add(archive, hash);
    change(added);
    const failure = await failureOf(packages.icon(added));
    expect(failure.message).toMatch(says);
    expect(failure.kind).toBe("invalid_request");
  });

  it("is looked for where the package is, not where a caller says", async () => {
    const { outside, packages } = openStage();
    const added = await packages.add(archive, hash);
    expect(await packages.icon({ ...added, folder: outside })).toEqual(icon);
    const forged = { ...added, manifest: { ...added.manifest, id: "../modules/csv-table" } };
    expect((await failureOf(packages.icon(forged))).kind).toBe("not_found");
  });
});

/** Something else under the same name. */
function replaced(path: string, by: "folder" | "file" = "folder"): void {
  rmSync(path, { recursive: true });
  if (by === "folder") mkdirSync(path);
  else writeFileSync(path, "");
}

/** The same content, reached through a link. */
function linked(path: string): void {
  renameSync(path, `${path}.moved`);
  const outside = join(path, "../../../..", `moved-${Math.random()}`);
  renameSync(`${path}.moved`, outside);
  symlinkSync(outside, path);
}
