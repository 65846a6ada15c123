/**
 * The other commands of `troupe` against a real server, pet store and registry. They run in this process (test/cli/run-in-process.ts); where
 * signals, pipes or the start itself are the point, spawned.test.ts starts real ones.
 */
import { readFile, stat, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PetStore, startPetStore } from "../../../src/demo/pet-store.ts";
import { petStoreDocument } from "../../../src/demo/pet-store-document.ts";
import { defaultBehaviour } from "../../../src/dev-registry/behaviour.ts";
import { type DevRegistry, startDevRegistry } from "../../../src/dev-registry/dev-registry.ts";
import { type CliBench, keys, openCliBench, secret } from "./cli-bench.ts";

let bench: CliBench;
let pets: PetStore;
let registry: DevRegistry;

beforeAll(async () => {
  [bench, pets, registry] = await Promise.all([
    openCliBench(),
    startPetStore({ port: 0, apiKey: secret }),
    startDevRegistry({ auth: "apikey" }),
  ]);
});

afterAll(() => Promise.all([bench.close(), pets.close(), registry.close()]));

describe("services and tools", () => {
  it("are added from a URL and from a file", async () => {
    expect(await bench.said(`services add ${pets.documentUrl} --id petstore`)).toMatch(
      /^Service "petstore" is installed/,
    );
    await writeFile(bench.file("pets.json"), JSON.stringify(petStoreDocument));
    expect(await bench.json(`services add --file ${bench.file("pets.json")} --id again --adapter openapi`)).toEqual({
      id: "again",
    });
    expect(await bench.troupe(`services add ${pets.documentUrl} --id petstore`)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("(already_exists)"),
    });
    expect(await bench.said("services list")).toMatch(/^ID +VERSION +ADAPTER[\s\S]*petstore +\S+ +openapi +no/m);
    expect((await bench.json("services list petstore --limit 5")).length).toBeGreaterThan(0);
    expect(await bench.said("services get petstore")).toMatch(/^id +petstore$/m);
  });

  it("are configured", async () => {
    expect(await bench.troupe("services enable nobody")).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: 'There is no service "nobody" (not_found)\n',
    });
    expect(JSON.parse(await bench.said("services config schema petstore"))).toMatchObject({ type: "object" });
    expect(JSON.parse(await bench.said(`services config set petstore serverVar_port ${pets.port} --text`))).toEqual({
      serverVar_port: String(pets.port),
    });
    expect(JSON.parse(await bench.said("services config get petstore"))).toEqual({ serverVar_port: String(pets.port) });
    expect(await bench.json("services config get petstore")).toMatchObject({ etag: expect.any(String) });
    await bench.said(`services config set again /serverVar_port ${JSON.stringify(String(pets.port))}`);
    expect(JSON.parse(await bench.said("services config unset again serverVar_port"))).toEqual({});
  });

  it("are given secrets from stdin and from files, which nobody sees again", async () => {
    expect(JSON.parse(await bench.said("services secrets schema petstore"))).toMatchObject({ type: "object" });
    expect(await bench.said("services secrets set petstore petKey", { stdin: "wrong\n" })).toBe(
      'Secret "petKey" is set\n',
    );
    await writeFile(bench.file("pet.key"), `${secret}\n`);
    await bench.said(`services secrets set petstore petKey --file ${bench.file("pet.key")}`);
    expect(await bench.said("services secrets list petstore")).toBe("petKey\n");
    expect(await bench.json("services secrets list petstore")).toEqual({ present: ["/petKey"], outdated: [] });
    await bench.said("services secrets set again petKey", { stdin: "x" });
    expect(await bench.said("services secrets unset again petKey")).toBe('Secret "petKey" is not set any more\n');
    expect(await bench.said("services secrets list again")).toBe("");
  });

  it("are enabled, called and disabled", async () => {
    expect(await bench.json("services enable petstore")).toEqual({ id: "petstore", enabled: true });
    expect(await bench.said("services tools petstore")).toMatch(
      /^TOOL +ENABLED +SUMMARY\n[\s\S]*petstore\.listPets +yes /,
    );
    expect(
      (await bench.json("tools list --service petstore --limit 3")).map(
        ({ serviceId }: { serviceId: string }) => serviceId,
      ),
    ).toEqual(["petstore", "petstore", "petstore"]);
    expect((await bench.json("tools search list pets --service petstore"))[0]).toMatchObject({ id: "listPets" });
    expect(JSON.parse(await bench.said("tools get petstore/listPets"))).toMatchObject({
      id: "listPets",
      inputSchema: { type: "object" },
    });
    expect(await bench.said("tools docs petstore.listPets")).toContain("listPets");
    expect(await bench.said("tools docs")).toContain("output(");
    await writeFile(bench.file("params.json"), '{"query":{"tags":["calm"]}}');
    for (const [words, stdin] of [
      [["--params", '{"query":{"tags":["calm"]}}']],
      [["--params", `@${bench.file("params.json")}`]],
      [["--params", "-"], '{"query":{"tags":["calm"]}}'],
    ] as const) {
      const printed = await bench.said(
        ["tools", "call", "petstore.listPets", ...words],
        stdin === undefined ? {} : { stdin },
      );
      expect(JSON.parse(printed)).toMatchObject({ status: 200 });
    }
    expect(await bench.said("tools disable petstore.listPets")).toBe('Tool "petstore.listPets" is disabled\n');
    expect(await bench.troupe("tools call petstore.listPets")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/\([a-z_]+\)\n$/),
    });
    expect(await bench.json("tools enable petstore.listPets")).toMatchObject({ id: "listPets", enabled: true });
    expect(await bench.said("services disable petstore")).toBe('Service "petstore" is disabled\n');
    expect(await bench.said("services sync petstore")).toMatch(/^"petstore" (is now|stays) at version /);
    expect(await bench.said("services delete again")).toBe('Service "again" is deleted\n');
  });
});

