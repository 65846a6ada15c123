/** Archives whose entries mean harm: paths that lead outside, links and devices, entries that overwrite others, tricks of the formats. */
import { join } from "node:path";
import { describe, it } from "vitest";
import { base256, endMark, entry, file, flags, gnuLongName, pax, type RawEntry, tgz } from "./archive-maker.ts";
import { expectRefusal, type Hostile } from "./hostile-archive.ts";
import { goodFiles, manifest, moduleWith } from "./modules.ts";

/** Refused for its path, however it comes by it. */
const paths: readonly (readonly [title: string, path: string, says: RegExp])[] = [
  ["a parent folder", "../escaped", /leads outside/],
  ["a parent folder in the middle", "package/../../escaped", /leads outside/],
  ["a parent folder that leads nowhere", "package/lib/../x", /leads outside/],
  ["a parent folder at the end", "package/..", /leads outside/],
  ["a parent folder behind dots", "././../escaped", /leads outside/],
  ["an absolute path", "/tmp/escaped", /is absolute/],
  ["two slashes in front", "//tmp/escaped", /is absolute/],
  ["a drive letter", "C:/escaped", /is absolute/],
  ["a drive letter without a slash", "c:escaped", /is absolute/],
  ["a backslash", "package\\..\\..\\escaped", /has a backslash/],
  ["an empty part", "package//x", /has an empty part/],
  ["a dot part", "package/./x", /has an empty part/],
  ["a control character", "package/x\u001b[2J", /has a control character/],
  [
    "a turn of the reading direction",
    "package/x\u202egpj.js",
    /x\\u202egpj\.js\/?" of the archive has a control character/,
  ],
  ["a line break", "package/x\ny", /has a control character/],
  ["bytes that are not UTF-8", "package/\ufffd", /is not valid UTF-8/],
];

const byPath: readonly Hostile[] = paths.flatMap(([title, path, says]) => [
  { title: `${title}, in the header`, archive: moduleWith(file(path)), says },
  { title: `${title}, in a pax record`, archive: moduleWith(pax({ path }), file("package/harmless")), says },
  { title: `${title}, in a GNU long name`, archive: moduleWith(gnuLongName(path), file("package/harmless")), says },
  { title: `${title}, of a folder`, archive: moduleWith(entry({ name: `${path}/`, flag: flags.folder })), says },
]);

const kinds: readonly (readonly [title: string, raw: Omit<RawEntry, "name">, says: RegExp])[] = [
  ["hard link", { flag: flags.hardLink, linkName: "package/index.js" }, /is a hard link/],
  ["hard link to outside", { flag: flags.hardLink, linkName: "/etc/passwd" }, /is a hard link/],
  ["symbolic link", { flag: flags.symbolicLink, linkName: "index.js" }, /is a symbolic link/],
  ["symbolic link to outside", { flag: flags.symbolicLink, linkName: "../../.." }, /is a symbolic link/],
  ["character device", { flag: flags.characterDevice }, /is a device/],
  ["block device", { flag: flags.blockDevice }, /is a device/],
  ["pipe", { flag: flags.pipe }, /is a pipe/],
  ["contiguous file", { flag: flags.contiguous }, /is of a kind not known/],
  ["sparse file of old GNU", { flag: flags.gnuSparse, magic: "ustar  \0" }, /is of a kind not known/],
  ["volume label", { flag: flags.gnuVolume, magic: "ustar  \0" }, /is of a kind not known/],
  ["continued file", { flag: flags.gnuMultiVolume, magic: "ustar  \0" }, /is of a kind not known/],
  ["kind of a vendor", { flag: "Z" }, /is of a kind not known/],
];

const byKind: readonly Hostile[] = kinds.map(([title, raw, says]) => ({
  title: `a ${title}`,
  archive: moduleWith(entry({ ...raw, name: "package/x" })),
  says,
}));

const clashes: readonly Hostile[] = [
  { title: "a file twice", archive: moduleWith(file("package/index.js")), says: /"package\/index.js" twice/ },
  { title: "a file twice, once with a dot", archive: moduleWith(file("./package/index.js")), says: /twice/ },
  {
    title: "a file twice through a pax record",
    archive: moduleWith(pax({ path: "package/index.js" }), file("package/y")),
    says: /twice/,
  },
  {
    title: "files that differ in case",
    archive: moduleWith(file("package/INDEX.js")),
    says: /"package\/index.js" only in spelling/,
  },
  {
    title: "folders that differ in case",
    archive: moduleWith(file("package/a/x"), file("package/A/y")),
    says: /only in spelling/,
  },
  {
    title: "names composed differently",
    archive: moduleWith(file("package/\u00e9"), file("package/e\u0301")),
    says: /only in spelling/,
  },
  {
    title: "names that fold to one",
    archive: moduleWith(file("package/stra\u00dfe"), file("package/STRASSE")),
    says: /only in spelling/,
  },
  { title: "a file as a folder", archive: moduleWith(file("package/index.js/x")), says: /as a file and as a folder/ },
  {
    title: "a file named as a folder",
    archive: moduleWith(entry({ name: "package/index.js/", flag: flags.folder })),
    says: /as a file and as a folder/,
  },
  {
    title: "a folder as a file",
    archive: moduleWith(file("package/a/x"), file("package/a")),
    says: /as a file and as a folder/,
  },
];

