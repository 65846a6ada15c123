/** Rows of modules: the list, the enabled flag, auto-update, environments, a folder that is gone, configuration. See README.md. */
import { createHash } from "node:crypto";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { moduleArchive } from "../../src/dev-registry/offers/modules.ts";
import { sampleModuleSource } from "../../src/dev-registry/offers/sample-modules.ts";
import type { Answer } from "../e2e/server.ts";
import { newServiceId, object, openServiceBench } from "./service-bench.ts";
import { notFound, openSite, refusedByUs, told } from "./site.ts";

const site = openSite();
const bench = openServiceBench(site);
const conflict = [409, "conflict"];

let count = 0;
const newId = (): string => `toy${++count}`;
const read = async (id: string): Promise<Answer["body"]> => (await site.server.get(`/modules/${id}`)).body;
const post = (id: string, below: string, body: unknown = {}) => site.server.post(`/modules/${id}/${below}`, body);
const enable = (id: string, enabled = true) => post(id, "enabled", { enabled });
const ids = (answer: Answer): string[] => answer.body.items.map(({ id }: { id: string }) => id);

function pack(id: string, version: string, type: "adapter" | "environment", description: string): Buffer {
  return moduleArchive({ id, name: id, type, description, version, source: sampleModuleSource(type, version) });
}

/** Installed from the registry, disabled. */
async function installed(type: "adapter" | "environment" = "adapter", description = "A toy"): Promise<string> {
  const id = newId();
  bench.registry.publish("modules", { id, version: "1.0.0", type, content: pack(id, "1.0.0", type, description) });
  const answer = await site.server.post("/modules", { registryId: "dev-registry", moduleId: id });
  expect(answer.status, answer.text).toBe(201);
  return id;
}

/** Installed from a file, so without a registry to update from. */
async function installedFromFile(): Promise<string> {
  const id = newId();
  const content = pack(id, "1.0.0", "adapter", "A toy of a file");
  const file = join(site.server.folder, `${id}.tgz`);
  await writeFile(file, content);
  const hash = createHash("sha256").update(content).digest("hex");
  const answer = await site.server.post("/modules", { source: `file://${file}`, hash });
  expect(answer.status, answer.text).toBe(201);
  return id;
}

