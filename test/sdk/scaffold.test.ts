/** `troupe module new`: what it writes works as it is, is typed, and never overwrites anything. */
import { execFile } from "node:child_process";
import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { moduleFiles, moduleNameFault, moduleNameRule } from "../../src/cli/module-files.ts";
import { runModuleNew } from "../../src/cli/module-new.ts";
import { openPackages } from "../../src/packages/packages.ts";
import type { PackageManifest } from "../../src/ports/packages.ts";
import { packedFiles } from "../../src/sdk/packed-files.ts";
import { troupeFolder, troupeVersion } from "../../src/sdk/troupe-package.ts";
import { recordingLog } from "../adapters/adapter-bench.ts";
import { sha256 } from "../dev-registry/client.ts";
import { packModule } from "../dev-registry/pack-module.ts";

const run = promisify(execFile);
const types = ["adapter", "environment"] as const;

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "module-new-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

function moduleNew(...args: readonly string[]) {
  const said = { stdout: "", stderr: "" };
  const exitCode = runModuleNew(args, {
    stdout: (text) => {
      said.stdout += text;
    },
    stderr: (text) => {
      said.stderr += text;
    },
  });
  return { exitCode, ...said };
}

/** A new module with this repository beside it, as if it were installed. */
async function newModule(type: (typeof types)[number]): Promise<string> {
  const into = await temporaryFolder();
  expect(moduleNew("book-shelf", "--type", type, "--into", into)).toMatchObject({ exitCode: 0, stderr: "" });
  const folder = join(into, "book-shelf");
  await mkdir(join(folder, "node_modules"));
  await symlink(troupeFolder, join(folder, "node_modules/troupe"));
  return folder;
}

/** What a server reads from the archive when it installs it. */
async function manifestAfterAdding(archive: Buffer): Promise<PackageManifest> {
  const packages = openPackages({
    folder: await temporaryFolder(),
    serverVersion: troupeVersion(),
    log: recordingLog(),
  });
  return (await packages.add(archive, sha256(archive))).manifest;
}

