/** The codec over every message of every rpc, with generated values; then, field by field, what it must refuse. */
import {
  create,
  type DescField,
  type DescMessage,
  fromBinary,
  type Message,
  ScalarType,
  toBinary,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FieldDescriptorProto_Type } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { messageReader, messageWriter } from "../../src/control-plane/codec.ts";
import { nullabilityOf } from "../../src/control-plane/nullability.ts";
import { troupeServices } from "../../src/control-plane/services.ts";
import { type Failure, isFailure } from "../../src/errors/failure.ts";
import { ListLogsRequestSchema } from "../../src/gen/troupe/v1/log_service_pb.ts";
import { ProcessSchema, ProcessState } from "../../src/gen/troupe/v1/process_pb.ts";
import {
  CreateProcessRequestSchema,
  GetProcessRequestSchema,
  ListProcessesRequestSchema,
} from "../../src/gen/troupe/v1/process_service_pb.ts";
import { InvokeToolRequestSchema } from "../../src/gen/troupe/v1/tool_service_pb.ts";

const messages = troupeServices.flatMap((service) =>
  service.methods.flatMap((method) => [method.input, method.output]),
);

/** Through the wire and back. */
function roundTrip(desc: DescMessage, domain: unknown, output?: z.ZodType): unknown {
  const bytes = toBinary(desc, messageWriter(desc)(domain));
  return messageReader(desc, output)(fromBinary(desc, bytes, { recursionLimit: 500 }) as Message);
}

const json = fc
  .jsonValue({ maxDepth: 4 })
  .map(
    (value) =>
      JSON.parse(JSON.stringify(value).replaceAll("__proto__", "proto").replaceAll("prototype", "type")) as unknown,
  );
const text = fc.string({ unit: "grapheme" });

function arbitraryOf(field: DescField): fc.Arbitrary<unknown> {
  if (field.enum !== undefined) {
    const prefix = field.enum.sharedPrefix?.length ?? 0;
    const names = field.enum.values
      .filter((value) => value.number !== 0)
      .map(({ name }) => {
        const [first = "", ...others] = name.slice(prefix).toLowerCase().split("_");
        return first + others.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join("");
      });
    return fc.constantFrom(...names);
  }
  if (field.message !== undefined) {
    switch (field.message.typeName) {
      case "google.protobuf.Timestamp":
        return fc
          .date({ min: new Date(0), max: new Date("9999-12-31T23:59:59.999Z"), noInvalidDate: true })
          .map((date) => date.toISOString());
      case "google.protobuf.Struct":
        return fc
          .dictionary(
            text.filter((key) => key !== "__proto__"),
            json,
            { maxKeys: 4 },
          )
          .map((value) => ({ ...value }));
      case "google.protobuf.Value":
        return json;
      default:
        return domainOf(field.message);
    }
  }
  if (field.scalar === ScalarType.BYTES) return fc.uint8Array();
  const sample = create(field.parent) as unknown as Record<string, unknown>;
  const kind = typeof (field.fieldKind === "scalar" ? (sample[field.localName] ?? scalarSample(field)) : "");
  if (kind === "string") return text;
  if (kind === "boolean") return fc.boolean();
  if (field.proto.type === FieldDescriptorProto_Type.UINT64)
    return fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
  if (kind === "bigint") return fc.integer({ min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER });
  if (field.proto.type === 1) return fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);
  return fc.nat();
}

/** Optional scalars are undefined in a fresh message: their type tells. */
function scalarSample(field: DescField): unknown {
  switch (field.proto.type) {
    case 3:
      return 0n;
    case 8:
      return false;
    case 9:
      return "";
    default:
      return 0;
  }
}

function domainOf(desc: DescMessage): fc.Arbitrary<Record<string, unknown>> {
  const required: string[] = [];
  const model: Record<string, fc.Arbitrary<unknown>> = {};
  for (const field of desc.fields) {
    const one = arbitraryOf(field);
    model[field.jsonName] = field.fieldKind === "list" ? fc.array(one, { maxLength: 3 }) : one;
    const alwaysThere = field.fieldKind === "list" || (field.fieldKind === "scalar" && !field.proto.proto3Optional);
    if (alwaysThere) required.push(field.jsonName);
  }
  return fc.record(model, { requiredKeys: required as never });
}

describe("every message of every rpc", () => {
  it("covers every message declared beside the services, too", () => {
    for (const service of troupeServices) {
      for (const type of nestedTypes(service.file))
        if (type.kind === "message") messageReader(type)(create(type) as Message);
    }
  });

  it.each([...new Set(messages)].map((desc) => [desc.typeName, desc] as const))(
    "%s comes back as it went",
    (_name, desc) => {
      fc.assert(
        fc.property(domainOf(desc), (domain) => {
          expect(roundTrip(desc, domain)).toEqual(domain);
        }),
        { numRuns: 40 },
      );
    },
  );
});