describe("registries and modules", () => {
  it("a registry is added, given credentials, browsed and refreshed", async () => {
    expect(await bench.said(`registries add ${registry.url}`)).toBe('Registry "dev-registry" is added\n');
    expect(await bench.troupe("registries auth set dev-registry")).toMatchObject({ exitCode: 64 });
    expect(
      await bench.said("registries auth set dev-registry --auth-key-file -", { stdin: `${defaultBehaviour.apiKey}\n` }),
    ).toMatch(/^Credentials of registry "dev-registry": configured/);
    expect(await bench.json("registries auth get dev-registry")).toMatchObject({ authType: "apiKey" });
    expect(await bench.said("registries list")).toMatch(/^ID +URL +AUTH[\s\S]*dev-registry +http/);
    expect(await bench.json("registries get dev-registry")).toMatchObject({
      id: "dev-registry",
      baseUrl: registry.url,
    });
    expect(await bench.said("registries browse dev-registry pet")).toMatch(/^petstore /m);
    expect(
      (await bench.json("registries browse dev-registry --modules csv")).map(({ id }: { id: string }) => id),
    ).toContain("csv-table");
    expect(await bench.said("registries refresh dev-registry")).toBe('Registry "dev-registry" is up to date\n');
  });

  it("a module is installed, enabled, updated, rolled back and deleted", async () => {
    expect(await bench.said("modules install --registry dev-registry --module csv-table --version 1.0.0")).toMatch(
      /^Module "csv-table" 1\.0\.0 is installed/,
    );
    expect(await bench.said("modules enable csv-table")).toBe('Module "csv-table" is enabled\n');
    expect(await bench.said("modules list --type adapter")).toMatch(/^csv-table +adapter +1\.0\.0 +yes +no/m);
    expect(await bench.json("modules list csv --limit 1")).toHaveLength(1);
    expect(await bench.json("modules get csv-table")).toMatchObject({ id: "csv-table", type: "adapter" });
    expect(await bench.said("modules update csv-table")).toMatch(/^"csv-table" is now at version /);
    expect(await bench.said("modules rollback csv-table")).toBe('"csv-table" is at version 1.0.0 again\n');
    expect(await bench.said("modules reload")).toMatch(/^\d+ modules, 0 of them faulty\n$/);
    expect(await bench.json("modules disable csv-table")).toEqual({ id: "csv-table", enabled: false });
    expect(await bench.said("modules delete csv-table")).toBe('Module "csv-table" is deleted\n');
  });

  it("a module has configuration and secrets as a service has, as far as it knows any", async () => {
    expect(await bench.said("modules config get openapi")).toBe("{}\n");
    await bench.said("modules config schema openapi");
    await bench.said("modules secrets schema openapi");
    expect(await bench.said("modules secrets list openapi")).toBe("");
    const refused = { exitCode: 1, stdout: "" };
    expect(await bench.troupe("modules config set openapi nothing 1")).toMatchObject(refused);
    expect(await bench.said("modules config unset openapi nothing")).toBe("{}\n");
    expect(await bench.troupe("modules secrets set openapi nothing", { stdin: "x" })).toMatchObject(refused);
    expect(await bench.said("modules secrets unset openapi nothing")).toBe('Secret "nothing" is not set any more\n');
  });

  it("a service comes from a registry and is brought up to date", async () => {
    await bench.said("services add --registry dev-registry --definition petstore --version 1.0.0 --id shop");
    expect(await bench.said("services update shop")).toMatch(/^"shop" (is now|stays) at version /);
    expect(await bench.json("services delete shop")).toEqual({ id: "shop", deleted: true });
    expect(await bench.said("registries auth delete dev-registry")).toMatch(/has no credentials any more\n$/);
    expect(await bench.said("registries delete dev-registry")).toBe('Registry "dev-registry" is deleted\n');
  });
});

