/** Messages of the control plane as plain JSON, spelled as the REST face spells them: numbers, lower-case words, ISO times. */

import { Buffer } from "node:buffer";
import {
  createRegistry,
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescService,
  type Message,
  toJson,
} from "@bufbuild/protobuf";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import type { Item } from "./item.ts";

/** `services`: those whose messages will come. */
export function plainMessages(services: readonly DescService[]): (message: Message) => Item {
  const registry = createRegistry(...services.map(({ file }) => file));
  return (message) => {
    const description = registry.getMessage(message.$typeName);
    if (description === undefined) throw new Error(`There is no message "${message.$typeName}"`);
    return plainMessage(description, message);
  };
}

function plainMessage(description: DescMessage, message: object): Item {
  const fields = message as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    description.fields.flatMap((field) => {
      const value = field.oneof === undefined ? fields[field.localName] : chosen(fields[field.oneof.localName], field);
      return value === undefined ? [] : [[field.localName, plainField(field, value)]];
    }),
  );
}

function chosen(oneof: unknown, field: DescField): unknown {
  const { case: name, value } = oneof as { readonly case?: string; readonly value?: unknown };
  return name === field.localName ? value : undefined;
}

function plainField(field: DescField, value: unknown): unknown {
  switch (field.fieldKind) {
    case "scalar":
      return plainScalar(value);
    case "enum":
      return enumWord(field.enum, value as number);
    case "message":
      return plainValue(field.message, value as Message);
    case "list":
      return (value as readonly unknown[]).map((element) => plainElement(field, element));
    case "map":
      return Object.fromEntries(
        Object.entries(value as object).map(([key, element]) => [key, plainElement(field, element)]),
      );
  }
}

function plainElement(field: DescField & { fieldKind: "list" | "map" }, value: unknown): unknown {
  if (field.message !== undefined) return plainValue(field.message, value as Message);
  return field.enum === undefined ? plainScalar(value) : enumWord(field.enum, value as number);
}

function plainScalar(value: unknown): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  return value;
}

function plainValue(description: DescMessage, value: Message): unknown {
  switch (description.typeName) {
    case "google.protobuf.Timestamp":
      return timestampDate(value as Timestamp).toISOString();
    case "google.protobuf.Struct":
      return "$typeName" in value ? toJson(description, value) : value;
    case "google.protobuf.Value":
    case "google.protobuf.ListValue":
    case "google.protobuf.Duration":
      return toJson(description, value);
    default:
      return plainMessage(description, value);
  }
}

/** `TOOL_CALL_STATE_OK` of ToolCallState → `ok`, as the server's own JSON has it. */
function enumWord(description: DescEnum, value: number): string {
  const name = description.value[value]?.name ?? String(value);
  const words = name.slice(description.sharedPrefix?.length ?? 0).toLowerCase();
  return words.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