describe("the list", () => {
  it.each([
    ...["type=bogus", "type=", "type=ADAPTER", "type=adapter&type=environment"],
    ...["enabled=maybe", "enabled=", "enabled=1", "enabled=null", "isBuiltin=yes", "missing=0", "missing=%20"],
    ...["limit=0", "limit=-1", "limit=1.5", "limit=x", "cursor="],
  ])("P-58 with %s is 400", async (query) => {
    const answer = await site.server.get(`/modules?${query}`);
    expect(answer.status, answer.text).toBe(400);
    expect(answer.body).toEqual({
      error: expect.any(String),
      code: expect.stringMatching(/^invalid_(request|cursor)$/),
    });
  });

  it("P-58 flags are true or false in any case", async () => {
    for (const [query, expected] of [
      ["isBuiltin=TRUE", true],
      ["isBuiltin=False", false],
    ] as const) {
      const { status, body } = await site.server.get(`/modules?${query}`);
      expect(status).toBe(200);
      expect(body.items.length).toBeGreaterThan(0);
      for (const { isBuiltin } of body.items) expect(isBuiltin).toBe(expected);
    }
  });

  it("P-59 with a blank query is the same as without one, and blanks around a word do not count", async () => {
    await installed("adapter", "Unmistakable words");
    const all = (await site.server.get("/modules?limit=100")).text;
    for (const query of ["", "%20%20%20", "%09"]) {
      expect((await site.server.get(`/modules?limit=100&query=${query}`)).text).toBe(all);
    }
    const found = await site.server.get("/modules?query=unMISTAKABLE");
    expect(found.body.items).toHaveLength(1);
    expect((await site.server.get("/modules?query=%20unmistakable%20words%20")).text).toBe(found.text);
    for (const query of ["%25", "_nmistakable", "unmistakable%25", ".*"]) {
      expect([query, ids(await site.server.get(`/modules?query=${query}`))]).toEqual([query, []]);
    }
  });

  it("P-60 with filters has what matches all of them, newest first", async () => {
    const id = await installed("environment");
    const builtin = ids(await site.server.get("/modules?isBuiltin=true&limit=100"));
    const others = ids(await site.server.get("/modules?isBuiltin=false&limit=100"));
    expect(builtin).toEqual(expect.arrayContaining(["openapi", "graphql", "javascript"]));
    expect(others[0]).toBe(id);
    expect(others).toContain("mirror");
    expect(new Set([...builtin, ...others])).toEqual(new Set(ids(await site.server.get("/modules?limit=100"))));
    expect(ids(await site.server.get("/modules?isBuiltin=false&type=environment&enabled=false"))).toContain(id);
    expect(ids(await site.server.get("/modules?isBuiltin=false&type=environment&enabled=true"))).toEqual([]);
    expect(ids(await site.server.get("/modules?isBuiltin=true&missing=false&type=environment"))).toContain(
      "javascript",
    );
    expect(ids(await site.server.get("/modules?isBuiltin=false&missing=true"))).toEqual([]);
    const times = (await site.server.get("/modules?limit=100")).body.items.map(
      ({ createdAt }: { createdAt: string }) => createdAt,
    );
    expect(times).toEqual([...times].sort().reverse());
  });

  it("P-61 a module that is not there is 404 on every route", async () => {
    const rows: [string, string, unknown?][] = [
      ...["", "/config", "/config/schema", "/secrets", "/secrets/schema", "/icon"].map((path): [string, string] => [
        "GET",
        path,
      ]),
      ["DELETE", ""],
      ["POST", "/enabled", { enabled: true }],
      ["POST", "/enabled", { enabled: false }],
      ["POST", "/auto-update", { autoUpdate: true }],
      ["POST", "/update", {}],
      ["POST", "/rollback", {}],
      ["PATCH", "/config", []],
      ["PATCH", "/secrets", []],
    ];
    for (const [method, path, body] of rows) {
      for (const id of ["nope", "constructor", "a%2Fb"]) {
        const answer = await site.server.call(method, `/modules/${id}${path}`, body);
        expect([method, id, path, ...told(answer)]).toEqual([method, id, path, ...notFound]);
      }
    }
  });
});

describe("the enabled flag", () => {
  it.each([{ enabled: "true" }, { enabled: 1 }, { enabled: null }, {}, [], "null", '"true"', "", "{"])(
    "P-62 is not set by %j",
    async (body) => {
      const before = await read("javascript");
      expect(told(await post("javascript", "enabled", body))).toEqual(refusedByUs);
      expect(await read("javascript")).toEqual(before);
    },
  );

  it("P-64 set to what it is answers 200 and changes nothing", async () => {
    const id = await installed();
    const before = await read(id);
    expect((await enable(id, false)).body).toEqual({ id, enabled: false });
    expect(await read(id)).toEqual(before);
    await enable(id);
    const service = await bench.install({ id: newServiceId(), adapter: id, definition: "ping" });
    await bench.enable(service);
    const enabled = await read(id);
    const again = await enable(id);
    expect([again.status, again.body]).toEqual([200, { id, enabled: true }]);
    expect(await read(id)).toEqual(enabled);
    expect((await site.server.post(`/tools/${service}/ping/invoke`, {})).status).toBe(200);
  });

  it("P-65 a built-in cannot be deleted: 409 (decisions)", async () => {
    for (const id of ids(await site.server.get("/modules?isBuiltin=true&limit=100"))) {
      expect([id, ...told(await site.server.call("DELETE", `/modules/${id}`))]).toEqual([id, ...conflict]);
      expect((await site.server.get(`/modules/${id}`)).status).toBe(200);
    }
  });
});