describe("the node", () => {
  it("is told at a glance and in full", async () => {
    expect(await bench.said("status")).toMatch(
      /^server +http:.*\nversion +0\.\d+\.\d+ on Node\.js v[\s\S]*^ready +yes\nstore +healthy\n/m,
    );
    expect(await bench.json("status")).toMatchObject({
      ready: true,
      store: { healthy: true },
      uptimeSeconds: expect.any(Number),
    });
    expect(await bench.said("diagnostics")).toMatch(
      /^event loop delay +[\s\S]*^ACTORS +IN MEMORY[\s\S]*^process +\d+[\s\S]*^ +CHILD|^CHILD/m,
    );
    expect(await bench.json("diagnostics")).toMatchObject({
      node: { version: expect.any(String) },
      executors: { slots: { slots: 16 } },
      deadLetters: { counts: expect.any(Array) },
    });
  });

  it("lists its actors, shows one with secrets masked, and restarts what is parked", async () => {
    expect(await bench.said("actors list --kind service")).toMatch(
      /^ACTOR +PHASE +MAILBOX[\s\S]*service\/petstore +ready/,
    );
    expect((await bench.json("actors list --kind module --limit 2")).map(({ kind }: { kind: string }) => kind)).toEqual(
      ["module", "module"],
    );
    expect(await bench.json("actors list --parked --troubled")).toEqual([]);
    const shown = await bench.said("actors get service/petstore");
    expect(JSON.parse(shown)).toMatchObject({ actor: { kind: "service", id: "petstore" }, state: { id: "petstore" } });
    expect(await bench.said("actors restart service/petstore")).toMatch(/is not parked/);
    expect(await bench.troupe("actors get service/nobody")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("(not_found)"),
    });
  });

  it("says what it logs, and logs more when asked to", async () => {
    expect(await bench.said("log-level")).toMatch(/^level +info\n/);
    expect(await bench.said("log-level debug")).toMatch(/"debug" from now on/);
    expect(await bench.json("log-level")).toMatchObject({ level: "debug", configuredLevel: "info", setBy: "boss" });
    await bench.said("log-level info");
  });

  it("has its log read, searched and followed", async () => {
    const lines = (await bench.said("logs --lines 5")).trimEnd().split("\n");
    expect(lines).toHaveLength(5);
    for (const line of lines) expect(line).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z (DEBUG|INFO |WARN |ERROR) [a-z-]+ {2}/);
    const times = lines.map((line) => line.slice(0, 24));
    expect([...times].sort()).toEqual(times);
    expect(await bench.json("logs --event listening --level info --since 1h")).toMatchObject([
      { event: "listening", level: "info" },
    ]);
    const follow = "logs --follow --json --level warn --event log-level-set --query warn --lines 1";
    const following = bench.troupe(follow, { interruptAt: /log-level-set/ });
    const { exitCode, stdout, stderr } = await bench.repeating(async () => {
      for (const level of ["warn", "info"]) await bench.troupe(`log-level ${level}`);
    }, following);
    expect({ exitCode, stderr }).toEqual({ exitCode: 130, stderr: "" });
    expect(JSON.parse(stdout.split("\n")[0] ?? "")).toMatchObject({ level: "warn", event: "log-level-set" });
  });

  it("tells what happens to its things", async () => {
    const watching = bench.troupe("events --kind process service", { interruptAt: /process\/\d+ added/ });
    const { exitCode, stdout, stderr } = await bench.repeating(() => bench.post("/processes", { code: "" }), watching);
    expect({ exitCode, stderr }).toEqual({ exitCode: 130, stderr: "" });
    expect(stdout).toMatch(/^there is service\/petstore \(disabled\)$/m);
  });
});

