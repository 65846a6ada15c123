/** Archives that others made: GNU tar in each of its formats, and archives with anything in any byte. */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isFailure } from "../../src/errors/failure.ts";
import { endMark, entry, file, flags, gnuLongName, pax, sha256 } from "./archive-maker.ts";
import { goodFiles, manifest } from "./modules.ts";
import { openStage, treeOf } from "./stage.ts";

describe("an archive of GNU tar", () => {
  const contents: Readonly<Record<string, string>> = {
    "package.json": manifest(),
    "index.js": "export default 1;\n",
    "lib/empty.js": "",
    "lib/ünï code.js": "x".repeat(70_000),
    [`${"deep/".repeat(20)}${"n".repeat(60)}.js`]: "deep",
  };

  it.each([
    ["gnu", "."],
    ["gnu", "package"],
    ["ustar", "package"],
    ["pax", "package"],
    ["posix", "."],
  ])("in format %s, packed as %s, is unpacked as it was", async (format, top) => {
    const { outside, add } = openStage();
    for (const [path, content] of Object.entries(contents)) {
      mkdirSync(join(outside, "package", path, ".."), { recursive: true });
      writeFileSync(join(outside, "package", path), content);
    }
    const from = top === "." ? join(outside, "package") : outside;
    const archive = execFileSync("tar", ["--create", "--gzip", `--format=${format}`, "--directory", from, top]);
    const { folder } = await add(archive);
    const unpacked = Object.entries(await treeOf(folder)).filter(([, what]) => what.startsWith("file"));
    const expected = Object.entries(contents).map(([path, content]) => [path, `file 644 ${content}`]);
    expect(Object.fromEntries(unpacked)).toEqual(Object.fromEntries(expected));
  });
});

describe("an archive with anything in any byte", () => {
  const tar = Buffer.concat([
    ...goodFiles,
    pax({ path: "package/by-pax", size: "5" }),
    file("package/x", "hello"),
    gnuLongName("package/by-gnu"),
    file("package/y", "world"),
    entry({ name: "package/a/", flag: flags.folder }),
    endMark,
  ]);

  it("is added or refused, and nothing else happens", async () => {
    const { outside, folder, packages } = openStage();
    // Most headers are zeros, so the places that mean something are looked at more often.
    const inField = fc
      .tuple(fc.nat(tar.length / 512 - 3), fc.constantFrom(0, 8, 124, 124, 125, 134, 156, 257, 263, 345))
      .map(([block, field]) => block * 512 + field);
    const at = fc.oneof({ weight: 3, arbitrary: inField }, fc.nat(tar.length - 1 - endMark.length));
    const byte = fc.oneof(fc.constantFrom(0, 0x2e, 0x2f, 0x30, 0x67, 0x78, 0x80, 0xb9, 0xff), fc.nat(255));
    const changes = fc.array(fc.tuple(at, byte), { minLength: 1, maxLength: 4 });
    let added = 0;
    await fc.assert(
      fc.asyncProperty(changes, fc.boolean(), async (changed, summed) => {
        const copy = Buffer.from(tar);
        for (const [place, value] of changed) copy[place] = value;
        if (summed) sumHeaders(copy, changed);
        const archive = gzipSync(copy, { level: 1 });
        const outcome = await packages.add(archive, sha256(archive)).then(
          () => "added",
          (error) => (isFailure(error) ? error.kind : error),
        );
        expect(["added", "invalid_request", "too_large"]).toContain(outcome);
        if (outcome === "added") added += 1;
        const tree = Object.entries(await treeOf(outside));
        expect(tree.filter(([path]) => !/^modules(?:\/[^/.]+(?:\/[0-9a-f]{64}(?:\/|$)|$)|$)/.test(path))).toEqual([]);
        expect(tree.filter(([, what]) => !/^(?:file|folder) /.test(what))).toEqual([]);
        await packages.keepOnly([]);
        expect(await treeOf(folder)).toEqual({});
      }),
      // Some headers make a reader wait for what never comes.
      { numRuns: 400, timeout: 20_000 },
    );
    // Else it has only ever seen refusals for the checksum.
    expect(added).toBeGreaterThan(0);
  });

  /** Makes the checksum of every changed block right again, as if it were a header, so that the change is looked at. */
  function sumHeaders(bytes: Buffer, changed: readonly (readonly [number, number])[]): void {
    for (const [place] of changed) {
      const header = bytes.subarray(place - (place % 512), place - (place % 512) + 512);
      if (header.toString("latin1", 257, 262) !== "ustar") continue;
      header.fill(" ", 148, 156);
      const sum = header.reduce((total, value) => total + value, 0);
      header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
    }
  }
});