describe("auto-update", () => {
  const set = (path: string, body: unknown) => site.server.post(`${path}/auto-update`, body);
  const pins = ["^1.0.0", "~1.2", "1.x", ">=1.0.0 <2.0.0 || 3.x", "*", "1.2.3-beta.1"];

  /** A module and a service of the registry: the same rules for both. */
  async function subjects(): Promise<readonly { path: string; id: string }[]> {
    const [module, service] = [await installed(), await bench.offered({})];
    return [
      { path: `/modules/${module}`, id: module },
      { path: `/services/${service.id}`, id: service.id },
    ];
  }

  it("P-66, R-058 what is no range is 400, and nothing is stored", async () => {
    const constraints = [
      ...["not a range", "latest", "^", "1.2.3.4", ">=01.2.3", "npm:x@1", "workspace:*", "", "   ", 1, true, [], {}],
      ...[
        `1.2.3${" ".repeat(90_000)}<1.3.0`,
        "x".repeat(90_000),
        "1.".repeat(90_000),
        "-".repeat(90_000),
        "^1.0.0 ".repeat(40),
      ],
    ];
    for (const { path, id } of await subjects()) {
      expect((await set(path, { autoUpdate: true, constraint: "^1.0.0" })).status).toBe(200);
      for (const constraint of constraints) {
        const answer = await set(path, { autoUpdate: false, constraint });
        expect([constraint, ...told(answer)]).toEqual([constraint, ...refusedByUs]);
        expect(answer.body.error).toContain("constraint");
      }
      for (const body of [{}, { autoUpdate: "true" }, { autoUpdate: null }, { constraint: "^1.0.0" }, [], "null"]) {
        expect([body, ...told(await set(path, body))]).toEqual([body, ...refusedByUs]);
      }
      const stored = { id, autoUpdate: true, autoUpdateConstraint: "^1.0.0" };
      expect((await site.server.get(path)).body).toMatchObject(stored);
    }
  });

  it("P-66 what is a range is repeated, without blanks at its ends, and stored", async () => {
    for (const { path, id } of await subjects()) {
      for (const constraint of pins) {
        const answer = await set(path, { autoUpdate: false, constraint: ` ${constraint} ` });
        expect([answer.status, answer.body]).toEqual([200, { id, autoUpdate: false, constraint }]);
        expect((await site.server.get(path)).body).toMatchObject({
          autoUpdate: false,
          autoUpdateConstraint: constraint,
        });
      }
    }
  });

  it("P-67 a constraint of null, or none, means latest: null is answered and stored", async () => {
    for (const { path, id } of await subjects()) {
      for (const body of [{ autoUpdate: true }, { autoUpdate: true, constraint: null }]) {
        await set(path, { autoUpdate: false, constraint: "^1.0.0" });
        expect((await set(path, body)).body).toEqual({ id, autoUpdate: true, constraint: null });
        expect((await site.server.get(path)).body).toMatchObject({ autoUpdate: true, autoUpdateConstraint: null });
      }
    }
  });

  it("P-68 of a built-in, or of a module that came from a file, is 409, and nothing is stored", async () => {
    for (const id of ["openapi", "javascript", await installedFromFile()]) {
      const before = await read(id);
      for (const body of [{ autoUpdate: true }, { autoUpdate: false }, { autoUpdate: true, constraint: "^1.0.0" }]) {
        expect([id, ...told(await post(id, "auto-update", body))]).toEqual([id, ...conflict]);
      }
      expect(told(await post(id, "update"))).toEqual(conflict);
      expect(await read(id)).toEqual(before);
      expect(before).toMatchObject({ autoUpdate: false, autoUpdateConstraint: null });
    }
  });

  it("R-059 a constraint that no version satisfies takes none, and one that does takes the newest", async () => {
    const id = newId();
    const offer = (version: string): void =>
      bench.registry.publish("modules", { id, version, content: pack(id, version, "adapter", "A toy") });
    for (const version of ["1.0.0-beta.1", "1.0.0-beta.2"]) offer(version);
    const wish = { registryId: "dev-registry", moduleId: id };
    const none = await site.server.post("/modules", { ...wish, constraint: "^1.0.0" });
    expect(told(none)).toEqual(notFound);
    expect((await site.server.post("/modules", { ...wish, version: "1.0.0-beta.1" })).body.version).toBe(
      "1.0.0-beta.1",
    );
    for (const version of ["1.0.0", "1.1.0-rc.1"]) offer(version);
    await post(id, "auto-update", { autoUpdate: true, constraint: "^1.0.0" });
    expect((await post(id, "update")).body).toEqual({ id, updated: true, version: "1.0.0" });
    expect((await post(id, "update")).body).toEqual({ id, updated: false, version: "1.0.0" });
    await post(id, "auto-update", { autoUpdate: true, constraint: "^1.1.0-rc.0" });
    expect((await post(id, "update")).body).toEqual({ id, updated: true, version: "1.1.0-rc.1" });
  });
});