describe("keys and roles", () => {
  it("no key, an unknown key and a key that may not are 77, with the server's sentence", async () => {
    const none = { TROUPE_KEY_FILE: "" };
    expect(await bench.troupe("status", { environment: none })).toMatchObject({
      exitCode: 77,
      stderr: expect.stringMatching(/^[A-Z].* \(unauthenticated\)\n$/),
    });
    expect(
      await bench.troupe("status", { environment: { ...none, TROUPE_API_KEY: "of-somebody-else" } }),
    ).toMatchObject({
      exitCode: 77,
    });
    const robot = { environment: { ...none, TROUPE_API_KEY: keys.robot } };
    expect(await bench.troupe("services delete petstore", robot)).toMatchObject({
      exitCode: 77,
      stderr: expect.stringContaining("(forbidden)"),
    });
    expect(await bench.troupe("processes list --limit 1", robot)).toMatchObject({ exitCode: 0 });
  });
});

describe("files of the server", () => {
  it("are backed up, verified and restored", async () => {
    expect(await bench.said(`backup ${bench.file("monday")}`)).toMatch(
      /has everything acknowledged before .*\nsha256 [0-9a-f]{64}\n$/,
    );
    expect((await stat(bench.file("monday"))).mode & 0o777).toBe(0o600);
    expect(await bench.json(`backup ${bench.file("monday")}`)).toMatchObject({
      file: bench.file("monday"),
      entries: expect.any(Number),
    });
    expect(await bench.json("verify")).toMatchObject({ findings: [], records: expect.any(Number) });
    expect(await bench.said("verify")).toMatch(/^Sound: /);
    expect(await bench.said(`verify --backup ${bench.file("monday")}`)).toMatch(/is a whole backup/);
    const restored = await bench.troupe(`restore ${bench.file("monday")} --data-dir ${bench.file("data")}`);
    expect(restored).toMatchObject({
      exitCode: 0,
      stderr: expect.stringMatching(/^Its secrets need the key [0-9a-f]+: /),
    });
    expect(await bench.said(`verify --data-dir ${bench.file("data")}`)).toMatch(/^Sound: /);
    expect(await bench.troupe(`restore ${bench.file("monday")} --data-dir ${bench.file("data")}`)).toMatchObject({
      exitCode: 73,
    });
    expect(await bench.troupe(`verify --data-dir ${bench.server.folder}`)).toMatchObject({ exitCode: 75 });
    expect(await bench.troupe(`backup ${bench.file("nowhere/monday")}`)).toMatchObject({ exitCode: 73 });
    const bytes = await readFile(bench.file("monday"));
    await writeFile(bench.file("damaged"), bytes.subarray(0, bytes.length - 100));
    expect(await bench.troupe(`verify --backup ${bench.file("damaged")}`)).toMatchObject({ exitCode: 65, stdout: "" });
  });

  it("certificates are made once, and again only by force", async () => {
    expect(await bench.said(`certs --into ${bench.file("certs")} --client boss`)).toMatch(/^made authority: /);
    expect(await readFile(bench.file("certs/client-boss.crt"), "utf8")).toContain("BEGIN CERTIFICATE");
    expect(await bench.troupe(`certs --into ${bench.file("certs")} --client boss`)).toMatchObject({ exitCode: 73 });
    expect(await bench.json(`certs --into ${bench.file("certs")} --client boss --force`)).toMatchObject({
      clients: [{ name: "boss" }],
    });
  });
});

describe("the end", () => {
  it("is a drain that is told until it is over", async () => {
    expect(await bench.said("drain")).toMatch(/^The server ends; nothing was cut/);
    expect(await bench.troupe("status")).toMatchObject({
      exitCode: 69,
      stderr: expect.stringMatching(/^Cannot reach the server at /),
    });
  });
});