/** With the Node of this repository first in line, as where it is the only one, and the package's sources instead of its build. */
const environment = {
  PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`,
  HOME: tmpdir(),
  NODE_OPTIONS: "--conditions=troupe-source",
};

describe.each(types)("a new module of type %s", (type) => {
  test("passes its own tests with npm test, the test kit among them", async () => {
    const folder = await newModule(type);
    const { stdout } = await run("npm", ["test"], { cwd: folder, env: environment }).catch((error) => error);
    expect(stdout).toMatch(/^# pass [1-9]|ℹ pass [1-9]/m);
    expect(stdout).toMatch(/^# fail 0|ℹ fail 0/m);
  });

  test("fails its own tests when it breaks its contract", async () => {
    const folder = await newModule(type);
    const main = join(folder, "main.ts");
    writeFileSync(main, readFileSync(main, "utf8").replace("  setup:", "  setUp:"));
    const { stdout, code } = await run("npm", ["test"], { cwd: folder, env: environment }).catch((error) => error);
    expect(code).toBe(1);
    expect(stdout).toContain("does not keep its contract");
  });

  test("has no type errors, and uses nothing that Node cannot strip", async () => {
    const folder = await newModule(type);
    await symlink(join(troupeFolder, "node_modules/@types"), join(folder, "node_modules/@types"));
    const tsc = join(troupeFolder, "node_modules/.bin/tsc");
    const args = ["--project", ".", "--customConditions", "troupe-source", "--types", "node"];
    const { stdout } = await run(process.execPath, [tsc, ...args], { cwd: folder }).catch((error) => error);
    expect(stdout).toBe("");
  });

  test("is packed by npm with the files the test kit looks at, and nothing else", async () => {
    const folder = await newModule(type);
    const { stdout } = await run("npm", ["pack", "--json", "--offline"], { cwd: folder, env: environment });
    const [{ filename, files }] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }];
    expect(filename).toBe("troupe-module-book-shelf-0.1.0.tgz");
    expect(files.map(({ path }) => path).sort()).toEqual(["README.md", "icon.svg", "main.ts", "package.json"]);
    expect(packedFiles(folder)).toEqual(["README.md", "icon.svg", "main.ts", "package.json"]);
    const added = await manifestAfterAdding(await readFile(join(folder, filename)));
    expect(added).toMatchObject({ id: "book-shelf", type, version: "0.1.0", main: "main.ts", hasIcon: true });
    expect(await manifestAfterAdding(packModule(folder))).toEqual(added);
  });

  test("says in its manifest what it is", async () => {
    const folder = await newModule(type);
    const { name, version, troupe } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    expect([name, version]).toEqual(["troupe-module-book-shelf", "0.1.0"]);
    expect(troupe).toEqual({
      id: "book-shelf",
      name: "Book shelf",
      type,
      description: expect.stringMatching(/^[A-Z].{20,}[a-z]$/),
      engines: `^${troupeVersion()}`,
      main: "main.ts",
      icon: "icon.svg",
    });
    const icon = await readFile(join(folder, "icon.svg"), "utf8");
    expect(icon).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"[\s\S]*>B<\/text>/);
  });
});

describe("what it is asked", () => {
  test("an adapter is what it writes when no type is given, into the working folder by default", async () => {
    const into = await temporaryFolder();
    const before = process.cwd();
    process.chdir(into);
    onTestFinished(() => process.chdir(before));
    expect(moduleNew("shelf")).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("  cd shelf\n") });
    expect(JSON.parse(readFileSync("shelf/package.json", "utf8")).troupe.type).toBe("adapter");
  });

  test("folders on the way to the new one are made", async () => {
    const into = join(await temporaryFolder(), "a/b");
    expect(moduleNew("shelf", "--into", into).exitCode).toBe(0);
    expect(readdirSync(into)).toEqual(["shelf"]);
  });

  test.each([
    [[], "The module needs a name"],
    [["one", "two"], 'There is one name too many: "two"'],
    [["one", "--type", "library"], 'Cannot make a module of type "library": there are "adapter" and "environment"'],
    [["one", "--type"], "Option '--type <value>' argument missing"],
    [["one", "--force"], "Unknown option '--force'"],
  ])("%j is refused, with the usage", async (args, reason) => {
    const into = await temporaryFolder();
    const { exitCode, stdout, stderr } = moduleNew(...args, ...(args.at(-1) === "--type" ? [] : ["--into", into]));
    expect([exitCode, stdout]).toEqual([64, ""]);
    expect(stderr).toBe(`${reason}\nUsage: troupe module new NAME [--type adapter|environment] [--into FOLDER]\n`);
    expect(readdirSync(into)).toEqual([]);
  });

  test.each([
    "",
    "Shelf",
    "1shelf",
    "-shelf",
    "shelf-",
    "my_shelf",
    "my shelf",
    "../shelf",
    "a/b",
    ".",
    "a".repeat(65),
    "übung",
    "shelf\n",
  ])("the name %j is refused with the rule", async (name) => {
    const into = await temporaryFolder();
    const { exitCode, stderr } = moduleNew("--into", into, "--", name);
    expect(exitCode).toBe(64);
    expect(stderr).toContain(`Cannot name a module "${name}": ${moduleNameRule}`);
    expect(readdirSync(into)).toEqual([]);
  });

  test.each(["openapi", "mcp", "grpc", "graphql", "javascript", "python", "constructor"])(
    "the name %s is taken",
    (name) => expect(moduleNameFault(name)).toBe("the server uses this name itself"),
  );

  test.each(["a", "a1", "book-shelf", "a".repeat(64)])("the name %s is fine", (name) => {
    expect(moduleNameFault(name)).toBeUndefined();
  });

  test.each<[string, (path: string) => void]>([
    ["folder", (path) => mkdirSync(path)],
    ["file", (path) => writeFileSync(path, "mine")],
    ["link that leads nowhere", (path) => symlinkSync("/nonexistent/x", path)],
  ])("a %s that is there is left alone", async (_, put) => {
    const into = await temporaryFolder();
    const path = join(into, "shelf");
    put(path);
    const { ino, mtimeMs } = lstatSync(path);
    expect(moduleNew("shelf", "--into", into)).toEqual({
      exitCode: 73,
      stdout: "",
      stderr: `Cannot write a module to "${path}": it exists already, and nothing is overwritten\n`,
    });
    expect(readdirSync(into, { recursive: true })).toEqual(["shelf"]);
    expect(lstatSync(path)).toMatchObject({ ino, mtimeMs });
  });

  test("a folder below a file cannot be made, and it says so", async () => {
    const into = join(await temporaryFolder(), "file");
    writeFileSync(into, "");
    const { exitCode, stderr } = moduleNew("shelf", "--into", into);
    expect([exitCode, stderr]).toEqual([
      73,
      expect.stringMatching(/: (a part of the path is a file|it exists already, .*)\n$/),
    ]);
  });
});

test.each(types)("the files of an %s depend on nothing but what was asked", (type) => {
  const wanted = { name: "shelf", type, troupeVersion: "1.2.3" };
  expect(moduleFiles(wanted)).toEqual(moduleFiles(wanted));
  const [packageJson] = moduleFiles(wanted);
  expect(JSON.parse(packageJson?.text ?? "").troupe.engines).toBe("^1.2.3");
});
