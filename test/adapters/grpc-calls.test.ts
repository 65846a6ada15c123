/** Calls of gRPC tools against a real server on loopback: values of every type, streams, statuses, metadata, time and size. */
import { create, toBinary } from "@bufbuild/protobuf";
import { anyPack, BytesValueSchema } from "@bufbuild/protobuf/wkt";
import grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { kindOfStatus } from "../../src/adapters/grpc/status.ts";
import type { FailureKind } from "../../src/errors/failure.ts";
import { BadRequestSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../src/gen/google/rpc/status_pb.ts";
import { toolAnswerBytesMax } from "../../src/limits.ts";
import type { Adapter } from "../../src/ports/adapter.ts";
import { documentOf, failureOf, hydrated, openTestGrpc } from "./grpc-bench.ts";
import { type Handlers, openServer, type TestServer, write } from "./grpc-server.ts";

let adapter: Adapter;
let server: TestServer;
let shop: Awaited<ReturnType<typeof hydrated>>;
/** Of the last `Sleep`: resolves once the server hears that the call is over. */
let slept: { readonly cancelled: Promise<void>; readonly deadline: grpc.Deadline } | undefined;
let raw: Uint8Array = new Uint8Array();

const handlers: Handlers = {
  GetItem: (request) => ({ itemId: (request as { itemId: string }).itemId, title: "Hat", colour: "COLOUR_RED" }),
  Echo: (request) => request,
  EchoTree: (request) => request,
  EchoText: (request) => request,
  EchoStruct: (request) => request,
  Raw: () => raw,
  Count(request, { call, registry, method }) {
    const { upTo = 0, bytesEach = 0 } = request as { upTo?: number; bytesEach?: number };
    const stream = call as grpc.ServerWritableStream<Buffer, Buffer>;
    const filling = Buffer.alloc(bytesEach).toString("base64");
    let number = 0;
    // A negative number counts for ever.
    const next = () => {
      for (;;) {
        if (stream.cancelled || stream.destroyed) return;
        if (upTo >= 0 && number >= upTo) {
          stream.end();
          return;
        }
        number += 1;
        if (!stream.write(write(method, registry, { number, filling }))) {
          stream.once("drain", next);
          return;
        }
      }
    };
    next();
  },
  Fail(request) {
    const { code = 0, text = "" } = request as { code?: number; text?: string };
    throw { code, details: text };
  },
  Sleep(_request, { call }) {
    slept = {
      cancelled: new Promise((resolve) => call.on("cancelled", resolve)),
      deadline: call.getDeadline(),
    };
    return new Promise(() => {});
  },
  WhoAmI(_request, { metadata, call }) {
    const headers = new grpc.Metadata();
    headers.set("x-served-by", "shop");
    headers.set("x-repeated", String(metadata.get("authorization")[0] ?? ""));
    headers.set("x-blob-bin", Buffer.from([1, 2, 3]));
    call.sendMetadata(headers);
    const seen = metadata.toJSON();
    return Object.fromEntries(
      Object.entries(seen).map(([name, [value]]) => [
        name,
        Buffer.isBuffer(value) ? value.toString("hex") : `${value}`,
      ]),
    );
  },
};

beforeAll(async () => {
  [adapter, server] = await Promise.all([openTestGrpc(), openServer({ handlers })]);
  shop = await hydrated(adapter, documentOf(server.target, undefined, { services: ["acme.shop.v1.Shop"] }));
});
afterAll(async () => {
  shop.service.close?.();
  server.close();
  await adapter.close();
});

const item = { itemId: "7", title: "Hat", colour: "COLOUR_RED" };

describe("values", () => {
  it("a unary call answers with message, headers and trailers", async () => {
    const result = await shop.call("Shop_GetItem", { itemId: "7" });
    expect(result).toEqual({ message: item, headers: expect.any(Object), trailers: { "x-trailer": "last" } });
  });

  it("fields left unset have their zero values, except those that can be absent", async () => {
    const { message } = await shop.call("Shop_Echo", {});
    expect(message).toMatchObject({ aDouble: 0, anInt64: "0", aBool: false, aString: "", someBytes: "", manyItem: [] });
    expect(message).toMatchObject({ aColour: "COLOUR_UNSPECIFIED", stringMap: {}, nothing: null });
    for (const name of ["anItem", "maybe", "first", "timestamp", "stringWrapper", "any"]) {
      expect(message).not.toHaveProperty(name);
    }
  });

  const longest = "9223372036854775807";
  it.each<[string, unknown, unknown?]>([
    ["aDouble", 1.5],
    ["aDouble", "NaN"],
    ["aDouble", "-Infinity"],
    ["aFloat", 0.25],
    ["anInt32", -2147483648],
    ["anInt64", longest],
    ["anInt64", 5, "5"],
    ["anInt64", "-9223372036854775808"],
    ["aUint32", 4294967295],
    ["aUint64", "18446744073709551615"],
    ["aSint32", -1],
    ["aSint64", "-1"],
    ["aFixed32", 1],
    ["aFixed64", longest],
    ["aSfixed32", -1],
    ["aSfixed64", "-1"],
    ["aBool", true],
    ["aString", "ä💡\u0000"],
    ["someBytes", "AAEC/w=="],
    ["someBytes", "_-8", "/+8="],
    ["aColour", "COLOUR_BLUE"],
    ["anItem", item],
    ["manyInt32", [1, 2, 3]],
    ["manyString", ["a", ""]],
    ["manyItem", [item, item]],
    ["manyColour", ["COLOUR_RED", "COLOUR_BLUE"]],
    ["stringMap", { a: 1, "": 2, __proto: 3 }],
    ["longMap", { "-5": item }],
    ["boolMap", { true: "COLOUR_RED" }],
    ["first", "one"],
    ["second", item],
    ["third", "3"],
    ["maybe", ""],
    ["timestamp", "2026-11-28T03:04:05.678901234Z"],
    ["timestamp", "2026-11-28T05:04:05+02:00", "2026-11-28T03:04:05Z"],
    ["duration", "-1.500s"],
    ["mask", "title,itemId"],
    ["struct", { a: [1, null, { b: "c" }] }],
    ["value", null],
    ["value", [1, "two", { three: true }]],
    ["list", [1, "two", null]],
    ["empty", {}],
    ["stringWrapper", ""],
    ["int64Wrapper", "5"],
    ["boolWrapper", false],
    ["bytesWrapper", "AQ=="],
    ["any", { "@type": "type.googleapis.com/acme.shop.v1.Item", ...item }],
    ["any", { "@type": "type.googleapis.com/google.protobuf.Duration", value: "3s" }],
    ["manyAny", [{ "@type": "type.googleapis.com/acme.shop.v1.Item", ...item }]],
    ["otherName", "by its JSON name"],
  ])("%s %j reaches the target and comes back", async (name, given, expected = given) => {
    const { message } = await shop.call("Shop_Echo", { [name]: given });
    expect(message[name]).toEqual(expected);
  });

  it.each<[string, object, RegExp]>([
    ["an unknown field", { nonsense: 1 }, /nonsense/],
    ["a proto name instead of the JSON name", { a_string: "x" }, /a_string/],
    ["a number for text", { aString: 1 }, /\/aString/],
    ["an integer beyond its type", { anInt32: 2147483648 }, /\/anInt32/],
    ["a negative unsigned integer", { aUint64: -1 }, /\/aUint64/],
    ["a number that JavaScript has rounded", { anInt64: 2 ** 60 }, /\/anInt64/],
    ["text beyond 64 bits", { anInt64: "9223372036854775808" }, /an_int64/],
    ["an unknown enum value", { aColour: "COLOUR_GREEN" }, /\/aColour/],
    ["bytes that are not base64", { someBytes: "*" }, /\/someBytes/],
    ["two fields of one choice", { first: "a", third: 1 }, /choice .*set multiple times by first and third/],
    ["a map key that is no integer", { longMap: { x: {} } }, /\/longMap/],
    ["a timestamp without zone", { timestamp: "2026-11-28T03:04:05" }, /\/timestamp/],
    ["a timestamp out of range", { timestamp: "0000-01-01T00:00:00Z" }, /Timestamp/],
    ["a duration without unit", { duration: "5" }, /\/duration/],
    ["an Any of an unknown type", { any: { "@type": "type.googleapis.com/no.Such" } }, /no\.Such/],
    ["an Any without a type", { any: {} }, /@type/],
    ["null for a message", { anItem: null }, /\/anItem/],
    ["a list for an object", { anItem: [] }, /\/anItem/],
  ])("%s is refused naming it", async (_what, parameters, named) => {
    const failure = await failureOf(shop.call("Shop_Echo", parameters));
    expect(failure.kind).toBe("invalid_request");
    expect(failure.message).toMatch(named);
    expect(failure.message).toMatch(/^Parameters of tool "Shop_Echo" do not fit: /);
  });

  it("what the protobuf library finds is named as a field", async () => {
    const { details } = await failureOf(shop.call("Shop_Echo", { anInt64: "9223372036854775808" }));
    expect(details.fields).toEqual([{ field: "anInt64", description: expect.any(String) }]);
  });

  it("a recursive message keeps its shape", async () => {
    const tree = { name: "a", children: [{ name: "b", children: [], left: { name: "c", children: [] } }] };
    expect((await shop.call("Shop_EchoTree", tree)).message).toEqual(tree);
  });

  it("a message nested deeper than is read is refused, and the worker goes on", async () => {
    let tree: object = { name: "leaf" };
    for (let depth = 0; depth < 5_000; depth += 1) tree = { left: tree };
    const failure = await failureOf(shop.call("Shop_EchoTree", tree));
    expect(failure.kind).toBe("invalid_request");
    expect((await shop.call("Shop_EchoTree", { name: "a" })).message).toEqual({ name: "a", children: [] });
  });

  it("a request type whose JSON is text is the parameter value", async () => {
    expect((await shop.call("Shop_EchoText", { value: "hello" })).message).toBe("hello");
    expect((await failureOf(shop.call("Shop_EchoText", { text: "hello" }))).kind).toBe("invalid_request");
  });

  it("a request that is a Struct takes any object", async () => {
    const given = { a: 1, nested: { b: [true, null] } };
    expect((await shop.call("Shop_EchoStruct", given)).message).toEqual(given);
  });
});

describe("a proto2 service of the same name", () => {
  it("has required fields, groups, closed enums and extensions", async () => {
    const old = await openServer({ handlers: { Greet: (request) => request } });
    const legacy = await hydrated(adapter, documentOf(old.target));
    const greeting = { name: "Ann", part: [{ text: "hi" }], mood: "BAD", "[acme.legacy.nickname]": "A" };
    const { message } = await legacy.call("acme_legacy_Shop_Greet", greeting);
    expect(message).toEqual(greeting);
    const failure = await failureOf(legacy.call("acme_legacy_Shop_Greet", { times: 1 }));
    expect(failure).toMatchObject({ kind: "invalid_request", message: expect.stringMatching(/name/) });
    legacy.service.close?.();
    old.close();
  });
});

describe("answers that only a foreign target gives", () => {
  const everything = (fields: [number, number, Uint8Array | number][]) =>
    Buffer.concat(
      fields.map(([no, wire, value]) =>
        typeof value === "number"
          ? Buffer.from([...varint((no << 3) | wire), ...varint(value)])
          : Buffer.from([...varint((no << 3) | wire), ...varint(value.length), ...value]),
      ),
    );

  it("an enum value newer than the descriptors is its number", async () => {
    raw = everything([[16, 0, 99]]);
    expect((await shop.call("Shop_Raw")).message.aColour).toBe(99);
  });

  it("an Any of an unknown type keeps its bytes, also inside a known one", async () => {
    const unknown = any("type.example/strange.Thing", Buffer.from([8, 1]));
    const hidden = Buffer.concat([Buffer.from([10, 2]), Buffer.from("hi"), Buffer.from([18, unknown.length]), unknown]);
    raw = everything([
      [36, 2, unknown],
      [43, 2, any("type.googleapis.com/acme.shop.v1.Hidden", hidden)],
      [43, 2, any("", Buffer.alloc(0))],
    ]);
    const { message } = await shop.call("Shop_Raw");
    const opaque = { "@type": "type.example/strange.Thing", value: "CAE=" };
    expect(message.any).toEqual(opaque);
    expect(message.manyAny).toEqual([
      { "@type": "type.googleapis.com/acme.shop.v1.Hidden", word: "hi", inner: opaque },
      {},
    ]);
  });

  it.each<[string, () => Uint8Array]>([
    ["bytes that are no message", () => Buffer.from([0xff, 0xff, 0xff])],
    ["a length beyond the end", () => Buffer.from([0x72, 0x7f, 1])],
    ["text that is not UTF-8", () => everything([[14, 2, Buffer.from([0xc3, 0x28])]])],
    ["a timestamp out of range", () => everything([[30, 2, Buffer.from([8, ...varint(2 ** 45)])]])],
    ["a Value without a kind", () => everything([[34, 2, Buffer.alloc(0)]])],
    ["groups opened ten thousand times", () => Buffer.alloc(20_000, Buffer.from([...varint((999 << 3) | 3)]))],
    [
      "an Any whose bytes do not fit its type",
      () => everything([[36, 2, any("x/acme.shop.v1.Item", Buffer.from([0xff]))]]),
    ],
    ["an Any of a type that cannot be named", () => everything([[36, 2, any("x/not a name", Buffer.from([1]))]])],
    ["Any inside Any a hundred times", () => everything([[36, 2, nestedAny(100)]])],
    ["Any inside Any ten thousand times", () => everything([[36, 2, nestedAny(10_000)]])],
  ])("%s fails the call and nothing else", async (_what, bytes) => {
    raw = bytes();
    const failure = await failureOf(shop.call("Shop_Raw"));
    expect(failure.kind).toBe("upstream_failed");
    expect(failure.message).toMatch(/^The answer of tool "Shop_Raw" is no readable "acme\.shop\.v1\.Everything": ./);
    expect((await shop.call("Shop_GetItem", { itemId: "7" })).message).toEqual(item);
  });

  it("trees nested too deep in an answer fail the call and nothing else", async () => {
    let tree = Buffer.from([10, 1, 65]);
    for (let depth = 0; depth < 1_000; depth += 1) {
      tree = Buffer.concat([Buffer.from([18, ...varint(tree.length)]), tree]);
    }
    const deep = await openServer({ handlers: { EchoTree: () => tree } });
    const other = await hydrated(adapter, documentOf(deep.target, undefined, { services: ["acme.shop.v1.Shop"] }));
    const failure = await failureOf(other.call("Shop_EchoTree", {}));
    expect(failure).toMatchObject({ kind: "upstream_failed", message: expect.stringMatching(/depth/) });
    other.service.close?.();
    deep.close();
  });

  it("a small answer whose JSON would be huge fails the call", async () => {
    // Each pair of bytes is an item of the list: five million objects with three fields each.
    raw = Buffer.alloc(toolAnswerBytesMax - 1_000, Buffer.from([...varint((20 << 3) | 2), 0]));
    const failing = failureOf(shop.call("Shop_Raw"));
    let isOver = false;
    void failing.then(() => {
      isOver = true;
    });
    // Small calls go on meanwhile: more of them than could pass if each waited for the large answer.
    let passed = 0;
    while (!isOver && passed < 50) {
      expect((await shop.call("Shop_GetItem", { itemId: "7" })).message).toEqual(item);
      passed += 1;
    }
    expect(passed).toBe(50);
    expect(["upstream_failed", "timeout"]).toContain((await failing).kind);
    raw = Buffer.alloc(0);
    expect((await shop.call("Shop_Raw")).message).toMatchObject({ aBool: false });
  }, 60_000);

  it("an answer beyond the size that is taken fails the call", async () => {
    raw = everything([[15, 2, Buffer.alloc(toolAnswerBytesMax + 1)]]);
    const failure = await failureOf(shop.call("Shop_Raw"));
    expect(failure).toMatchObject({ kind: "upstream_failed", message: expect.stringMatching(/RESOURCE_EXHAUSTED/) });
  });
});

describe("server streams", () => {
  it("give all their messages", async () => {
    const { messages, complete } = await shop.stream("Shop_Count", { upTo: 3 });
    expect(messages.map(({ number }) => number)).toEqual([1, 2, 3]);
    expect(complete).toBe(true);
  });

  it("without messages give none", async () => {
    expect(await shop.stream("Shop_Count", {})).toMatchObject({ messages: [], complete: true });
  });

  it("that never end are stopped at the configured number of messages", async () => {
    const few = await hydrated(adapter, documentOf(server.target), { config: { maxMessages: 5 } });
    const { messages, complete } = await few.stream("acme_shop_v1_Shop_Count", { upTo: -1 });
    expect(messages).toHaveLength(5);
    expect(complete).toBe(false);
    few.service.close?.();
  });

  it("are stopped at the number of messages that holds without configuration", async () => {
    const { messages, complete } = await shop.stream("Shop_Count", { upTo: -1 });
    expect(messages).toHaveLength(1_000);
    expect(complete).toBe(false);
  });

  it("larger than an answer may be fail the call", async () => {
    const failure = await failureOf(shop.stream("Shop_Count", { upTo: -1, bytesEach: 1024 * 1024 }));
    expect(failure).toMatchObject({ kind: "upstream_failed", message: expect.stringMatching(/larger than/) });
  });

  it("that fail on the way fail the call with their status", async () => {
    const failing = await openServer({
      handlers: {
        Count(_request, { call, registry, method }) {
          (call as grpc.ServerWritableStream<Buffer, Buffer>).write(write(method, registry, { number: 1 }));
          setTimeout(() => call.emit("error", { code: grpc.status.DATA_LOSS, details: "Gone" }), 20);
        },
      },
    });
    const other = await hydrated(adapter, documentOf(failing.target, undefined, { services: ["acme.shop.v1.Shop"] }));
    const failure = await failureOf(other.stream("Shop_Count", { upTo: 3 }));
    expect(failure).toMatchObject({
      kind: "upstream_failed",
      message: 'Tool "Shop_Count" failed with DATA_LOSS: Gone',
    });
    other.service.close?.();
    failing.close();
  });
});

describe("statuses of the target", () => {
  const expected: Record<string, FailureKind> = {
    CANCELLED: "upstream_failed",
    UNKNOWN: "upstream_failed",
    INVALID_ARGUMENT: "invalid_request",
    DEADLINE_EXCEEDED: "timeout",
    NOT_FOUND: "not_found",
    ALREADY_EXISTS: "already_exists",
    PERMISSION_DENIED: "upstream_failed",
    RESOURCE_EXHAUSTED: "upstream_failed",
    FAILED_PRECONDITION: "conflict",
    ABORTED: "conflict",
    OUT_OF_RANGE: "invalid_request",
    UNIMPLEMENTED: "upstream_failed",
    INTERNAL: "upstream_failed",
    UNAVAILABLE: "upstream_failed",
    DATA_LOSS: "upstream_failed",
    UNAUTHENTICATED: "upstream_failed",
  };

  it("each has its kind", () => {
    const codes = Object.values(grpc.status).filter((code) => typeof code === "number" && code !== grpc.status.OK);
    expect(Object.keys(kindOfStatus).map(Number).sort()).toEqual(codes.sort());
    expect(Object.keys(expected)).toHaveLength(codes.length);
  });

  it.each(Object.entries(expected))("%s is %s", async (name, kind) => {
    const code = grpc.status[name as "NOT_FOUND"];
    const failure = await failureOf(shop.call("Shop_Fail", { code, text: 'no item "7"' }));
    expect(failure.kind).toBe(kind);
    if (name === "DEADLINE_EXCEEDED") expect(failure.message).toMatch(/did not answer within/);
    else expect(failure.message).toBe(`Tool "Shop_Fail" failed with ${name}: no item "7"`);
  });

  it("long words are cut, and secrets in them masked", async () => {
    const secretive = await hydrated(adapter, documentOf(server.target), { secrets: { bearerToken: "s3cret-token" } });
    const text = `bad token s3cret-token ${"x".repeat(5_000)}`;
    const { message } = await failureOf(secretive.call("acme_shop_v1_Shop_Fail", { code: 3, text }));
    expect(message).toMatch(/bad token \*\*\* x{900,}…$/);
    expect(message.length).toBeLessThan(1_200);
    secretive.service.close?.();
  });

  it("fields of the rich error model are named", async () => {
    const fieldViolations = [{ field: "item.title", description: "must not be blank" }];
    const detail = anyPack(BadRequestSchema, create(BadRequestSchema, { fieldViolations }));
    const status = create(StatusSchema, { code: 3, message: "Bad", details: [detail] });
    const metadata = new grpc.Metadata();
    metadata.set("grpc-status-details-bin", Buffer.from(toBinary(StatusSchema, status)));
    const rich = await openServer({
      handlers: {
        Fail: () => {
          throw { code: 3, details: "Bad", metadata };
        },
      },
    });
    const other = await hydrated(adapter, documentOf(rich.target, undefined, { services: ["acme.shop.v1.Shop"] }));
    const failure = await failureOf(other.call("Shop_Fail", {}));
    expect(failure.details.fields).toEqual(fieldViolations);
    expect(failure.message).toBe('Tool "Shop_Fail" failed with INVALID_ARGUMENT: Bad; "item.title": must not be blank');
    other.service.close?.();
    rich.close();
  });
});

describe("metadata", () => {
  it("of configuration and secrets reaches the target, and what it repeats of secrets is masked", async () => {
    const me = await hydrated(adapter, documentOf(server.target), {
      config: { metadata: { "X-Tenant": "acme", "x-key-bin": "AQID" } },
      secrets: { bearerToken: "s3cret-token", metadata: { "x-api-key": "another-s3cret" } },
    });
    const { message, headers } = await me.call("acme_shop_v1_Shop_WhoAmI");
    expect(message).toMatchObject({
      "x-tenant": "acme",
      "x-key-bin": "010203",
      "x-api-key": "another-s3cret",
      authorization: "Bearer s3cret-token",
    });
    expect(headers).toMatchObject({ "x-served-by": "shop", "x-repeated": "Bearer ***", "x-blob-bin": "AQID" });
    expect(headers).not.toHaveProperty("content-type");
    me.service.close?.();
  });

  it("a secret takes the place of configuration of the same name", async () => {
    const settings = {
      config: { metadata: { "x-api-key": "open" } },
      secrets: { metadata: { "X-Api-Key": "hidden" } },
    };
    const me = await hydrated(adapter, documentOf(server.target), settings);
    expect((await me.call("acme_shop_v1_Shop_WhoAmI")).message["x-api-key"]).toBe("hidden");
    me.service.close?.();
  });

  it.each<[string, object, object]>([
    ["authorization in the configuration", { metadata: { Authorization: "x" } }, {}],
    ["a name of the protocol", { metadata: { "grpc-timeout": "1S" } }, {}],
    ["a pseudo header", { metadata: { ":path": "/x" } }, {}],
    ["a connection header", {}, { metadata: { te: "x" } }],
    ["a name with a space", { metadata: { "a b": "x" } }, {}],
    ["a line break", {}, { metadata: { "x-key": "s3cret\r\nx: y" } }],
    ["text beyond ASCII", {}, { metadata: { "x-key": "s3crät" } }],
    ["a binary value that is not base64", {}, { metadata: { "x-bin": "s3cret*" } }],
    ["a token with a line break", {}, { bearerToken: "s3cret\n" }],
  ])("%s is refused when the service is made ready, without its value", async (_what, config, secrets) => {
    const settings = { config: config as Record<string, unknown>, secrets: secrets as Record<string, unknown> };
    const failure = await failureOf(hydrated(adapter, documentOf(server.target), settings));
    expect(failure.kind).toBe("invalid_request");
    expect(failure.message).not.toMatch(/s3c/);
  });
});

describe("time", () => {
  it("a call beyond its time is a timeout, and the target knew the deadline", async () => {
    const before = Date.now();
    const failure = await failureOf(shop.call("Shop_Sleep", {}, { timeoutMs: 300 }));
    expect(failure).toMatchObject({ kind: "timeout", message: 'Tool "Shop_Sleep" did not answer within 300 ms' });
    const deadline = Number(slept?.deadline instanceof Date ? slept.deadline.getTime() : slept?.deadline);
    expect(deadline).toBeGreaterThan(before);
    expect(deadline).toBeLessThan(before + 5_000);
    await slept?.cancelled;
  });

  it("the configured time holds when it is shorter", async () => {
    const hasty = await hydrated(adapter, documentOf(server.target), { config: { timeoutMs: 200 } });
    const failure = await failureOf(hasty.call("acme_shop_v1_Shop_Sleep"));
    expect(failure.message).toMatch(/within 200 ms/);
    hasty.service.close?.();
  });

  it("a time beyond what can be told to the target is no fault", async () => {
    const patient = await hydrated(adapter, documentOf(server.target), { config: { timeoutMs: 1e300 } });
    const { message } = await patient.call("acme_shop_v1_Shop_GetItem", { itemId: "7" }, { timeoutMs: 1e300 });
    expect(message).toEqual(item);
    patient.service.close?.();
  });

  it("a caller that goes away cancels the call at the target", async () => {
    const leave = new AbortController();
    slept = undefined;
    const call = failureOf(shop.call("Shop_Sleep", {}, { signal: leave.signal }));
    await expect.poll(() => slept).toBeDefined();
    leave.abort();
    expect((await call).kind).toBe("cancelled");
    await slept!.cancelled;
  });

  it("a caller that has gone already sends nothing", async () => {
    slept = undefined;
    const failure = await failureOf(shop.call("Shop_Sleep", {}, { signal: AbortSignal.abort() }));
    expect(failure.kind).toBe("cancelled");
    expect(slept).toBeUndefined();
  });
});

it("a tool that does not exist is not found", async () => {
  expect((await failureOf(shop.call("Shop_Nothing"))).kind).toBe("not_found");
});

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  return [...bytes, rest];
}

/** Bytes of a google.protobuf.Any. */
function any(typeUrl: string, value: Uint8Array): Buffer {
  const url = Buffer.from(typeUrl);
  return Buffer.concat([
    Buffer.from([10, ...varint(url.length)]),
    url,
    Buffer.from([18, ...varint(value.length)]),
    value,
  ]);
}

function nestedAny(depth: number): Buffer {
  let packed = any("x/google.protobuf.BytesValue", Buffer.from(toBinary(BytesValueSchema, create(BytesValueSchema))));
  for (let at = 0; at < depth; at += 1) packed = any("x/google.protobuf.Any", packed);
  return packed;
}