describe("environments", () => {
  const sleeper = "await new Promise((end) => setTimeout(end, 2_000)); return 'finished'";
  const started = async (): Promise<number> => {
    const { body } = await site.server.post("/processes", { code: sleeper });
    const state = async () => (await site.server.get(`/processes/${body.id}`)).body.state;
    await expect.poll(state, { timeout: 20_000 }).toBe("running");
    return body.id;
  };

  it("P-69 without one, a new process ends failed naming what is missing, and one that runs finishes", async () => {
    const running = await started();
    expect((await enable("javascript", false)).status).toBe(200);
    try {
      const process = await site.server.run("return 1");
      expect(process).toMatchObject({
        state: "idle",
        exitState: "failed",
        error: expect.stringContaining("environment"),
      });
      expect((await site.server.get("/environment/docs")).status).toBe(503);
      const waiting = await site.server.post("/processes", { code: "return 1", autorun: false });
      expect(waiting.status).toBe(200);
      const finished = (await site.server.get(`/processes/${running}?wait=30`)).body;
      expect(finished).toMatchObject({ exitState: "success", error: null });
      expect(await site.server.output(running)).toEqual({ result: "finished" });
    } finally {
      expect((await enable("javascript")).status).toBe(200);
    }
    expect((await site.server.run("return 1")).exitState).toBe("success");
  });

  it("P-70 enabling another disables the first; of two enabled at once, one is active", async () => {
    const active = async () => ids(await site.server.get("/modules?type=environment&enabled=true"));
    const [first, second] = [await installed("environment"), await installed("environment")];
    expect((await enable(first)).status).toBe(200);
    expect(await active()).toEqual([first]);
    const answers = await Promise.all([enable(second), enable("javascript"), enable(first)]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    const left = await active();
    expect(left).toHaveLength(1);
    expect((await site.server.run("return 1")).exitState).toBe("success");
    await enable("javascript");
    expect(await active()).toEqual(["javascript"]);
  });
});

describe("a folder that is gone", () => {
  it("P-71 makes the module missing with its flag kept; put back, it can be used again at once", async () => {
    const id = await installed();
    await enable(id);
    const service = await bench.install({ id: newServiceId(), adapter: id, definition: "ping" });
    await bench.enable(service);
    const call = () => site.server.post(`/tools/${service}/ping/invoke`, {});
    expect((await call()).status).toBe(200);
    const [folder, aside] = [join(site.server.folder, "modules", id), join(site.server.folder, `${id}-aside`)];
    await rename(folder, aside);
    expect((await site.server.post("/modules/reload")).status).toBe(200);
    expect(await read(id)).toMatchObject({ missing: true, enabled: true, reason: expect.stringMatching(/./) });
    expect(told(await call())).toEqual([503, "unavailable"]);
    expect(ids(await site.server.get("/modules?missing=true&isBuiltin=false"))).toEqual([id]);
    await rename(aside, folder);
    expect((await site.server.post("/modules/reload")).status).toBe(200);
    expect(await read(id)).toMatchObject({ missing: false, enabled: true, reason: null });
    expect((await call()).status).toBe(200);
  });

  it("P-71 of a disabled module is found gone and back as well", async () => {
    const id = await installed();
    const [folder, aside] = [join(site.server.folder, "modules", id), join(site.server.folder, `${id}-aside`)];
    await rename(folder, aside);
    await site.server.post("/modules/reload");
    expect(await read(id)).toMatchObject({ missing: true, enabled: false });
    expect(told(await enable(id))).toEqual(conflict);
    await rename(aside, folder);
    await site.server.post("/modules/reload");
    expect(await read(id)).toMatchObject({ missing: false, enabled: false });
    expect((await enable(id)).status).toBe(200);
  });
});

describe("configuration", () => {
  const patch = (...operations: unknown[]) => site.server.patch("/modules/javascript/config", ...operations);
  const config = async () => (await site.server.get("/modules/javascript/config")).body;

  it("P-72 a declared key is stored and counts for the next run, another is 400 naming it", async () => {
    const fill = "return new Uint8Array(60 * 1024 * 1024).fill(1).length";
    expect((await site.server.run(fill)).exitState).toBe("success");
    const stored = await patch({ op: "add", path: "/memoryMb", value: 32 });
    expect([stored.status, stored.body]).toEqual([200, { config: { memoryMb: 32 }, outdated: [] }]);
    expect((await site.server.run(fill)).exitState).toBe("failed");
    const unknown = await patch({ op: "add", path: "/unknown", value: 1 });
    expect(told(unknown)).toEqual(refusedByUs);
    expect(unknown.body.error).toContain("unknown");
    for (const value of ["32", 1.5, 0, -1, null, 1_000_000]) {
      expect([value, ...told(await patch({ op: "add", path: "/memoryMb", value }))]).toEqual([value, ...refusedByUs]);
    }
    expect(await config()).toEqual({ config: { memoryMb: 32 }, outdated: [] });
    expect((await patch({ op: "remove", path: "/memoryMb" })).body).toEqual({ config: {}, outdated: [] });
    expect((await site.server.run(fill)).exitState).toBe("success");
  });

  it("P-89, P-104 values that the next version does not have are outdated, configuration and secrets alike", async () => {
    const id = newId();
    const release = (version: string, names: readonly string[]): void => {
      const schema = JSON.stringify(object(Object.fromEntries(names.map((name) => [name, { type: "string" }]))));
      const source = sampleModuleSource("adapter", version).replace(
        'type: "adapter",',
        `type: "adapter", configSchema: ${schema}, secretsSchema: ${schema},`,
      );
      const content = moduleArchive({ id, name: id, type: "adapter", description: "A toy", version, source });
      bench.registry.publish("modules", { id, version, content });
    };
    release("1.0.0", ["kept", "dropped"]);
    await site.server.post("/modules", { registryId: "dev-registry", moduleId: id });
    const values = [
      { op: "add", path: "/kept", value: "a" },
      { op: "add", path: "/dropped", value: "b" },
    ];
    for (const below of ["config", "secrets"]) {
      expect((await site.server.patch(`/modules/${id}/${below}`, ...values)).status).toBe(200);
    }
    await enable(id);
    release("1.1.0", ["kept"]);
    expect((await post(id, "update")).body).toEqual({ id, updated: true, version: "1.1.0" });
    expect((await site.server.get(`/modules/${id}/config`)).body).toEqual({
      config: { kept: "a", dropped: "b" },
      outdated: ["/dropped"],
    });
    const { present, outdated } = (await site.server.get(`/modules/${id}/secrets`)).body;
    expect([present.sort(), outdated]).toEqual([["/dropped", "/kept"], ["/dropped"]]);
  });
});
