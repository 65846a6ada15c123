/** The README's tour of the command line, line by line as it stands there, against a real server, pet store and registry. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type PetStore, startPetStore } from "../../../src/demo/pet-store.ts";
import { type DevRegistry, startDevRegistry } from "../../../src/dev-registry/dev-registry.ts";
import { type Ran, runInProcess } from "../../cli/run-in-process.ts";
import { removeFolder, type Server, startServer } from "../server.ts";

const readme = resolve(import.meta.dirname, "../../../README.md");
const before = process.cwd();
let server: Server;
let pets: PetStore;
let registry: DevRegistry;
let folder: string;

beforeAll(async () => {
  [server, pets, registry, folder] = await Promise.all([
    startServer(),
    startPetStore({ port: 0, apiKey: "CANARY-key" }),
    startDevRegistry(),
    mkdtemp(join(tmpdir(), "troupe-tour-")),
  ]);
  await writeFile(
    join(folder, "hello.ts"),
    "const name: string = env.name ?? 'you';\nconsole.log('thinking');\nreturn { hello: name };\n",
  );
  await writeFile(join(folder, "pet.key"), "CANARY-key\n");
  process.chdir(folder);
});

afterAll(async () => {
  process.chdir(before);
  await server.kill();
  await Promise.all([pets.close(), registry.close()]);
  await removeFolder(server.folder);
  await rm(folder, { recursive: true });
});

/** What each line has to print, by its beginning. */
const printed: Readonly<Record<string, RegExp>> = {
  status: /^ready +yes$/m,
  "processes run hello.ts --env": /^\{\n {2}"hello": "Olga"\n\}\n$/,
  "processes run hello.ts --watch": /"hello": "you"/,
  "processes list": /^ID +STATE.*\n +2 +idle +success .*\n +1 +idle +success /,
  "services add http": /^Service "petstore" is installed/,
  "services config": /"serverVar_port": "\d+"/,
  "services secrets": /^Secret "petKey" is set\n$/,
  "services enable": /^Service "petstore" is enabled\n$/,
  "tools search": /^petstore\.listPets +yes/m,
  "tools docs": /listPets/,
  "tools call": /"name": /,
  "registries add": /^Registry "dev-registry" is added\n$/,
  "registries browse": /^petstore /m,
  "services add --registry": /^Service "shop" is installed/,
  "modules install": /^Module "csv-table" 1\.\d+\.\d+ is installed/,
  "modules enable": /^Module "csv-table" is enabled\n$/,
  "modules list": /^\[\n {2}\{.*"id":"csv-table"/,
  logs: / WARN /,
  diagnostics: /^ACTORS/m,
  "actors list": /^$/,
  backup: /^"monday\.troupe" has everything/,
  verify: /is a whole backup/,
  restore: /^"restored" is as it was/,
};

it("works as the README says", async () => {
  const lines = (await tourLines()).map(split);
  expect(lines.length).toBe(Object.keys(printed).length);
  for (const { words, stdin } of lines) {
    const line = words.join(" ");
    const ran = await runInProcess(words, {
      environment: { TROUPE_SERVER: server.grpc },
      ...(stdin === undefined ? {} : { stdin: await readFile(stdin, "utf8") }),
    });
    expect({ line, ...ran }).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(expectedOf(line)) });
    expectNoSecret(ran);
  }
});

function expectedOf(line: string): RegExp {
  const found = Object.keys(printed).filter((beginning) => line.startsWith(beginning));
  const longest = found.sort((a, b) => b.length - a.length)[0];
  return printed[longest ?? ""] ?? /^nothing is expected of this line$/;
}

function expectNoSecret({ stdout, stderr }: Ran): void {
  expect(stdout + stderr).not.toContain("CANARY-key");
}

/** With the addresses of this test in place of those that people have. */
async function tourLines(): Promise<readonly string[]> {
  const section = (await readFile(readme, "utf8")).split("## From the command line")[1] ?? "";
  const block = /```sh\n([\s\S]*?)```/.exec(section)?.[1] ?? "";
  return block
    .trim()
    .replaceAll("127.0.0.1:3000", `127.0.0.1:${pets.port}`)
    .replaceAll("serverVar_port 3000", `serverVar_port ${pets.port}`)
    .replaceAll("http://127.0.0.1:9090/", registry.url)
    .split("\n");
}

/** As a shell would: words, quotes, a comment, and what stdin is read from. */
function split(line: string): { readonly words: readonly string[]; readonly stdin?: string } {
  const [name, ...words] = [...line.replace(/ +# .*$/, "").matchAll(/'([^']*)'|(\S+)/g)].map(
    ([, quoted, bare]) => quoted ?? bare ?? "",
  );
  if (name !== "troupe") throw new Error(`The line "${line}" does not begin with troupe`);
  const at = words.indexOf("<");
  return at === -1 ? { words } : { words: words.slice(0, at), stdin: words[at + 1] ?? "" };
}
