/** Definition documents: what is read, which tools come of it, their schemas, and what hostile descriptor sets do. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  DescriptorProtoSchema,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  MethodDescriptorProtoSchema,
  ServiceDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { schemaProblem } from "../../src/json/schema.ts";
import { documentBytesMax, grpcDescriptorBytesMax, grpcSchemaCharactersMax } from "../../src/limits.ts";
import type { Adapter, JsonSchema } from "../../src/ports/adapter.ts";
import { measureLongestTurn, planReference } from "./adapter-bench.ts";
import { documentOf, failureOf, openTestGrpc } from "./grpc-bench.ts";
import { shopSet } from "./grpc-server.ts";

let adapter: Adapter;
beforeAll(async () => {
  adapter = await openTestGrpc();
});
afterAll(() => adapter.close());

const target = "grpc://shop.example:50051";
const base64 = shopSet.toString("base64");
const define = (text: string) => adapter.define({ text });

describe("documents", () => {
  it.each<[string, string]>([
    ["JSON with a target", documentOf(target)],
    ["JSON without a target", JSON.stringify({ descriptorSet: base64 })],
    ["JSON after a byte order mark", `\uFEFF${documentOf(target)}`],
    ["base64 alone", base64],
    ["base64 in lines", base64.replaceAll(/.{76}/g, "$&\n")],
    ["base64 for URLs, unpadded", shopSet.toString("base64url")],
  ])("%s are read", async (_what, text) => {
    const definition = await define(text);
    expect(definition.tools.map(({ id }) => id)).toContain("acme_shop_v1_Shop_GetItem");
    const config = definition.configSchema as { required?: string[] };
    expect(config.required ?? []).toEqual(text.includes(target) ? [] : ["target"]);
  });

  it("a target alone has no tools yet and says what to do", async () => {
    const definition = await define(JSON.stringify({ target }));
    expect(definition).toMatchObject({ title: "shop.example", tools: [] });
    expect(definition.description).toMatch(/sync the service/);
  });

  it.each([
    ["http://h", "grpc://h:80"],
    ["https://h", "grpcs://h:443"],
    ["grpc://h:1", "grpc://h:1"],
    ["GRPCS://H:1/", "grpcs://h:1"],
    ["grpcs://[::1]", "grpcs://[::1]:443"],
  ])("target %s is %s", async (given, kept) => {
    const { plan } = await define(documentOf(given));
    expect(JSON.parse(plan).service.target).toBe(kept);
  });

  it.each<[string, string, RegExp]>([
    ["nothing", "", /empty/],
    ["text", "hello, world", /base64/],
    ["HTML", "<html>", /base64/],
    ["broken JSON", "{", /not valid JSON/],
    ["an empty object", "{}", /neither "target" nor "descriptorSet"/],
    ["a list", "[]", /base64/],
    ["an unknown key", JSON.stringify({ target, descriptorset: "" }), /"descriptorset"/],
    ["a number for a set", JSON.stringify({ target, descriptorSet: 1 }), /not text/],
    ["a set that is not base64", JSON.stringify({ target, descriptorSet: "*" }), /base64/],
    ["an empty set", JSON.stringify({ target, descriptorSet: "" }), /base64/],
    ["bytes that are no set", Buffer.from([0xff, 0xff, 0xff]).toString("base64"), /no descriptor set/],
    ["a set without files", Buffer.from([0x10, 1]).toString("base64"), /no files/],
    ["a set cut short", shopSet.subarray(0, 20_000).toString("base64"), /cannot be used/],
    ["services that are no list", JSON.stringify({ descriptorSet: base64, services: "Shop" }), /"services"/],
    ["a service that is not there", JSON.stringify({ descriptorSet: base64, services: ["a.B"] }), /no service "a\.B"/],
    ["a target with a path", documentOf("grpc://h:1/path"), /path/],
    ["a target with a password", documentOf("grpc://u:s3cret@h:1"), /password/],
    ["a target of another scheme", documentOf("ftp://s3cret:1"), /"grpc:\/\/host:port"/],
    ["a target without host", documentOf("grpc://"), /"grpc:\/\/host:port"/],
  ])("%s is refused saying why", async (_what, text, why) => {
    const failure = await failureOf(define(text));
    expect(failure).toMatchObject({ kind: "invalid_request", message: expect.stringMatching(why) });
    expect(failure.message).not.toMatch(/s3cret/);
  });
});

describe("tools", () => {
  it("of two services with one name have their packages in their ids, for all methods", async () => {
    const ids = (await define(documentOf(target))).tools.map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining(["acme_legacy_Shop_Greet", "acme_shop_v1_Shop_Echo"]));
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("of a chosen service have short ids, and the set keeps only the files they need", async () => {
    const chosen = await define(documentOf(target, shopSet, { services: ["acme.shop.v1.Shop"] }));
    expect(chosen.tools.map(({ id }) => id)).toContain("Shop_GetItem");
    expect(chosen.title).toBe("Shop");
    expect(fileNames(chosen.plan)).not.toContain("legacy.proto");
    expect(fileNames((await define(documentOf(target))).plan)).toContain("legacy.proto");
  });

  it("have what their comments say", async () => {
    const { tools, description, summary } = await define(
      documentOf(target, shopSet, { services: ["acme.shop.v1.Shop"] }),
    );
    expect(tools.find(({ id }) => id === "Shop_GetItem")).toEqual({
      id: "Shop_GetItem",
      name: "acme.shop.v1.Shop/GetItem",
      summary: "Finds one item.",
      description: "Finds one item. It must exist.\n\nCosts nothing.\n\ngRPC method /acme.shop.v1.Shop/GetItem",
      parameterNames: ["itemId"],
    });
    expect(tools.find(({ id }) => id === "Shop_OldWay")?.description).toMatch(/^Deprecated/);
    expect(tools.find(({ id }) => id === "Shop_Count")?.description).toMatch(/answered by a stream of messages/);
    expect(summary).toBe("Sells things.");
    expect(description).toMatch(/Left out.*Shop\/Upload, \/acme\.shop\.v1\.Shop\/Chat/);
  });

  it("are the same for the same document", async () => {
    const [first, second] = await Promise.all([define(documentOf(target)), define(documentOf(target))]);
    expect(second).toEqual(first);
  });

  it("of a package share its name as title", async () => {
    expect((await define(documentOf(target))).title).toBe("acme");
  });
});

describe("schemas", () => {
  async function schemasOf(toolId: string, set: Uint8Array = shopSet) {
    const services = set === shopSet ? { services: ["acme.shop.v1.Shop", "acme.legacy.Shop"] } : {};
    const { plan } = await define(documentOf(target, set, services));
    return (await adapter.describe(planReference(plan), toolId)) as { inputSchema: Schema; outputSchema: Schema };
  }
  interface Schema {
    readonly [key: string]: unknown;
    readonly properties: Record<string, Schema>;
    readonly $defs: Record<string, Schema>;
  }

  it("of every tool are valid JSON Schemas", async () => {
    const { plan, tools } = await define(documentOf(target));
    for (const { id } of tools) {
      const { inputSchema, outputSchema } = await adapter.describe(planReference(plan), id);
      expect(schemaProblem(inputSchema), id).toBeUndefined();
      expect(schemaProblem(outputSchema), id).toBeUndefined();
      expect((inputSchema as { type?: string }).type, id).toBe("object");
    }
  });

  it("of a request show names, types and comments", async () => {
    const { inputSchema } = await schemasOf("acme_shop_v1_Shop_GetItem");
    expect(inputSchema).toEqual({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: { itemId: { type: "string", description: "Which one." } },
      additionalProperties: false,
    });
  });

  it("of an answer say what is always there", async () => {
    const { outputSchema } = await schemasOf("acme_shop_v1_Shop_GetItem");
    expect(outputSchema.required).toEqual(["message", "headers", "trailers"]);
    expect(outputSchema.properties.message).toEqual({ $ref: "#/$defs/acme.shop.v1.Item" });
    expect(outputSchema.$defs["acme.shop.v1.Item"]).toMatchObject({ required: ["itemId", "title", "colour"] });
    expect(outputSchema.$defs["acme.shop.v1.Colour"]).toMatchObject({
      description: "Colours of things.\nCOLOUR_RED: Like a rose.",
      anyOf: [{ enum: ["COLOUR_UNSPECIFIED", "COLOUR_RED", "COLOUR_BLUE"] }, { type: "integer" }],
    });
  });

  it("of a stream have its messages in a list", async () => {
    const { outputSchema } = await schemasOf("acme_shop_v1_Shop_Count");
    expect(outputSchema.properties.messages).toEqual({
      type: "array",
      items: { $ref: "#/$defs/acme.shop.v1.Counted" },
    });
    expect(outputSchema.required).toEqual(["messages", "complete", "headers", "trailers"]);
  });

  it("name the choices of a oneof", async () => {
    const { inputSchema } = await schemasOf("acme_shop_v1_Shop_Echo");
    expect(inputSchema.description).toBe("At most one of first, second, third");
  });

  it("of recursive messages refer to themselves", async () => {
    const { inputSchema } = await schemasOf("acme_shop_v1_Shop_EchoTree");
    expect(inputSchema.properties.left).toEqual({ $ref: "#/$defs/acme.shop.v1.Tree" });
    expect(inputSchema.$defs["acme.shop.v1.Tree"]).toMatchObject({ type: "object" });
  });

  it("demand what proto2 requires", async () => {
    const { inputSchema } = await schemasOf("acme_legacy_Shop_Greet");
    expect(inputSchema.required).toEqual(["name"]);
  });

  it("stay within their bound, however many types there are", async () => {
    const count = 3_000;
    const set = setOf(
      Array.from({ length: count }, (_, at) =>
        messageOf(
          `M${at}`,
          Array.from({ length: 10 }, (_, no) => `.M${(at * 10 + no + 1) % count}`),
        ),
      ),
      ["M0"],
    );
    const { inputSchema } = await schemasOf("S_M0", set);
    expect(JSON.stringify(inputSchema).length).toBeLessThan(3 * grpcSchemaCharactersMax);
    expect(schemaProblem(inputSchema as JsonSchema)).not.toMatch(/malformed|no JSON Schema/);
    const open = Object.values(inputSchema.$defs).filter(({ properties }) => properties === undefined);
    expect(open.length).toBeGreaterThan(100);
  });
});

describe("hostile descriptor sets", () => {
  it("names of object properties are names like others", async () => {
    const names = ["__proto__", "constructor", "toString", "hasOwnProperty"];
    const set = setOf([messageOf("__proto__", ["string", "string"], names)], ["__proto__"]);
    const { plan, tools } = await define(documentOf(target, set));
    expect(tools.map(({ id }) => id)).toEqual(["S___proto__"]);
    const { inputSchema } = await adapter.describe(planReference(plan), "S___proto__");
    expect(Object.keys((inputSchema as { properties: object }).properties)).toEqual(["__proto__", "constructor"]);
  });

  it("ids that would be the same get a suffix", async () => {
    const set = create(FileDescriptorSetSchema);
    set.file = ["a.b_c", "a_b.c"].map((name, at) =>
      create(FileDescriptorProtoSchema, {
        name: `${at}.proto`,
        syntax: "proto3",
        package: name,
        messageType: [messageOf("M", [])],
        service: [serviceOf("S", [`.${name}.M`])],
      }),
    );
    const { tools } = await define(documentOf(target, toBinary(FileDescriptorSetSchema, set)));
    expect(tools.map(({ id }) => id)).toEqual(["a_b_c_S_M", expect.stringMatching(/^a_b_c_S_M_[0-9a-f]{6}$/)]);
  });

  const files = (...imports: [string, string[]][]) => {
    const set = create(FileDescriptorSetSchema);
    set.file = imports.map(([name, dependency], at) =>
      create(FileDescriptorProtoSchema, {
        name,
        dependency,
        syntax: "proto3",
        messageType: at === 0 ? [messageOf("M", [])] : [],
        service: at === 0 ? [serviceOf("S", [".M"])] : [],
      }),
    );
    return toBinary(FileDescriptorSetSchema, set);
  };

  it("files in any order are sorted", async () => {
    const set = files(["a.proto", ["b.proto", "google/protobuf/any.proto"]], ["b.proto", ["c.proto"]], ["c.proto", []]);
    expect(fileNames((await define(documentOf(target, set))).plan)).toEqual(
      expect.arrayContaining(["a.proto", "b.proto", "c.proto", "google/protobuf/any.proto"]),
    );
  });

  it("an import that nobody has and nothing needs is left out", async () => {
    expect((await define(documentOf(target, files(["a.proto", ["gone.proto"]])))).tools).toHaveLength(1);
  });

  it("a circle of imports is refused naming it", async () => {
    const set = files(["a.proto", ["b.proto"]], ["b.proto", ["a.proto"]]);
    expect((await failureOf(define(documentOf(target, set)))).message).toMatch(/circle: "a\.proto", "b\.proto"/);
  });

  it("a chain of imports as long as files may be is read", async () => {
    const chain = Array.from({ length: 9_000 }, (_, at): [string, string[]] => [
      `${at}.proto`,
      at === 8_999 ? [] : [`${at + 1}.proto`],
    ]);
    expect((await define(documentOf(target, files(...chain)))).tools).toHaveLength(1);
  });

  it("a missing type is refused naming it and the import that may have held it", async () => {
    const set = create(FileDescriptorSetSchema);
    set.file = [
      create(FileDescriptorProtoSchema, {
        name: "a.proto",
        syntax: "proto3",
        dependency: ["gone.proto"],
        messageType: [messageOf("M", [".gone.Type"])],
        service: [serviceOf("S", [".M"])],
      }),
    ];
    const { message } = await failureOf(define(documentOf(target, toBinary(FileDescriptorSetSchema, set))));
    expect(message).toMatch(/lacks the imports "gone\.proto".*gone\.Type not found/);
  });

  it("well-known types that are not what they claim are replaced by the real ones", async () => {
    const set = create(FileDescriptorSetSchema);
    const fake = messageOf("Timestamp", ["string"]);
    set.file = [
      create(FileDescriptorProtoSchema, {
        name: "vendor/google/protobuf/timestamp.proto",
        syntax: "proto3",
        package: "google.protobuf",
        messageType: [fake],
      }),
      create(FileDescriptorProtoSchema, {
        name: "a.proto",
        syntax: "proto3",
        dependency: ["vendor/google/protobuf/timestamp.proto"],
        messageType: [messageOf("M", [".google.protobuf.Timestamp"])],
        service: [serviceOf("S", [".M"])],
      }),
    ];
    const { plan } = await define(documentOf(target, toBinary(FileDescriptorSetSchema, set)));
    const { inputSchema } = await adapter.describe(planReference(plan), "S_M");
    expect(inputSchema).toMatchObject({ properties: { f1: { type: "string", format: "date-time" } } });
    set.file[0]!.name = "strange.proto";
    const failure = await failureOf(define(documentOf(target, toBinary(FileDescriptorSetSchema, set))));
    expect(failure.message).toMatch(/declares "google\.protobuf\.Timestamp"/);
  });

  it("fields without a JSON name have the usual one", async () => {
    const message = messageOf("M", ["string"], ["snake_case"]);
    message.field[0]!.jsonName = "";
    const { plan } = await define(documentOf(target, setOf([message], ["M"])));
    const { inputSchema } = await adapter.describe(planReference(plan), "S_M");
    expect(inputSchema).toMatchObject({ properties: { snakeCase: { type: "string" } } });
  });

  it.each<[string, () => Uint8Array]>([
    ["messages nested a thousand deep", () => setOf([nestedMessage(1_000)], ["N"])],
    ["names that are no names", () => setOf([messageOf("a b\n", [])], ["a b\n"])],
    ["a method of no type", () => setOf([], ["Nothing"])],
    ["no services", () => setOf([messageOf("M", [])], [])],
    ["random bytes in a file", () => Buffer.from([10, 4, 1, 2, 3, 255])],
  ])("%s are refused, and the worker goes on", async (_what, set) => {
    expect((await failureOf(define(documentOf(target, set())))).kind).toBe("invalid_request");
    expect((await define(documentOf(target))).tools.length).toBeGreaterThan(5);
  });

  it("a set larger than may be is refused", async () => {
    const document = documentOf(target, Buffer.alloc(grpcDescriptorBytesMax + 1));
    expect(document.length).toBeLessThan(documentBytesMax);
    expect((await failureOf(define(document))).message).toMatch(/larger than \d+ bytes/);
  });
});

it("a definition with ten thousand methods holds up nobody", async () => {
  const messages = Array.from({ length: 2_000 }, (_, at) => messageOf(`M${at}`, ["string", "string"]));
  const set = setOf(
    messages,
    Array.from({ length: 10_000 }, (_, at) => `M${at % 2_000}`),
    (at) => `Method${at}`,
  );
  const longest = measureLongestTurn();
  const { tools, plan } = await define(documentOf(target, set));
  const reference = planReference(plan);
  await adapter.describe(reference, "S_Method9999");
  expect(tools).toHaveLength(10_000);
  expect(reference.loads()).toBe(1);
  await adapter.describe(reference, "S_Method0");
  expect(reference.loads()).toBe(1);
  expect(longest()).toBeLessThan(1_500);
});

function fileNames(plan: string): string[] {
  const { descriptorSet } = JSON.parse(plan) as { descriptorSet: string };
  return fromBinary(FileDescriptorSetSchema, Buffer.from(descriptorSet, "base64")).file.map(({ name }) => name);
}

/** Fields are scalars of type string, or messages by full name. */
function messageOf(name: string, types: readonly string[], names?: readonly string[]): DescriptorProto {
  const field = types.map((type, at) => {
    const fieldName = names?.[at] ?? `f${at + 1}`;
    const isMessage = type.startsWith(".");
    return create(FieldDescriptorProtoSchema, {
      name: fieldName,
      jsonName: fieldName,
      number: at + 1,
      label: FieldDescriptorProto_Label.OPTIONAL,
      type: isMessage ? FieldDescriptorProto_Type.MESSAGE : FieldDescriptorProto_Type.STRING,
      ...(isMessage ? { typeName: type } : {}),
    });
  });
  return create(DescriptorProtoSchema, { name, field });
}

function serviceOf(name: string, types: readonly string[], methodName = (_at: number, type: string) => type) {
  const method = types.map((type, at) =>
    create(MethodDescriptorProtoSchema, {
      name: methodName(at, type.slice(type.lastIndexOf(".") + 1)),
      inputType: type,
      outputType: type,
    }),
  );
  return create(ServiceDescriptorProtoSchema, { name, method });
}

/** One file; a method for each of the types. */
function setOf(
  messageType: DescriptorProto[],
  methods: readonly string[],
  methodName?: (at: number, type: string) => string,
): Uint8Array {
  const set = create(FileDescriptorSetSchema);
  const service =
    methods.length === 0
      ? []
      : [
          serviceOf(
            "S",
            methods.map((name) => `.${name}`),
            methodName,
          ),
        ];
  set.file = [create(FileDescriptorProtoSchema, { name: "a.proto", syntax: "proto3", messageType, service })];
  return toBinary(FileDescriptorSetSchema, set);
}

function nestedMessage(depth: number): DescriptorProto {
  let message = create(DescriptorProtoSchema, { name: "N" });
  for (let at = 0; at < depth; at += 1) message = create(DescriptorProtoSchema, { name: "N", nestedType: [message] });
  return message;
}
