/** Rows of the configuration and the secrets of services: patches, what is outdated, what an adapter gets. */
import { describe, expect, it } from "vitest";
import type { JsonSchema } from "../../src/sdk/sdk.ts";
import { add, newServiceId, noValues, object, openApi, openServiceBench, remove } from "./service-bench.ts";
import { expectEnvelope, notFound, openSite, refusedByUs, told } from "./site.ts";

const site = openSite();
const bench = openServiceBench(site);

const secrets = async (id: string) => (await site.server.get(`/services/${id}/secrets`)).body;

describe("configuration", () => {
  const open = { type: "object" };
  const host = { type: "string" };

  it.each<[string, unknown]>([
    ["an object", {}],
    ["a text", '"x"'],
    ["null", "null"],
    ["a number as operation", [1]],
    ["null as operation", [null]],
    ["an operation that does not exist", [{ op: "unknown", path: "/a" }]],
    ["no operation", [{ path: "/a", value: 1 }]],
    ["an operation in capitals", [{ op: "ADD", path: "/a", value: 1 }]],
    ["add without a path", [{ op: "add", value: 1 }]],
    ["add without a value", [{ op: "add", path: "/a" }]],
    ["replace without a value", [{ op: "replace", path: "/a" }]],
    ["test without a value", [{ op: "test", path: "/a" }]],
    ["move without from", [{ op: "move", path: "/a" }]],
    ["copy without from", [{ op: "copy", path: "/a" }]],
    ["a path that is no text", [{ op: "add", path: 1, value: 1 }]],
    ["a path without its slash", [{ op: "add", path: "a", value: 1 }]],
    ["a bad escape", [{ op: "add", path: "/~2", value: 1 }]],
    ["a path through a prototype", [{ op: "add", path: "/__proto__/a", value: 1 }]],
    ["a value with a prototype", '[{"op":"add","path":"/a","value":{"__proto__":{"b":1}}}]'],
    ["a good operation before a bad one", [add("/a", 2), { op: "unknown", path: "/a" }]],
  ])("P-84 a patch with %s is refused, and nothing is stored", async (_, body) => {
    const id = await bench.configured(open, { a: 1 });
    const answer = await site.server.call("PATCH", `/services/${id}/config`, body);
    expect(told(answer), answer.text).toEqual(refusedByUs);
    expectEnvelope(answer);
    expect((await bench.config(id)).config).toEqual({ a: 1 });
  });

  it("P-85 removing what is not there is ignored", async () => {
    const id = await bench.configured(open, { a: 1, list: [1] });
    for (const path of ["/b", "/b/c", "/a/b", "/list/1", "/list/-", "/list/x"]) {
      const answer = await bench.patchConfig(id, remove(path));
      expect([path, answer.status, answer.body.config]).toEqual([path, 200, { a: 1, list: [1] }]);
    }
  });

  it("P-86 removing what is there and what is not, the former is removed", async () => {
    const id = await bench.configured(open, { a: 1, b: 2 });
    expect((await bench.patchConfig(id, remove("/x"), remove("/a"), remove("/y/z"), remove("/a"))).body.config).toEqual(
      {
        b: 2,
      },
    );
  });

  it("P-87 replacing what is not there is 400, and nothing of the patch is stored", async () => {
    const id = await bench.configured(open, { a: 1 });
    for (const path of ["/b", "/b/c", "/a/b"]) {
      expect(told(await bench.patchConfig(id, add("/new", 1), { op: "replace", path, value: 1 }))).toEqual(refusedByUs);
    }
    expect((await bench.config(id)).config).toEqual({ a: 1 });
  });

  it("P-88 a key that the schema does not allow is 400 naming it, and nothing is stored", async () => {
    const id = await bench.configured(object({ host, nested: object({ a: {} }) }), { host: "h" });
    for (const [path, name] of [
      ["/stranger", "stranger"],
      ["/nested", "stranger"],
      ["/host2", "host2"],
    ] as const) {
      const answer = await bench.patchConfig(
        id,
        add("/host", "other"),
        add(path, path === "/nested" ? { stranger: 1 } : 1),
      );
      expect(told(answer)).toEqual(refusedByUs);
      expect(answer.body.error).toContain(name);
    }
    expect((await bench.config(id)).config).toEqual({ host: "h" });
  });

  /** A service of the registry, configured for its first version and then brought to its second. */
  async function outdatedService(schemas: { first: JsonSchema; second: JsonSchema }, config: object): Promise<string> {
    const { id, offer } = await bench.offered({ configSchema: schemas.first });
    expect((await bench.patchConfig(id, add("", config))).status).toBe(200);
    offer({ configSchema: schemas.second });
    const updated = await site.server.post(`/services/${id}/update`);
    expect(updated.body, updated.text).toEqual({ id, updated: true, version: "1.1.0" });
    return id;
  }
  const dropped = { first: object({ host, stalePort: {} }), second: object({ host }) };

  it("P-89 a value that the schema no longer has stays, shown and listed as outdated (shown: decisions, rule 3 of 4.10)", async () => {
    const id = await outdatedService(dropped, { host: "a", stalePort: 1 });
    expect(await bench.config(id)).toEqual({ config: { host: "a", stalePort: 1 }, outdated: ["/stalePort"] });
  });

  it("P-90 it stays when another value is replaced", async () => {
    const id = await outdatedService(dropped, { host: "a", stalePort: 1 });
    const answer = await bench.patchConfig(id, { op: "replace", path: "/host", value: "b" });
    expect([answer.status, answer.body]).toEqual([
      200,
      { config: { host: "b", stalePort: 1 }, outdated: ["/stalePort"] },
    ]);
  });

  it("P-91 it can be removed, and then not be added again", async () => {
    const id = await outdatedService(dropped, { host: "a", stalePort: 1 });
    expect((await bench.patchConfig(id, remove("/stalePort"))).body).toEqual({ config: { host: "a" }, outdated: [] });
    expect(told(await bench.patchConfig(id, add("/stalePort", 1)))).toEqual(refusedByUs);
  });

  it("P-92 the service is enabled all the same, and the adapter gets declared values only", async () => {
    const id = await outdatedService(dropped, { host: "a", stalePort: 1 });
    expect((await bench.enable(id)).status).toBe(200);
    expect((await bench.hydratedWith(id)).config).toEqual({ host: "a" });
    expect((await bench.config(id)).outdated).toEqual(["/stalePort"]);
  });

  it("P-89 – P-92 server variables of an OpenAPI document that the next one does not have", async () => {
    const id = newServiceId();
    const port = new URL(bench.target.origin).port;
    const variables = { port: { default: "1" }, region: { default: "eu" } };
    const offer = (version: string, url: string): void => {
      const content = JSON.stringify(openApi("", { a: {} }, { servers: [{ url, variables }] }));
      bench.registry.publish("definitions", { id, version, content });
    };
    offer("1.0.0", "http://127.0.0.1:{port}/{region}");
    await bench.install({ registryId: "dev-registry", definitionId: id });
    await bench.patchConfig(id, add("/serverVar_port", port), add("/serverVar_region", "us"));
    offer("2.0.0", "http://127.0.0.1:{port}/all");
    expect((await site.server.post(`/services/${id}/update`)).body.version).toBe("2.0.0");
    const config = { serverVar_port: port, serverVar_region: "us" };
    expect(await bench.config(id)).toEqual({ config, outdated: ["/serverVar_region"] });
    expect((await bench.patchConfig(id, add("/timeoutMs", 5_000))).body.outdated).toEqual(["/serverVar_region"]);
    expect((await bench.enable(id)).status).toBe(200);
    bench.target.respond = (_, response) => void response.end();
    expect((await site.server.post(`/tools/${id}/a/invoke`, {})).body.result.status).toBe(200);
    expect(bench.target.last().path).toBe("/all/a");
    expect((await bench.patchConfig(id, remove("/serverVar_region"))).body.outdated).toEqual([]);
  });

  it("P-93 defaults reach the adapter, are not stored and not shown (decisions)", async () => {
    const id = await bench.configured(object({ timeoutMs: { type: "number", default: 30_000 } }));
    expect((await bench.patchConfig(id)).body).toEqual({ config: {}, outdated: [] });
    await bench.enable(id);
    expect((await bench.hydratedWith(id)).config).toEqual({ timeoutMs: 30_000 });
    expect((await bench.config(id)).config).toEqual({});
  });

  it.each([
    ["a number", 7],
    ["null", null],
    ["an object", {}],
    ["a list", ["h"]],
    ["a text that is too long", "x".repeat(9)],
  ])("P-94 %s for a text of at most 8 characters is 400 naming the key, and nothing is stored", async (_, value) => {
    const id = await bench.configured(object({ host: { type: "string", maxLength: 8 } }), { host: "h" });
    const answer = await bench.patchConfig(id, add("/host", value));
    expect(told(answer)).toEqual(refusedByUs);
    expect(answer.body.error).toContain("host");
    expect((await bench.config(id)).config).toEqual({ host: "h" });
  });

  it.each([
    ["a/b~c", "/a~1b~0c"],
    ["~1", "/~01"],
    ["", "/"],
    ['a b"c', '/a b"c'],
    ["0", "/0"],
  ])("P-95 the outdated key %j is listed as %j, which can be removed", async (key, pointer) => {
    const id = await outdatedService({ first: open, second: noValues }, { [key]: 1 });
    expect((await bench.config(id)).outdated).toEqual([pointer]);
    expect((await bench.patchConfig(id, remove(pointer))).body).toEqual({ config: {}, outdated: [] });
  });

  it.each<[string, JsonSchema]>([
    ["true", object({ host }, { additionalProperties: true })],
    ["absent", { type: "object", properties: { host } }],
    ["a schema that fits", object({ host }, { additionalProperties: { type: "number" } })],
  ])("P-96 with additionalProperties %s any key may be added, and is not outdated", async (_, schema) => {
    const id = await bench.configured(schema, { host: "a" });
    expect((await bench.patchConfig(id, add("/anyKey", 1))).body).toEqual({
      config: { host: "a", anyKey: 1 },
      outdated: [],
    });
    await bench.enable(id);
    expect((await bench.hydratedWith(id)).config).toEqual({ host: "a", anyKey: 1 });
  });

  it("P-97 an outdated key inside the second item of a list is listed where it is, and can be removed there", async () => {
    const list = (properties: object) => object({ list: { type: "array", items: object(properties) } });
    const schemas = { first: list({ name: {}, old: {} }), second: list({ name: {} }) };
    const id = await outdatedService(schemas, { list: [{ name: "a" }, { name: "b", old: 1 }] });
    expect((await bench.config(id)).outdated).toEqual(["/list/1/old"]);
    const answer = await bench.patchConfig(id, remove("/list/1/old"));
    expect(answer.body).toEqual({ config: { list: [{ name: "a" }, { name: "b" }] }, outdated: [] });
  });

  it.each([[[]], ["x"], [1], [null], [true]])("P-98 a configuration that would be %j is 400", async (value) => {
    const id = await bench.configured(open, { a: 1 });
    for (const op of ["add", "replace"]) {
      expect(told(await bench.patchConfig(id, { op, path: "", value }))).toEqual(refusedByUs);
    }
    expect(told(await bench.patchConfig(id, { op: "copy", from: "/a", path: "" }))).toEqual(refusedByUs);
    expect((await bench.config(id)).config).toEqual({ a: 1 });
  });

  it("P-99 a failing test is 400, stores nothing, and tells neither value", async () => {
    const id = await bench.configured(open, { a: "stored-value" });
    for (const path of ["/a", "", "/b"]) {
      const answer = await bench.patchConfig(id, add("/new", 1), { op: "test", path, value: "guessed-value" });
      expect(told(answer)).toEqual(refusedByUs);
      expect(answer.text).not.toMatch(/stored-value|guessed-value/);
    }
    expect((await bench.config(id)).config).toEqual({ a: "stored-value" });
    expect((await bench.patchConfig(id, { op: "test", path: "/a", value: "stored-value" })).status).toBe(200);
  });

  it("P-100 what a patch adds and then removes is absent", async () => {
    const id = await bench.configured(open, { a: 1 });
    expect((await bench.patchConfig(id, add("/b", 2), remove("/b"))).body.config).toEqual({ a: 1 });
    expect((await bench.patchConfig(id, remove("/a"), add("/a", 3))).body.config).toEqual({ a: 3 });
  });

  it("R-054 200 patches at once, each with a key of its own, are all stored, and each answer has its own", async () => {
    const id = await bench.configured(open);
    const keys = Array.from({ length: 200 }, (_, at) => `key${at}`);
    const answers = await Promise.all(keys.map((key) => bench.patchConfig(id, add(`/${key}`, key))));
    for (const [at, answer] of answers.entries()) {
      expect([answer.status, answer.body.config[keys[at] ?? ""]]).toEqual([200, keys[at]]);
    }
    expect(Object.keys((await bench.config(id)).config).sort()).toEqual([...keys].sort());
  });

  it("R-054 of patches at once that honour the same tag, one is stored and the others are 412", async () => {
    const id = await bench.configured(open, { a: 0 });
    const tag = (await site.server.get(`/services/${id}/config`)).headers.get("etag") ?? "";
    expect(tag).toMatch(/^"[^"]+"$/);
    const patch = (value: number) =>
      site.server.call("PATCH", `/services/${id}/config`, [add("/a", value)], { "if-match": tag });
    const answers = await Promise.all([1, 2, 3, 4, 5].map(patch));
    const stored = answers.filter(({ status }) => status === 200);
    expect(stored).toHaveLength(1);
    for (const answer of answers.filter((one) => !stored.includes(one))) {
      expect(told(answer)).toEqual([412, "etag_mismatch"]);
    }
    expect((await bench.config(id)).config).toEqual(stored[0]?.body.config);
  });

  it("R-054 200 patches of secrets at once are all stored", async () => {
    const id = await bench.mirrored({ secretsSchema: { type: "object" } });
    const keys = Array.from({ length: 200 }, (_, at) => `key${at}`);
    const answers = await Promise.all(keys.map((key) => bench.patchSecrets(id, add(`/${key}`, "s"))));
    for (const [at, answer] of answers.entries()) {
      expect([answer.status, answer.body.present?.includes(`/${keys[at]}`)], answer.text).toEqual([200, true]);
    }
    expect((await secrets(id)).present.sort()).toEqual(keys.map((key) => `/${key}`).sort());
  });

  it("P-108 of a service that is not there is 404, whatever the patch", async () => {
    for (const patch of [[], [add("/a", 1)], [remove("/a")], [{ op: "unknown", path: "/a" }]]) {
      expect(told(await bench.patchConfig("nope", ...patch))).toEqual(notFound);
      expect(told(await bench.patchSecrets("nope", ...patch))).toEqual(notFound);
    }
  });
});

