/**
 * What a user installs: the built package as `npm pack` makes it, in an empty folder beside its dependencies and nothing else. The
 * dependencies are links to those of this repository, so that the test needs no network; only those that package.json lists as such
 * are there, and the package's own files come out of the archive.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { removeFolder } from "./server.ts";

const repository = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);

interface Manifest {
  readonly version: string;
  readonly bin: { readonly troupe: string };
  readonly dependencies: Readonly<Record<string, string>>;
}
const manifest = JSON.parse(readFileSync(join(repository, "package.json"), "utf8")) as Manifest;

let workshop: string;
/** Where a user works: package.json and node_modules. */
let app: string;
/** Paths in the archive. */
let packed: readonly string[];
/** Node as the tests run, no settings of the server, and no conditions that would lead to the sources. */
const environment = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(SERVICE_|NODE_OPTIONS$|npm_)/.test(name))),
  PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
};
const inApp = () => ({ cwd: app, env: environment });

beforeAll(async () => {
  workshop = await mkdtemp(join(tmpdir(), "troupe-packed-"));
  app = join(workshop, "app");
  const archive = await pack(join(workshop, "staged"));
  await install(archive, join(app, "node_modules"));
}, 120_000);

afterAll(async () => {
  await removeFolder(workshop);
});

/** `npm run build` and `npm pack`, in a folder of their own: the one of the repository may be in use. */
async function pack(folder: string): Promise<string> {
  for (const name of ["package.json", "README.md", "LICENSE", "proto"])
    cpSync(join(repository, name), join(folder, name), { recursive: true });
  const compiler = join(repository, "node_modules/.bin/tsc");
  // Types are checked by `npm run typecheck`; here only what comes out counts.
  const options = ["-p", "tsconfig.build.json", "--noCheck", "--outDir", join(folder, "dist")];
  await run(compiler, options, { cwd: repository });
  const guest = "executor/python/guest";
  cpSync(join(repository, "src", guest), join(folder, "dist", guest), { recursive: true });
  const { stdout } = await run("npm", ["pack", "--json", "--ignore-scripts"], { cwd: folder, env: environment });
  const [{ filename, files }] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }];
  packed = files.map(({ path }) => path);
  return join(folder, filename);
}

/** What npm would leave behind: the unpacked package, its dependencies, and the command. */
async function install(archive: string, modules: string): Promise<void> {
  const own = join(modules, "troupe");
  mkdirSync(own, { recursive: true });
  await run("tar", ["-xzf", archive, "--strip-components=1", "-C", own]);
  for (const name of Object.keys(manifest.dependencies)) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(repository, "node_modules", name), join(modules, name));
  }
  mkdirSync(join(modules, ".bin"));
  chmodSync(join(own, manifest.bin.troupe), 0o755);
  symlinkSync(join("..", "troupe", manifest.bin.troupe), join(modules, ".bin/troupe"));
  writeFileSync(join(app, "package.json"), JSON.stringify({ name: "app", private: true, type: "module" }));
}

test("the archive holds what runs, its types and its papers, and neither sources nor tests", () => {
  const expected = ["package.json", "README.md", "LICENSE", "dist/main.js", "dist/sdk/sdk.d.ts", "dist/sdk/testkit.js"];
  const guest = "dist/executor/python/guest/zygote.py";
  expect(packed).toContain("dist/client/client.d.ts");
  expect(packed).toEqual(expect.arrayContaining([...expected, guest, "proto/troupe/v1/service.proto"]));
  expect(packed.filter((path) => /^(src|test)\/|\.test\.|[^d]\.ts$/.test(path))).toEqual([]);
});

test("troupe --version says the version of the package", async () => {
  const { stdout } = await run(join(app, "node_modules/.bin/troupe"), ["--version"], inApp());
  expect(stdout).toBe(`${manifest.version}\n`);
});

