/** The files of a package, held against npm itself. */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { missingDependencies, packedFiles } from "../../src/sdk/packed-files.ts";

const run = promisify(execFile);
const environment = { PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`, HOME: tmpdir() };

const everything = [
  ...["main.ts", "index.js", "README.md", "LICENSE", "readme-of-mine.txt", "lib/a.ts", "lib/b.js", "lib/deep/c.ts"],
  ...["lib/node_modules/x.js", "node_modules/left/index.js", "package-lock.json", ".npmrc", "docs/.hidden"],
];

const folders: string[] = [];
afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))));

async function folderWith(packageJson: object): Promise<string> {
  const outer = await mkdtemp(join(tmpdir(), "packed-"));
  folders.push(outer);
  const folder = join(outer, "module");
  await writeFile(join(outer, "outside.ts"), "");
  for (const path of everything) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), "");
  }
  await writeFile(join(folder, "node_modules/left/package.json"), '{"name":"left","version":"1.0.0"}');
  await symlink("main.ts", join(folder, "link.ts"));
  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "m", version: "1.0.0", ...packageJson }));
  return folder;
}

test.concurrent.each<[string, object]>([
  ["no list", {}],
  ["an empty list", { files: [] }],
  ["files", { files: ["main.ts", "lib/a.ts"] }],
  ["a folder", { files: ["lib"] }],
  ["a folder with slashes around it", { files: ["/lib/"] }],
  ["a path that begins with a dot", { files: ["./main.ts"] }],
  ["a pattern", { files: ["lib/*.ts"] }],
  ["a deep pattern", { files: ["lib/**/*.ts"] }],
  ["a pattern and what it leaves out", { files: ["lib/**", "!lib/deep/c.ts"] }],
  ["something outside", { files: ["../outside.ts", "main.ts"] }],
  ["something that is not there", { files: ["nothing.ts", "main.ts"] }],
  ["a link", { files: ["link.ts", "main.ts"] }],
  ["a main file that the list leaves out", { files: ["lib/a.ts"], main: "index.js" }],
  ["what npm never packs", { files: ["package-lock.json", ".npmrc", "main.ts"] }],
  ["a bundled package", { files: ["main.ts"], dependencies: { left: "1.0.0" }, bundleDependencies: ["left"] }],
  ["all packages bundled", { files: ["main.ts"], dependencies: { left: "1.0.0" }, bundleDependencies: true }],
])("with %s they are those that npm packs", async (_, packageJson) => {
  const folder = await folderWith(packageJson);
  const { stdout } = await run("npm", ["pack", "--dry-run", "--json", "--offline"], { cwd: folder, env: environment });
  const [{ files }] = JSON.parse(stdout) as [{ files: readonly { readonly path: string }[] }];
  expect(packedFiles(folder)).toEqual(files.map(({ path }) => path).sort());
});

test.each<[object, readonly string[]]>([
  [{}, []],
  [{ dependencies: { a: "1", b: "1" } }, ["a", "b"]],
  [{ dependencies: { a: "1", b: "1" }, bundleDependencies: ["a"] }, ["b"]],
  [{ dependencies: { a: "1" }, bundledDependencies: ["a"] }, []],
  [{ dependencies: { a: "1" }, bundleDependencies: true }, []],
  [{ devDependencies: { a: "1" }, optionalDependencies: { c: "1" } }, []],
])("of %j the packages %j are missing", (packageJson, missing) => {
  expect(missingDependencies(packageJson)).toEqual(missing);
});
