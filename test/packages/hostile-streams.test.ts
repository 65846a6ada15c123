/** Archives that are too much, cut off, or more than one: bombs, missing ends, tails. And digests, which come before everything. */
import { describe, expect, it } from "vitest";
import { packageBytesMax, packageEntriesMax, packagePathDepthMax, packageUnpackedBytesMax } from "../../src/limits.ts";
import {
  base256,
  endMark,
  entry,
  file,
  flags,
  gnuLongName,
  gzip,
  gzipBomb,
  pax,
  sha256,
  tgz,
} from "./archive-maker.ts";
import { expectRefusal, type Hostile } from "./hostile-archive.ts";
import { goodFiles, moduleWith } from "./modules.ts";
import { failureOf, openStage, treeOf } from "./stage.ts";

const tar = Buffer.concat([...goodFiles, endMark]);
const good = gzip(tar);
const deep = (levels: number) => `package/${"a/".repeat(levels - 2)}x`;

const sizes: readonly Hostile[] = [
  {
    title: "a path too long",
    archive: moduleWith(gnuLongName(`package/${"a/".repeat(300)}x`), file("x")),
    says: /has 609 bytes, more than/,
  },
  {
    title: "a name too long",
    archive: moduleWith(gnuLongName(`package/${"a".repeat(256)}`), file("x")),
    says: /part of more than the 255 bytes/,
  },
  {
    title: "a path too deep",
    archive: moduleWith(file(deep(packagePathDepthMax + 1))),
    says: /deeper than the 32 levels/,
  },
  {
    title: "too many files",
    archive: tgz(...goodFiles, ...Array.from({ length: packageEntriesMax - 2 }, (_, at) => file(`package/${at}`))),
    says: /more than the 5000 files and folders/,
    kind: "too_large",
  },
  {
    title: "too many folders that paths imply",
    archive: tgz(
      ...goodFiles,
      ...Array.from({ length: 200 }, (_, at) =>
        file(deep(packagePathDepthMax - 1).replace("package", `package/${at}`)),
      ),
    ),
    says: /more than the 5000 files and folders/,
    kind: "too_large",
  },
  {
    title: "one file of 50 MiB and a byte",
    archive: gzipBomb(
      Buffer.concat([...goodFiles, entry({ name: "package/x", size: packageUnpackedBytesMax + 1 })]),
      51,
    ),
    says: /unpacks to more than the 52428800 bytes/,
    kind: "too_large",
  },
  {
    title: "many files of 50 MiB together",
    archive: tgz(
      ...goodFiles,
      ...Array.from({ length: 50 }, (_, at) => file(`package/${at}`, Buffer.alloc(1024 * 1024))),
    ),
    says: /unpacks to more than the 52428800 bytes/,
    kind: "too_large",
  },
  {
    title: "a size only a pax record tells",
    archive: gzipBomb(
      Buffer.concat([...goodFiles, pax({ size: String(packageUnpackedBytesMax) }), file("package/x")]),
      51,
    ),
    says: /unpacks to more than the 52428800 bytes/,
    kind: "too_large",
  },
  {
    title: "a size beyond octal",
    archive: moduleWith(entry({ name: "package/x", sizeField: base256(2n ** 62n) })),
    says: /unpacks to more than/,
    kind: "too_large",
  },
  {
    title: "1 GiB of zeros behind the end",
    archive: gzipBomb(tar, 1024),
    says: /unpacks to more than/,
    kind: "too_large",
  },
  {
    title: "a name of 1 GiB",
    archive: gzipBomb(entry({ name: "x", flag: flags.gnuLongName, size: 2 ** 30 }), 1024),
    says: /does not hold a tar archive/,
  },
  {
    title: "pax records of 1 GiB",
    archive: gzipBomb(entry({ name: "x", flag: flags.pax, size: 2 ** 30 }), 1024),
    says: /does not hold a tar archive/,
  },
  {
    title: "pax headers without end",
    archive: tgz(
      ...Array.from({ length: 40 }, () => entry({ name: "x", flag: flags.pax, content: Buffer.alloc(2 ** 21) })),
    ),
    says: /unpacks to more than/,
    kind: "too_large",
  },
  {
    title: "folders without end, all the same",
    archive: tgz(Buffer.alloc(125_000 * 512, entry({ name: "a/", flag: flags.folder }))),
    says: /unpacks to more than/,
    kind: "too_large",
  },
];