test("the entries of the package are its exports, and nothing else of it can be imported", async () => {
  const script = `
    const found = [];
    for (const name of ["troupe/client", "troupe/sdk", "troupe/sdk/testkit", "troupe", "troupe/dist/main.js"])
      found.push(await import(name).then((entry) => Object.keys(entry).sort().join(), (error) => error.code));
    console.log(JSON.stringify(found));`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", script], inApp());
  const refused = "ERR_PACKAGE_PATH_NOT_EXPORTED";
  const client = "ProcessExitState,ProcessState,TroupeError,createTroupeClient";
  expect(JSON.parse(stdout)).toEqual([client, "", "checkModule,requireSoundModule", refused, refused]);
});

test("a module that the command writes fits its types, and its tests pass with the test kit", async () => {
  await run(join(app, "node_modules/.bin/troupe"), ["module", "new", "bookmarks"], inApp());
  const folder = join(app, "bookmarks");
  expect(existsSync(join(folder, "main.ts"))).toBe(true);
  // For what its test imports from Node; an author has them from the registry.
  const types = ["--types", "node", "--typeRoots", join(repository, "node_modules/@types")];
  await run(join(repository, "node_modules/.bin/tsc"), ["-p", folder, ...types], inApp()).catch((error: unknown) => {
    throw new Error((error as { stdout: string }).stdout);
  });
  const { stdout } = await run(process.execPath, ["--test"], { ...inApp(), cwd: folder });
  expect(stdout).toMatch(/pass [1-9]/);
  expect(stdout).toMatch(/fail 0/);
});

describe("npx troupe", () => {
  let http: string;
  let stop: () => Promise<void>;

  beforeAll(async () => {
    const settings = { SERVICE_HTTP_PORT: "0", SERVICE_GRPC_PORT: "0", SERVICE_DATA_DIR: join(workshop, "data") };
    // A group of its own: a signal to npx alone may not reach the server.
    const child = spawn("npx", ["--offline", "troupe"], {
      cwd: app,
      env: { ...environment, ...settings },
      stdio: ["ignore", "pipe", "inherit"],
      detached: true,
    });
    const closed = once(child, "close");
    const signal = (name: NodeJS.Signals): void => void process.kill(-child.pid!, name);
    stop = async () => {
      if (child.exitCode === null && child.signalCode === null) signal("SIGTERM");
      const timer = setTimeout(() => signal("SIGKILL"), 20_000);
      await closed;
      clearTimeout(timer);
    };
    http = await new Promise<string>((resolve, reject) => {
      closed.then(() => reject(new Error("The server ended before it listened")), reject);
      createInterface({ input: child.stdout }).on("line", (line) => {
        if (line.includes('"event":"listening"')) resolve((JSON.parse(line) as { http: string }).http);
      });
    });
  });
  afterAll(() => stop());

  const send = async (method: string, path: string, body?: object) => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(http + path, { method, ...(body ? { headers, body: JSON.stringify(body) } : {}) });
    return { status: response.status, body: (await response.json()) as { id?: number; tools?: unknown } };
  };

  test("answers /healthz", async () => {
    expect((await send("GET", "/healthz")).status).toBe(200);
  });

  test("runs a program in TypeScript", async () => {
    const code = "const answer: number = 6 * 7; return { answer };";
    const { body } = await send("POST", "/processes", { code });
    await send("GET", `/processes/${body.id}?wait=30`);
    expect((await send("GET", `/processes/${body.id}/output`)).body).toEqual({ answer: 42 });
  });

  test("installs a service of each adapter whose document can be inline, in the workers that come with it", async () => {
    const openapi = { openapi: "3.1.0", info: { title: "Pets", version: "1" }, paths: { "/pets": { get: {} } } };
    const graphql = { sdl: "type Query { pets: [String] }", endpoint: "http://127.0.0.1:9/graphql" };
    for (const [adapter, definition] of Object.entries({ openapi, graphql })) {
      const installed = await send("POST", "/services", { id: adapter, adapter, definition });
      expect([adapter, installed]).toEqual([adapter, { status: 201, body: { id: adapter } }]);
    }
    const { body } = await send("GET", "/tools?limit=10");
    expect((body as { items?: unknown[] }).items).toHaveLength(2);
  });
});
