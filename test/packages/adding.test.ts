/** What becomes of a good archive: where it goes, how it may be packed, and what happens when it is there already. */
import { unlinkSync, writeFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { moduleOffers } from "../../src/dev-registry/offers/modules.ts";
import { packageBytesMax } from "../../src/limits.ts";
import { endMark, entry, file, flags, gnuLongName, gzip, pax, sha256, tgz } from "./archive-maker.ts";
import { archive, goodFiles, hash, manifest, moduleWith, troupe } from "./modules.ts";
import { failureOf, openStage, treeOf } from "./stage.ts";

describe("adding a package", () => {
  it("unpacks it into a folder of its own and answers its manifest", async () => {
    const { folder, packages } = openStage();
    const added = await packages.add(archive, hash);
    expect(added).toEqual({
      manifest: { ...troupe, version: "1.0.0", hasIcon: true },
      hash,
      folder: join(folder, "csv-table", hash, "package"),
    });
    expect(Object.keys(await treeOf(added.folder))).toEqual([
      "icon.png",
      "index.js",
      "lib",
      "lib/rows.js",
      "package.json",
    ]);
    expect(await readFile(join(added.folder, "index.js"), "utf8")).toBe("export default 1;\n");
    expect(await readdir(folder)).toEqual(["csv-table"]);
  });

  it("takes every module of the development registry", async () => {
    const { packages } = openStage();
    const releases = moduleOffers.flatMap((offer) => offer.releases);
    expect(releases.length).toBeGreaterThan(0);
    for (const { bytes, version } of releases) {
      const added = await packages.add(bytes, sha256(bytes));
      expect(added.manifest.version).toBe(version);
      expect(await packages.icon(added)).toBeDefined();
    }
  });

  it("believes nothing of modes: files are 0644 and folders 0755, whatever the umask", async () => {
    const { add } = openStage();
    const former = process.umask(0o077);
    try {
      const { folder } = await add(
        moduleWith(
          entry({ name: "package/bin/run", mode: 0o6777 }),
          entry({ name: "package/a/", flag: flags.folder, mode: 0o000 }),
        ),
      );
      const modes = Object.entries(await treeOf(folder)).map(([path, what]) => [
        path,
        what.split(" ").slice(0, 2).join(" "),
      ]);
      expect(Object.fromEntries(modes)).toEqual({
        a: "folder 755",
        bin: "folder 755",
        "bin/run": "file 644",
        "index.js": "file 644",
        "package.json": "file 644",
      });
    } finally {
      process.umask(former);
    }
  });

  it.each([
    ["at the top", ["package.json", "index.js"]],
    ["at the top, with dots", ["./package.json", "./index.js"]],
    ["in a folder of another name", ["csv-table-1.0.0/package.json", "csv-table-1.0.0/index.js"]],
    ["in a folder with dots", ["./x/package.json", "./x/index.js"]],
  ])("takes a package.json %s", async (_title, [manifestPath, mainPath]) => {
    const { add } = openStage();
    const { folder } = await add(
      tgz(entry({ name: "./", flag: flags.folder }), file(manifestPath!, manifest()), file(mainPath!, "1")),
    );
    expect(Object.keys(await treeOf(folder))).toEqual(["index.js", "package.json"]);
  });

  it("reads paths however tar writes them: prefix, pax, GNU, folders named before, after and again", async () => {
    const { add } = openStage();
    const long = `package/${"n".repeat(120)}.js`;
    const { folder } = await add(
      gzip(
        pax({ comment: "of git" }, flags.paxGlobal),
        entry({ name: "package/", flag: flags.folder }),
        ...goodFiles,
        entry({ name: "deep.js", prefix: "package/in/prefix", content: "prefix" }),
        entry({ name: "package/in/", flag: flags.folder }),
        entry({ name: "package/in", flag: flags.folder }),
        pax({ path: `${long}.pax`, mtime: "1.5" }),
        file("package/short", "pax"),
        pax({ size: "3" }),
        entry({ name: "package/sized", content: "abc", size: 3 }),
        gnuLongName(`${long}.gnu`),
        file("package/short", "gnu"),
        endMark,
        Buffer.alloc(10_240),
      ),
    );
    const tree = await treeOf(folder);
    expect(tree).toMatchObject({ "in/prefix/deep.js": "file 644 prefix", sized: "file 644 abc" });
    expect(tree[`${"n".repeat(120)}.js.pax`]).toBe("file 644 pax");
    expect(tree[`${"n".repeat(120)}.js.gnu`]).toBe("file 644 gnu");
  });

  it("takes entries behind an early end like any other, as joined archives have them", async () => {
    const { add } = openStage();
    const { folder } = await add(tgz(...goodFiles, endMark, file("package/late.js", "late")));
    expect(await treeOf(folder)).toHaveProperty("late.js");
  });

  it("takes names that only look dangerous", async () => {
    const { add, packages } = openStage();
    const names = [
      "..x",
      "x..",
      "...",
      "-rf",
      "~",
      "$HOME",
      "a b",
      "%2e%2e",
      "ünï",
      "日本",
      "__proto__",
      "constructor",
      ".npmrc",
      "seal.json",
    ];
    const { folder, hash: added } = await add(moduleWith(...names.map((name) => file(`package/${name}`, name))));
    expect(Object.keys(await treeOf(folder)).sort()).toEqual(["index.js", "package.json", ...names].sort());
    expect((await packages.open("csv-table", added)).folder).toBe(folder);
  });

  it("answers the same folder for the same bytes, and takes the digest in capitals", async () => {
    const { packages } = openStage();
    const first = await packages.add(archive, hash);
    expect(await packages.add(archive, hash.toUpperCase())).toEqual(first);
  });

  it("takes an archive of exactly 10 MiB", async () => {
    const { add } = openStage();
    const archive = withName(moduleWith(), "n".repeat(packageBytesMax - moduleWith().length - 1));
    expect(archive.length).toBe(packageBytesMax);
    expect((await add(archive)).manifest.id).toBe("csv-table");
  });

  it("mends what is there in a damaged state", async () => {
    const { packages, events } = openStage();
    const { folder } = await packages.add(archive, hash);
    unlinkSync(join(folder, "lib/rows.js"));
    await packages.add(archive, hash);
    expect((await packages.open("csv-table", hash)).folder).toBe(folder);
    expect(events.map(({ event }) => event)).toContain("package-replaced");
  });

  it("is refused for a module that does not run in this version, and leaves nothing", async () => {
    const { folder, add } = openStage();
    const failure = await failureOf(add(tgz(file("package.json", manifest({ engines: ">=9" })), file("index.js"))));
    expect(failure.message).toBe('The module runs in Troupe ">=9" (troupe.engines), and this is version "1.4.2"');
    expect(await treeOf(folder)).toEqual({});
  });

  it("says that the disk is at fault when it is", async () => {
    const { outside, folder, packages } = openStage();
    writeFileSync(folder, "in the way");
    const failure = await failureOf(packages.add(archive, hash));
    expect([failure.kind, failure.message]).toEqual([
      "unavailable",
      "The package cannot be stored: the disk answers EEXIST",
    ]);
    expect(Object.keys(await treeOf(outside))).toEqual(["modules"]);
  });
});

/** With the name of a file in the header of the gzip stream, which makes it as long as one wants. */
function withName(archive: Buffer, name: string): Buffer {
  const header = Buffer.from(archive.subarray(0, 10));
  const hasName = 8;
  header[3] = hasName;
  return Buffer.concat([header, Buffer.from(`${name}\0`), archive.subarray(10)]);
}