const cuts: readonly Hostile[] = [
  { title: "nothing", archive: Buffer.alloc(0), says: /cut off/ },
  { title: "no gzip", archive: tar, says: /not a gzip file/ },
  { title: "a zip file", archive: Buffer.from("PK\u0003\u0004 and more of it"), says: /not a gzip file/ },
  { title: "gzip of nothing", archive: gzip(), says: /cut off/ },
  { title: "gzip of no tar", archive: gzip(Buffer.from("x".repeat(2_000))), says: /does not hold a tar archive/ },
  { title: "a gzip header alone", archive: good.subarray(0, 10), says: /cut off/ },
  { title: "a gzip stream cut off", archive: good.subarray(0, good.length - 40), says: /cut off/ },
  { title: "a gzip stream without its last byte", archive: good.subarray(0, good.length - 1), says: /cut off/ },
  { title: "a flipped bit in the checksum", archive: flipped(good, good.length - 6), says: /is damaged/ },
  { title: "a tar archive cut off in a header", archive: gzip(tar.subarray(0, 700)), says: /cut off within an entry/ },
  { title: "a tar archive cut off in a file", archive: gzip(tar.subarray(0, 1_030)), says: /cut off/ },
  { title: "a tar archive without its end", archive: gzip(...goodFiles), says: /its end mark is missing/ },
  { title: "half an end", archive: gzip(...goodFiles, Buffer.alloc(512)), says: /its end mark is missing/ },
  {
    title: "a wrong checksum",
    archive: tgz(entry({ name: "package/x", checksumOff: 1 })),
    says: /does not hold a tar archive, or is damaged/,
  },
  {
    title: "a pax header with nothing behind it",
    archive: moduleWith(pax({ path: "package/x" })),
    says: /something after its last entry/,
  },
];

const tails: readonly Hostile[] = [
  {
    title: "zeros behind the gzip stream",
    archive: Buffer.concat([good, Buffer.alloc(20)]),
    says: /something after its gzip stream/,
  },
  {
    title: "zeros and text behind it",
    archive: Buffer.concat([good, Buffer.from("\0\0hidden")]),
    says: /something after its gzip stream/,
  },
  {
    title: "zeros and the length once more",
    archive: Buffer.concat([good, Buffer.alloc(4), good.subarray(-4)]),
    says: /something after its gzip stream/,
  },
  {
    title: "text behind it",
    archive: Buffer.concat([good, Buffer.from("hidden")]),
    says: /not a gzip file, or is damaged/,
  },
  {
    title: "a second gzip stream",
    archive: Buffer.concat([good, gzip(Buffer.alloc(512))]),
    says: /something after its gzip stream/,
  },
  {
    title: "an archive in two gzip streams",
    archive: Buffer.concat([gzip(tar.subarray(0, 600)), gzip(tar.subarray(600))]),
    says: /something after its gzip stream/,
  },
  {
    title: "text behind the end of the tar archive",
    archive: gzip(tar, Buffer.from("hidden")),
    says: /cut off within an entry|something after/,
  },
  {
    title: "blocks behind the end of the tar archive",
    archive: gzip(tar, Buffer.alloc(1024, "hidden")),
    says: /does not hold a tar archive, or is damaged/,
  },
];

describe.each([
  { group: "sizes", table: sizes },
  { group: "cuts", table: cuts },
  { group: "tails", table: tails },
])("$group", ({ table }) => {
  it.each(table)("$title is refused and leaves nothing", expectRefusal);
});

describe("the digest", () => {
  it.each([
    ["another digest", "0".repeat(64), /has the SHA-256 "[0-9a-f]{64}", and "0{64}" was expected/],
    ["no digest", "", /"" is not a SHA-256/],
    ["a digest of another length", "ab".repeat(20), /is not a SHA-256/],
    ["a digest with something behind it", `${sha256(good)}/..`, /is not a SHA-256/],
  ])("%s is refused before anything is unpacked", async (_title, hash, says) => {
    const { outside, packages } = openStage();
    const failure = await failureOf(packages.add(good, hash));
    expect(failure.kind).toBe("invalid_request");
    expect(failure.message).toMatch(says);
    expect(await treeOf(outside)).toEqual({});
  });

  it("does not matter for an archive of 10 MiB and a byte: nothing of it is looked at", async () => {
    const { outside, packages } = openStage();
    const failure = await failureOf(packages.add(Buffer.alloc(packageBytesMax + 1), "0".repeat(64)));
    expect(failure.kind).toBe("too_large");
    expect(failure.message).toBe("The archive has 10485761 bytes, more than the 10485760 allowed");
    expect(await treeOf(outside)).toEqual({});
  });
});

function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = copy[at]! ^ 1;
  return copy;
}