const tricks: readonly Hostile[] = [
  {
    title: "a NUL in a pax path",
    archive: moduleWith(pax({ path: "package/x\0.png" }), file("package/y")),
    says: /control character/,
  },
  {
    title: "a path split over prefix and name",
    archive: moduleWith(entry({ name: "escaped", prefix: "package/../.." })),
    says: /leads outside/,
  },
  {
    title: "a prefix that is absolute",
    archive: moduleWith(entry({ name: "escaped", prefix: "/tmp" })),
    says: /is absolute/,
  },
  {
    title: "a sparse file of pax 1.0",
    archive: moduleWith(pax({ "GNU.sparse.major": "1", "GNU.sparse.name": "../escaped" }), file("package/x")),
    says: /sparse file/,
  },
  {
    title: "a sparse file of pax 0.1",
    archive: moduleWith(pax({ "GNU.sparse.map": "0,1" }), file("package/x")),
    says: /sparse file/,
  },
  {
    title: "a pax size that is no number",
    archive: moduleWith(pax({ size: "12abc" }), file("package/x", "a".repeat(12))),
    says: /has the size "12abc"/,
  },
  {
    title: "a negative pax size",
    archive: moduleWith(pax({ size: "-1" }), file("package/x")),
    says: /does not hold a tar archive/,
  },
  {
    title: "a folder with content",
    archive: moduleWith(entry({ name: "package/a/", flag: flags.folder, content: file("../escaped") })),
    says: /folder with content/,
  },
  {
    title: "a file whose name ends in a slash",
    archive: moduleWith(pax({ path: "package/a/" }), file("package/x")),
    says: /has an empty part/,
  },
  { title: "an entry without a name", archive: moduleWith(file("")), says: /is empty/ },
  {
    title: "a folder that is the root",
    archive: moduleWith(entry({ name: "/", flag: flags.folder })),
    says: /is empty/,
  },
  {
    title: "a path for all entries at once",
    archive: tgz(pax({ path: "../escaped" }, flags.paxGlobal), pax({ comment: "" }), ...goodFiles),
    says: /leads outside/,
  },
  {
    title: "a negative size",
    archive: moduleWith(entry({ name: "package/x", sizeField: base256(-512n) })),
    says: /does not hold a tar archive/,
  },
  {
    title: "a header of no tar",
    archive: moduleWith(entry({ name: "package/x", magic: "\0\0\0\0\0\0\0\0" })),
    says: /does not hold a tar archive/,
  },
  {
    title: "a bad entry behind an early end",
    archive: tgz(...goodFiles, endMark, file("../escaped")),
    says: /leads outside/,
  },
  {
    title: "a link, then a file through it",
    archive: moduleWith(
      entry({ name: "package/a", flag: flags.symbolicLink, linkName: "/tmp" }),
      file("package/a/escaped"),
    ),
    says: /symbolic link/,
  },
  {
    title: "the path of a folder that exists outside",
    archive: (outside) => moduleWith(pax({ path: join(outside, "escaped") }), file("package/x")),
    says: /is absolute/,
  },
  { title: "no package.json", archive: tgz(file("package/index.js")), says: /no package.json/ },
  { title: "two top folders", archive: moduleWith(file("other/x")), says: /no package.json/ },
  { title: "a file beside the top folder", archive: moduleWith(file("README.md")), says: /no package.json/ },
  {
    title: "package.json two folders deep",
    archive: tgz(file("a/b/package.json", manifest()), file("a/b/index.js")),
    says: /no package.json/,
  },
  {
    title: "package.json as a folder",
    archive: tgz(file("package/package.json/x"), file("package/index.js")),
    says: /no package.json/,
  },
];

const octal = Buffer.from("0000000022\0");

/** What a size field may hold besides octal digits: GNU's numbers start with 0x80 or 0xff, and everything else is no number. */
const sizeFields: readonly (readonly [title: string, field: Buffer])[] = [
  ...[0x81, 0xb9, 0xe0, 0xfe].map((first) => [`0x${first.toString(16)}`, Buffer.from([first, ...octal])] as const),
  ["text", Buffer.from("zzzzzzzzzzzz")],
  ["-1 in octal", Buffer.from("-0000000001\0")],
  ["-1 of GNU", base256(-1n)],
  ["-512 of GNU", base256(-512n)],
  ["the lowest of GNU", base256(-(2n ** 87n))],
];

/** An entry that is read for its own sake, and those that only prepare the next. None may be passed over, or waited for without end. */
const bySize: readonly Hostile[] = sizeFields.flatMap(([title, sizeField]) =>
  [flags.file, flags.folder, flags.pax, flags.paxGlobal, flags.gnuLongName, flags.gnuLongLink].map((flag) => ({
    title: `a size that starts with ${title}, of kind "${flag}"`,
    archive: moduleWith(entry({ name: "package/x", flag, sizeField, content: "9 size=1\n" }), file("package/y", "y")),
    says: /has a size that is none|does not hold a tar archive|cut off/,
  })),
);

describe.each([
  { group: "paths", table: byPath },
  { group: "kinds of entries", table: byKind },
  { group: "clashes", table: clashes },
  { group: "tricks", table: tricks },
  { group: "sizes that are none", table: bySize },
])("$group", ({ table }) => {
  it.each(table)("$title is refused and leaves nothing", expectRefusal);
});