describe("secrets", () => {
  const secretsSchema = object({
    token: { type: "string" },
    basic: object({ username: { type: "string" }, password: { type: "string" } }),
    keys: { type: "array", items: { type: "string" } },
  });

  it("P-101 a patch answers presence, with no value anywhere (decisions: no {updated})", async () => {
    const id = await bench.mirrored({ secretsSchema });
    const answer = await bench.patchSecrets(id, add("/token", "s3cret-value"));
    expect([answer.status, answer.body]).toEqual([200, { present: ["/token"], outdated: [] }]);
    expect(JSON.stringify([...answer.headers])).not.toContain("s3cret-value");
    for (const path of ["", "/secrets", "/config"]) {
      expect((await site.server.get(`/services/${id}${path}`)).text).not.toContain("s3cret-value");
    }
  });

  it("P-102 presence is nothing at first, then what was set, then what is left", async () => {
    const id = await bench.mirrored({ secretsSchema });
    expect(await secrets(id)).toEqual({ present: [], outdated: [] });
    await bench.patchSecrets(id, add("/token", "t"));
    expect(await secrets(id)).toEqual({ present: ["/token"], outdated: [] });
    await bench.patchSecrets(id, remove("/token"));
    expect(await secrets(id)).toEqual({ present: [], outdated: [] });
  });

  it("P-103 of an object each leaf is present", async () => {
    const id = await bench.mirrored({ secretsSchema });
    await bench.patchSecrets(id, add("/basic", { username: "u", password: "p" }));
    expect((await secrets(id)).present.sort()).toEqual(["/basic/password", "/basic/username"]);
    await bench.patchSecrets(id, remove("/basic/username"));
    expect((await secrets(id)).present).toEqual(["/basic/password"]);
  });

  it("P-104 a list is one path", async () => {
    const id = await bench.mirrored({ secretsSchema });
    await bench.patchSecrets(id, add("/keys", ["a", "b"]));
    expect((await secrets(id)).present).toEqual(["/keys"]);
    await bench.patchSecrets(id, add("/keys/-", "c"));
    expect((await secrets(id)).present).toEqual(["/keys"]);
  });

  it("P-104 a secret that the schema no longer has stays present, is outdated, and can be removed", async () => {
    const { id, offer } = await bench.offered({ secretsSchema });
    await bench.patchSecrets(id, add("/token", "t"), add("/basic", { username: "u", password: "p" }));
    offer({ secretsSchema: object({ token: { type: "string" } }) });
    expect((await site.server.post(`/services/${id}/update`)).status).toBe(200);
    const { present, outdated } = await secrets(id);
    expect([present.sort(), outdated]).toEqual([["/basic/password", "/basic/username", "/token"], ["/basic"]]);
    offer({ secretsSchema });
    await site.server.post(`/services/${id}/update`);
    expect((await secrets(id)).outdated).toEqual([]);
    offer({ secretsSchema: object({ token: { type: "string" } }) });
    await site.server.post(`/services/${id}/update`);
    await bench.enable(id);
    expect((await bench.hydratedWith(id)).secrets).toEqual(["token"]);
    expect((await bench.patchSecrets(id, remove("/basic"))).body).toEqual({ present: ["/token"], outdated: [] });
  });

  it.each<[string, unknown[]]>([
    ["test", [{ op: "test", path: "/token", value: "guess-value" }]],
    ["test of the whole", [{ op: "test", path: "", value: { token: "guess-value" } }]],
    ["copy", [{ op: "copy", from: "/token", path: "/basic/username" }]],
    ["move", [{ op: "move", from: "/token", path: "/basic/username" }]],
    ["replace of what is not there", [{ op: "replace", path: "/nothing", value: "guess-value" }]],
    ["replace below a text", [{ op: "replace", path: "/token/0", value: "guess-value" }]],
    ["a value of another type", [add("/token", { deep: "guess-value" })]],
    ["a key that is not allowed", [add("/other", "guess-value")]],
    ["a whole that is no object", [add("", "guess-value")]],
    ["an unknown operation", [{ op: "peek", path: "/token", value: "guess-value" }]],
  ])("P-105 a failing %s is 400 and repeats neither the stored nor the given value", async (_, operations) => {
    const id = await bench.mirrored({ secretsSchema });
    await bench.patchSecrets(id, add("/token", "stored-value"));
    const answer = await bench.patchSecrets(id, ...operations);
    expect(told(answer), answer.text).toEqual(refusedByUs);
    expect(answer.text).not.toMatch(/stored-value|guess-value/);
    expect(site.server.lines.join("\n")).not.toMatch(/stored-value|guess-value/);
    expect(await secrets(id)).toEqual({ present: ["/token"], outdated: [] });
  });
});
