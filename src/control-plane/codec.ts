/**
 * Protobuf messages ↔ domain shapes (the JSON of the REST face), driven by descriptors and compiled once per message type,
 * so that no operation needs a converter of its own.
 *
 *   field_name         ↔ fieldName
 *   PROCESS_STATE_IDLE ↔ "idle"; …_UNSPECIFIED is unset, a number without a name is refused
 *   Timestamp          ↔ ISO-8601 text with milliseconds
 *   int64 and kin      ↔ number, refused beyond 2^53 - 1
 *   Struct, Value      ↔ JSON under the rules of json/safety.ts; null is a value of Value, and unset everywhere else
 *   unset field        ↔ absent, or null where a row's zod output says nullable (`messageReader` with that output only)
 */
import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  fromJson,
  type JsonValue,
  type Message,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs, type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { z } from "zod";
import { Failure } from "../errors/failure.ts";
import { fieldAtFault } from "../errors/field-at-fault.ts";
import { requireSafeJson } from "../json/safety.ts";
import { type Nullability, noNulls, nullabilityOf } from "./nullability.ts";

type Fields = Record<string, unknown>;
/** Throws Failure invalid_request when the message holds what the domain cannot. */
export type MessageReader = (message: Message) => Record<string, unknown>;
export type MessageWriter = (domain: unknown) => Message;
type FieldReader = (value: unknown) => unknown;
type FieldWriter = (value: unknown) => unknown;

/** Message to domain shape. With a row's zod output, unset fields read null where that output is nullable. */
export function messageReader(desc: DescMessage, output?: z.core.$ZodType): MessageReader {
  return compiledReader(desc, output === undefined ? noNulls : nullabilityOf(output));
}

/** Domain shape to message; fields the message does not have are left behind. */
export function messageWriter(desc: DescMessage): MessageWriter {
  const known = writers.get(desc);
  if (known !== undefined) return known;
  // Kept before its fields are compiled: a message may hold itself.
  let fields: readonly WritePlan[] | undefined;
  const writer: MessageWriter = (domain) => {
    fields ??= desc.fields.map(writePlan);
    const message = create(desc);
    const source = domain as Fields;
    for (const field of fields) {
      const value = source[field.name];
      if (value === undefined || (value === null && !field.takesNull)) continue;
      (message as unknown as Fields)[field.localName] = field.write(value);
    }
    return message;
  };
  writers.set(desc, writer);
  return writer;
}

const writers = new WeakMap<DescMessage, MessageWriter>();
const plainReaders = new WeakMap<DescMessage, MessageReader>();

function compiledReader(desc: DescMessage, nullability: Nullability): MessageReader {
  const known = nullability === noNulls ? plainReaders.get(desc) : undefined;
  if (known !== undefined) return known;
  let fields: readonly ReadPlan[] | undefined;
  const reader: MessageReader = (message) => {
    fields ??= desc.fields.map((field) => readPlan(field, nullability));
    const domain: Fields = {};
    for (const field of fields) {
      const value = (message as unknown as Fields)[field.localName];
      const read = value === undefined ? undefined : field.read(value);
      if (read !== undefined) domain[field.name] = read;
      else if (field.unsetIsNull) domain[field.name] = null;
    }
    return domain;
  };
  if (nullability === noNulls) plainReaders.set(desc, reader);
  return reader;
}

interface ReadPlan {
  readonly name: string;
  readonly localName: string;
  readonly unsetIsNull: boolean;
  readonly read: FieldReader;
}

interface WritePlan {
  readonly name: string;
  readonly localName: string;
  readonly takesNull: boolean;
  readonly write: FieldWriter;
}

function readPlan(field: DescField, nullability: Nullability): ReadPlan {
  const name = field.jsonName;
  const one = singleReader(field, nullability.inside(name));
  return {
    name,
    localName: field.localName,
    unsetIsNull: nullability.isNullable(name),
    read: field.fieldKind === "list" ? (items) => (items as unknown[]).map(one) : one,
  };
}

function writePlan(field: DescField): WritePlan {
  const one = singleWriter(field);
  return {
    name: field.jsonName,
    localName: field.localName,
    takesNull: field.fieldKind === "message" && field.message.typeName === ValueSchema.typeName,
    write: field.fieldKind === "list" ? (items) => (items as unknown[]).map(one) : one,
  };
}

function singleReader(field: DescField, inside: Nullability): FieldReader {
  const shape = supported(field);
  switch (shape.kind) {
    case "enum":
      return enumReader(field, shape.enum);
    case "scalar":
      return isWide(shape.scalar) ? (value) => safeNumber(value as bigint, field) : (value) => value;
    case "message":
      switch (shape.message.typeName) {
        case "google.protobuf.Timestamp":
          return (value) => isoText(value as Timestamp, field);
        case "google.protobuf.Struct":
          return (value) => safeJson(value, field);
        case "google.protobuf.Value":
          return (value) => safeJson(jsonOf(value as Value, field), field);
        default: {
          const reader = compiledReader(shape.message, inside);
          return (value) => reader(value as Message);
        }
      }
  }
}