describe("null, absent and present", () => {
  const snapshot = z.object({
    id: z.number(),
    pid: z.number().nullable(),
    state: z.string(),
    exitState: z.string().nullable(),
    error: z.string().nullable(),
    createdAt: z.string(),
    completedAt: z.string().nullable().optional(),
    ref: z.string().optional(),
  });

  it("an unset field is null where the output is nullable, and absent where it is optional", () => {
    const domain = {
      id: 1,
      pid: null,
      state: "idle",
      exitState: null,
      error: null,
      createdAt: "2026-01-01T00:00:00.000Z",
      completedAt: null,
    };
    expect(roundTrip(ProcessSchema, domain, snapshot)).toEqual(domain);
    expect(roundTrip(ProcessSchema, { ...domain, ref: "r", pid: 5 }, snapshot)).toEqual({
      ...domain,
      ref: "r",
      pid: 5,
    });
    expect(roundTrip(ProcessSchema, domain)).toEqual({ id: 1, state: "idle", createdAt: domain.createdAt });
  });

  it("sees through what wraps a shape", () => {
    const wrapped = z.object({
      items: z.array(z.object({ a: z.string().nullable().default(null) }).readonly()).optional(),
    });
    expect(nullabilityOf(wrapped).inside("items").isNullable("a")).toBe(true);
    expect(nullabilityOf(wrapped).isNullable("items")).toBe(false);
    expect(nullabilityOf(z.object({ a: z.string() }).transform((value) => value)).isNullable("a")).toBe(false);
    expect(nullabilityOf(z.string()).inside("a").isNullable("b")).toBe(false);
  });

  it("null is a value of Value and nothing elsewhere", () => {
    expect(roundTrip(InvokeToolRequestSchema, { serviceId: "s", toolId: "t", parameters: null })).toEqual({
      serviceId: "s",
      toolId: "t",
      parameters: null,
    });
    expect(roundTrip(InvokeToolRequestSchema, { serviceId: "s", toolId: "t" })).toEqual({
      serviceId: "s",
      toolId: "t",
    });
    expect(roundTrip(GetProcessRequestSchema, { id: 1, wait: null })).toEqual({ id: 1 });
  });

  it("dates keep their milliseconds, before 1970 too", () => {
    for (const createdAt of ["1969-12-31T23:59:59.999Z", "2026-01-02T03:04:05.001Z", "0001-01-01T00:00:00.000Z"]) {
      expect(roundTrip(ProcessSchema, { id: 1, createdAt })).toEqual({ id: 1, createdAt });
    }
  });
});

describe("what a message can say and the domain cannot", () => {
  const read = (desc: DescMessage, init: object) => messageReader(desc)(create(desc, init as never) as Message);
  const struct = (json: string) => ({ envConfig: JSON.parse(json) as object });

  it.each([
    ["an id beyond exact integers", GetProcessRequestSchema, { id: 2n ** 53n }, "id"],
    ["an id below them", GetProcessRequestSchema, { id: -(2n ** 63n) }, "id"],
    ["an enum number without a name", ListProcessesRequestSchema, { state: 99 as ProcessState }, "state"],
    ["a time before the year 1", ListLogsRequestSchema, { from: { seconds: -62_135_596_801n } }, "from"],
    ["a time after the year 9999", ListLogsRequestSchema, { to: { seconds: 253_402_300_800n } }, "to"],
    ["a time that no clock knows", ListLogsRequestSchema, { to: { seconds: 2n ** 62n } }, "to"],
    ["nanoseconds below 0", ListLogsRequestSchema, { from: { nanos: -1 } }, "from"],
    ["a second of nanoseconds", ListLogsRequestSchema, { from: { nanos: 1_000_000_000 } }, "from"],
    ["NaN in a Struct", CreateProcessRequestSchema, { envConfig: { a: [Number.NaN] } }, "envConfig"],
    [
      "infinity in a Value",
      InvokeToolRequestSchema,
      { parameters: { kind: { case: "numberValue", value: Number.POSITIVE_INFINITY } } },
      "parameters",
    ],
    ["a Value of nothing", InvokeToolRequestSchema, { parameters: {} }, "parameters"],
    ["__proto__ in a Struct", CreateProcessRequestSchema, struct('{"a":{"__proto__":{"x":1}}}'), "envConfig"],
    [
      "constructor.prototype in a Struct",
      CreateProcessRequestSchema,
      struct('{"constructor":{"prototype":{}}}'),
      "envConfig",
    ],
    [
      "a Struct nested too deep",
      CreateProcessRequestSchema,
      struct(`{"a":${"[".repeat(80)}${"]".repeat(80)}}`),
      "envConfig",
    ],
  ])("%s is refused as invalid_request naming the field", (_title, desc, init, field) => {
    let caught: unknown;
    try {
      read(desc, init);
    } catch (error) {
      caught = error;
    }
    expect(isFailure(caught) && caught.kind).toBe("invalid_request");
    expect((caught as Error).message).toContain(`"${field}"`);
    expect((caught as Failure).details.fields).toMatchObject([{ field }]);
  });

  it.each([
    ["the first", { seconds: -62_135_596_800n }, "0001-01-01T00:00:00.000Z"],
    ["the last", { seconds: 253_402_300_799n, nanos: 999_999_999 }, "9999-12-31T23:59:59.999Z"],
    ["the start of the epoch", {}, "1970-01-01T00:00:00.000Z"],
    ["one just before it", { seconds: -1n, nanos: 999_999_999 }, "1969-12-31T23:59:59.999Z"],
    ["one between milliseconds", { seconds: 1n, nanos: 1_999_999 }, "1970-01-01T00:00:01.001Z"],
  ])("%s time that a timestamp can say is cut to milliseconds", (_title, to, expected) => {
    expect(read(ListLogsRequestSchema, { to })).toEqual({ to: expected });
  });

  it("an UNSPECIFIED enum is unset", () => {
    expect(read(ListProcessesRequestSchema, { state: ProcessState.UNSPECIFIED })).toEqual({ noExitState: false });
  });

  it("a row that answers an unknown enum text is a crash, not a refusal", () => {
    expect(() => messageWriter(ProcessSchema)({ id: 1, state: "asleep" })).toThrow(/asleep/);
  });
});
