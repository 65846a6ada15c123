/**
 * google.protobuf.Any in answers. A target may pack a message that its descriptors do not hold; that is no reason to lose the rest of the
 * answer, so an unknown message is given as `{"@type": …, "value": "<base64>"}`. Runs in the descriptor worker.
 */
import {
  create,
  createFileRegistry,
  type DescMessage,
  type FileRegistry,
  fromBinary,
  type Message,
  type Registry,
  toBinary,
} from "@bufbuild/protobuf";
import { type ReflectList, type ReflectMap, type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import {
  type Any,
  DescriptorProtoSchema,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";
import { grpcAnyDepthMax } from "../../limits.ts";

const anyName = "google.protobuf.Any";

/** Makes every Any of the message ready to be written as JSON with the registry it answers with. @throws Error when it cannot be. */
export function openAny(registry: FileRegistry, type: DescMessage, message: Message): Registry {
  if (!holdsAny(type)) return registry;
  const opaque = new Map<string, DescMessage>();
  walk(reflect(type, message), { registry, opaque, depth: 0 });
  if (opaque.size === 0) return registry;
  return { ...registry, getMessage: (name) => registry.getMessage(name) ?? opaque.get(name) };
}

interface Walk {
  readonly registry: FileRegistry;
  /** Stand-ins for the types that are not in the registry. */
  readonly opaque: Map<string, DescMessage>;
  /** Any inside Any. */
  readonly depth: number;
}

function walk(message: ReflectMessage, context: Walk): void {
  if (message.desc.typeName === anyName) {
    openOne(message.message as Any, context);
    return;
  }
  for (const field of message.fields) {
    if (field.message === undefined || !holdsAny(field.message) || !message.isSet(field)) continue;
    const value = message.get(field);
    if (field.fieldKind === "list") for (const item of value as ReflectList<ReflectMessage>) walk(item, context);
    else if (field.fieldKind === "map")
      for (const item of (value as ReflectMap<unknown, ReflectMessage>).values()) walk(item, context);
    else walk(value as ReflectMessage, context);
  }
}

function openOne(any: Any, { registry, opaque, depth }: Walk): void {
  if (any.typeUrl === "") return;
  const name = any.typeUrl.slice(any.typeUrl.lastIndexOf("/") + 1);
  const type = registry.getMessage(name);
  if (type === undefined) {
    const standIn = opaque.get(name) ?? opaqueType(name);
    opaque.set(name, standIn);
    any.value = toBinary(standIn, create(standIn, { value: any.value } as never));
    return;
  }
  if (!holdsAny(type)) return;
  if (depth === grpcAnyDepthMax) throw new Error(`it has "${anyName}" nested deeper than ${grpcAnyDepthMax} levels`);
  const packed = fromBinary(type, any.value);
  walk(reflect(type, packed), { registry, opaque, depth: depth + 1 });
  any.value = toBinary(type, packed);
}

/** A message of that name whose only field holds the bytes. */
function opaqueType(name: string): DescMessage {
  const value = create(FieldDescriptorProtoSchema, {
    name: "value",
    jsonName: "value",
    number: 1,
    type: FieldDescriptorProto_Type.BYTES,
    label: FieldDescriptorProto_Label.OPTIONAL,
  });
  const dot = name.lastIndexOf(".");
  const file = create(FileDescriptorProtoSchema, {
    name: "opaque.proto",
    syntax: "proto3",
    package: name.slice(0, Math.max(dot, 0)),
    messageType: [create(DescriptorProtoSchema, { name: name.slice(dot + 1), field: [value] })],
  });
  const type = createFileRegistry(file, () => undefined).getMessage(name);
  if (type === undefined) throw new Error(`it has "${anyName}" of a type without a name`);
  return type;
}

const known = new WeakMap<DescMessage, boolean>();

/** Whether a message of this type can have an Any anywhere inside. */
function holdsAny(type: DescMessage): boolean {
  const before = known.get(type);
  if (before !== undefined) return before;
  const seen = new Set([type]);
  let found = false;
  for (const each of seen) {
    if (each.typeName === anyName) {
      found = true;
      break;
    }
    for (const field of each.fields) if (field.message !== undefined) seen.add(field.message);
  }
  known.set(type, found);
  return found;
}