function singleWriter(field: DescField): FieldWriter {
  const shape = supported(field);
  switch (shape.kind) {
    case "enum":
      return enumWriter(field, shape.enum);
    case "scalar":
      return isWide(shape.scalar) ? (value) => BigInt(value as number) : (value) => value;
    case "message":
      switch (shape.message.typeName) {
        case "google.protobuf.Timestamp":
          return (value) => timestampFromMs(Date.parse(value as string));
        case "google.protobuf.Struct":
          return (value) => value;
        case "google.protobuf.Value":
          return (value) => fromJson(ValueSchema, value as JsonValue, { recursionLimit: valueDepthMax });
        default:
          return messageWriter(shape.message);
      }
  }
}

/** Results of tools may nest deeper than what we take in; this is where a stack would be in danger. */
const valueDepthMax = 1_000;

type Shape =
  | { readonly kind: "scalar"; readonly scalar: ScalarType }
  | { readonly kind: "enum"; readonly enum: DescEnum }
  | { readonly kind: "message"; readonly message: DescMessage };

/** Our messages stay flat: no maps and no oneofs (design: "unions are flat messages"). A test compiles every message. */
function supported(field: DescField): Shape {
  const kind = field.fieldKind === "list" ? field.listKind : field.fieldKind;
  if (field.oneof === undefined) {
    if (kind === "scalar" && field.scalar !== undefined) return { kind, scalar: field.scalar };
    if (kind === "enum" && field.enum !== undefined) return { kind, enum: field.enum };
    if (kind === "message" && field.message !== undefined) return { kind, message: field.message };
  }
  throw new Error(
    `Field ${field.parent.typeName}.${field.name} is a map or a oneof, which the codec does not translate`,
  );
}

function enumReader(field: DescField, desc: DescEnum): FieldReader {
  const texts = new Map(desc.values.map((value) => [value.number, enumText(desc, value.name)]));
  return (number) => {
    if (number === 0) return undefined;
    const text = texts.get(number as number);
    if (text === undefined) throw notRead(field, `${String(number)} is not a value of ${desc.typeName}`);
    return text;
  };
}

function enumWriter(field: DescField, desc: DescEnum): FieldWriter {
  const numbers = new Map(desc.values.map((value) => [enumText(desc, value.name), value.number]));
  return (text) => {
    const number = numbers.get(text as string);
    if (number === undefined)
      throw new Error(`Field ${field.parent.typeName}.${field.name} has no value "${String(text)}"`);
    return number;
  };
}

/** AUTH_TYPE_API_KEY of AuthType → apiKey. */
function enumText(desc: DescEnum, name: string): string {
  const words = name.slice(desc.sharedPrefix?.length ?? 0).toLowerCase();
  return words.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function isWide(scalar: ScalarType): boolean {
  return wide.has(scalar);
}

const wide: ReadonlySet<ScalarType> = new Set([
  ScalarType.INT64,
  ScalarType.UINT64,
  ScalarType.SINT64,
  ScalarType.FIXED64,
  ScalarType.SFIXED64,
]);

function safeNumber(value: bigint, field: DescField): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw notRead(field, "beyond the range of exact integers");
  return number;
}

function isoText(value: Timestamp, field: DescField): string {
  const { seconds, nanos } = value;
  const isTimestamp = seconds >= secondsMin && seconds <= secondsMax && nanos >= 0 && nanos < 1e9;
  if (!isTimestamp) throw notRead(field, "not a time of the years 1 to 9999");
  // Cut, as REST cuts a text with more digits: rounded up, the last moment of the year 9999 would lie in a year without a text.
  return new Date(Number(seconds) * 1_000 + Math.floor(nanos / 1e6)).toISOString();
}

/** What google.protobuf.Timestamp may hold: 0001-01-01T00:00:00Z and the last second of 9999. */
const secondsMin = -62_135_596_800n;
const secondsMax = 253_402_300_799n;

function jsonOf(value: Value, field: DescField): unknown {
  try {
    return toJson(ValueSchema, value);
  } catch {
    throw notRead(field, "not a JSON value");
  }
}

function safeJson(value: unknown, field: DescField): unknown {
  try {
    requireSafeJson(value, `Field "${field.jsonName}"`);
  } catch (error) {
    throw error instanceof Failure ? fieldAtFault(field.jsonName, error.message) : error;
  }
  if (holdsNonFinite(value)) throw notRead(field, "not a JSON value");
  return value;
}

/** NaN and the infinities are numbers of protobuf, not of JSON. Depth was checked before. */
function holdsNonFinite(value: unknown): boolean {
  if (typeof value === "number") return !Number.isFinite(value);
  return typeof value === "object" && value !== null && Object.values(value).some(holdsNonFinite);
}

function notRead(field: DescField, why: string): Failure {
  return new Failure("invalid_request", `Field "${field.jsonName}" is not valid: ${why}`, {
    fields: [{ field: field.jsonName, description: why }],
  });
}
