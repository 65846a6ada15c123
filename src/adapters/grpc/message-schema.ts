/**
 * JSON Schemas of protobuf messages in ProtoJSON, the JSON of gRPC: camelCase names, 64-bit integers as text, bytes in base64, enums by
 * name. Requests and answers differ: a request is held against its schema, and may leave out what it likes; an answer always has
 * its lists, maps and plain fields, and may hold an enum value newer than the descriptors. Runs in the descriptor worker.
 */
import { type DescEnum, type DescField, type DescMessage, type DescMethod, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { grpcDescriptionCharactersMax, grpcSchemaCharactersMax } from "../../limits.ts";
import type { JsonSchema } from "../../ports/adapter.ts";
import type { Comments } from "./comments.ts";
import { wrappedParameter } from "./plan.ts";
import { scalarSchema, wellKnownSchema } from "./value-schemas.ts";

export type Direction = "request" | "answer";
export type Schema = Readonly<Record<string, unknown>>;

const dialect = "https://json-schema.org/draft/2020-12/schema";

/** Types whose JSON is an object, or may be declared as one, so that parameters can be it. */
const objectLike = new Set(["google.protobuf.Struct", "google.protobuf.Any"]);

/** Whether the request's JSON is something else than an object. */
export function needsWrapping(input: DescMessage): boolean {
  return wellKnownSchema(input, "request") !== undefined && !objectLike.has(input.typeName);
}

export function requestSchema({ input }: DescMethod, comments: Comments): JsonSchema {
  const types = new TypeSchemas("request", comments);
  const known = wellKnownSchema(input, "request");
  const root = needsWrapping(input)
    ? {
        type: "object",
        properties: { [wrappedParameter]: known },
        required: [wrappedParameter],
        additionalProperties: false,
      }
    : (known ?? types.ofMessage(input));
  return { $schema: dialect, ...root, ...types.definitions() };
}

/** Of the tool's result: the message or messages, and what the target sends before and after them. */
export function resultSchema({ output, methodKind }: DescMethod, comments: Comments): JsonSchema {
  const types = new TypeSchemas("answer", comments);
  const message = types.ofType(output);
  const metadata = { type: "object", additionalProperties: { type: "string" } };
  const properties: Schema =
    methodKind === "unary"
      ? { message, headers: metadata, trailers: metadata }
      : {
          messages: { type: "array", items: message },
          complete: { type: "boolean", description: 'False: stopped at "maxMessages" of the configuration' },
          headers: metadata,
          trailers: metadata,
        };
  return { $schema: dialect, type: "object", properties, required: Object.keys(properties), ...types.definitions() };
}

/** Schemas of one tool's types, each once, breadth first, so that those near the top are the last to be left open. */
class TypeSchemas {
  readonly #direction: Direction;
  readonly #comments: Comments;
  readonly #referred = new Set<string>();
  readonly #pending: (DescMessage | DescEnum)[] = [];

  constructor(direction: Direction, comments: Comments) {
    this.#direction = direction;
    this.#comments = comments;
  }

  /** Asked last: the schemas of all types that were referred to, and of those they refer to. */
  definitions(): Schema {
    const definitions = new Map<string, Schema>();
    let characters = 0;
    for (let at = 0; at < this.#pending.length; at += 1) {
      const type = this.#pending[at]!;
      const isOpen = characters > grpcSchemaCharactersMax;
      const schema = isOpen ? this.#open(type) : type.kind === "enum" ? this.#ofEnum(type) : this.ofMessage(type);
      characters += JSON.stringify(schema).length;
      definitions.set(type.typeName, schema);
    }
    return definitions.size === 0 ? {} : { $defs: Object.fromEntries(definitions) };
  }

  ofType(type: DescMessage | DescEnum): Schema {
    const known = wellKnownSchema(type, this.#direction);
    if (known !== undefined) return known;
    if (!this.#referred.has(type.typeName)) {
      this.#referred.add(type.typeName);
      this.#pending.push(type);
    }
    return { $ref: `#/$defs/${type.typeName}` };
  }

  ofMessage(message: DescMessage): Schema {
    const isRequest = this.#direction === "request";
    const required = message.fields.filter((field) =>
      isRequest ? field.presence === FeatureSet_FieldPresence.LEGACY_REQUIRED : isAlwaysThere(field),
    );
    return {
      type: "object",
      ...described([this.#comments.get(message.proto), ...choices(message)]),
      properties: Object.fromEntries(message.fields.map((field) => [field.jsonName, this.#ofField(field)])),
      ...(required.length === 0 ? {} : { required: required.map(({ jsonName }) => jsonName) }),
      ...(isRequest ? { additionalProperties: false } : {}),
      ...(isRequest && message.proto.extensionRange.length > 0
        ? { patternProperties: { "^\\[": { description: 'An extension, named as in "[package.extension]"' } } }
        : {}),
    };
  }

  #ofField(field: DescField): Schema {
    const notes = described([this.#comments.get(field.proto), field.deprecated ? "Deprecated" : undefined]);
    switch (field.fieldKind) {
      case "list":
        return { type: "array", items: this.#ofValue(field), ...notes };
      case "map":
        return { type: "object", ...keys(field.mapKey), additionalProperties: this.#ofValue(field), ...notes };
      default:
        return { ...this.#ofValue(field), ...notes };
    }
  }

  #ofValue(field: DescField): Schema {
    if (field.message !== undefined) return this.ofType(field.message);
    if (field.enum !== undefined) return this.ofType(field.enum);
    return scalarSchema(field.scalar, this.#direction);
  }

  #ofEnum(type: DescEnum): Schema {
    const names = { type: "string", enum: [...new Set(type.values.map(({ jsonName }) => jsonName))] };
    const values = type.values.flatMap(({ jsonName, proto }) => {
      const comment = this.#comments.get(proto);
      return comment === undefined ? [] : [`${jsonName}: ${comment}`];
    });
    const notes = described([this.#comments.get(type.proto), ...values]);
    return this.#direction === "request"
      ? { ...names, ...notes }
      : { anyOf: [names, { type: "integer", description: "A value the descriptors do not name" }], ...notes };
  }

  #open(type: DescMessage | DescEnum): Schema {
    const description = `${type.typeName}, not described here for its size; the target checks it`;
    return type.kind === "enum" ? { description } : { type: "object", description };
  }
}

/** What is written to JSON even at its zero value. */
function isAlwaysThere({ fieldKind, presence, oneof }: DescField): boolean {
  if (fieldKind === "list" || fieldKind === "map") return true;
  return fieldKind !== "message" && oneof === undefined && presence === FeatureSet_FieldPresence.IMPLICIT;
}

/** Said and not enforced here: the message of the protobuf library names the two fields in conflict. */
function choices(message: DescMessage): string[] {
  return message.oneofs
    .filter((oneof) => oneof.fields.length > 1)
    .map((oneof) => `At most one of ${oneof.fields.map(({ jsonName }) => jsonName).join(", ")}`);
}

function keys(key: ScalarType): Schema {
  if (key === ScalarType.STRING) return {};
  if (key === ScalarType.BOOL) return { propertyNames: { enum: ["true", "false"] } };
  return { propertyNames: { pattern: "^-?[0-9]{1,20}$" } };
}

function described(texts: readonly (string | undefined)[]): Schema {
  const text = texts.filter((each) => each !== undefined && each !== "").join("\n");
  if (text === "") return {};
  const isLong = text.length > grpcDescriptionCharactersMax;
  return { description: isLong ? `${text.slice(0, grpcDescriptionCharactersMax).toWellFormed()}…` : text };
}
