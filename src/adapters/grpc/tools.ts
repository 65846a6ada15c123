/** Methods as tools: their ids, and what lists and searches show of them. Runs in the descriptor worker. */
import { createHash } from "node:crypto";
import type { DescMessage, DescMethod, FileRegistry } from "@bufbuild/protobuf";
import { documentOperationsMax } from "../../limits.ts";
import type { ToolSummary } from "../../ports/adapter.ts";
import type { Comments } from "./comments.ts";
import { needsWrapping } from "./message-schema.ts";
import { wrappedParameter } from "./plan.ts";
import { unusable } from "./unusable.ts";

export interface Tools {
  readonly byId: ReadonlyMap<string, DescMethod>;
  /** Methods whose caller sends a stream: a tool has one set of parameters. */
  readonly leftOut: readonly DescMethod[];
}

const idCharactersMax = 200;
const summaryCharactersMax = 120;
/** Names of parameters that a search looks at. */
const parameterNamesMax = 200;

export function toolsOf(registry: FileRegistry, services: readonly string[]): Tools {
  const methods = services.flatMap((name) => registry.getService(name)?.methods ?? []);
  if (methods.length > documentOperationsMax) throw unusable(`it has more than ${documentOperationsMax} methods`);
  const isCallable = ({ methodKind }: DescMethod) => methodKind === "unary" || methodKind === "server_streaming";
  const callable = methods.filter(isCallable);
  const ids = toolIds(callable);
  return {
    byId: new Map(callable.map((method, at) => [ids[at]!, method])),
    leftOut: methods.filter((method) => !isCallable(method)),
  };
}

/** `Shop_GetItem`; where several packages have a service of that name, `acme_shop_v1_Shop_GetItem` for all of them. */
function toolIds(methods: readonly DescMethod[]): string[] {
  const byShortName = Map.groupBy(new Set(methods.map(({ parent }) => parent)), ({ name }) => name);
  const taken = new Set<string>();
  return methods.map((method) => {
    const { parent, name } = method;
    const isAlone = byShortName.get(parent.name)?.length === 1;
    const wanted = identifier(`${isAlone ? parent.name : parent.typeName.replaceAll(".", "_")}_${name}`);
    const digest = createHash("sha256").update(methodPath(method)).digest("hex");
    let id = wanted;
    for (let length = 6; taken.has(id); length += 2) id = `${wanted}_${digest.slice(0, length)}`;
    taken.add(id);
    return id;
  });
}

/** Names in descriptors are letters, digits and underscores. */
function identifier(text: string): string {
  const cut = text.slice(0, idCharactersMax);
  return /^[0-9]/.test(cut) ? `_${cut}` : cut;
}

export function methodPath({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
}

export function summariseTool(id: string, method: DescMethod, comments: Comments): ToolSummary {
  const described = comments.get(method.proto) ?? "";
  const streams = method.methodKind === "server_streaming" ? ", answered by a stream of messages" : "";
  const parts = [
    described,
    method.deprecated || method.parent.deprecated ? "Deprecated" : "",
    `gRPC method ${methodPath(method)}${streams}`,
  ];
  return {
    id,
    name: methodPath(method).slice(1),
    summary: firstSentence(described),
    description: parts.filter((part) => part !== "").join("\n\n"),
    parameterNames: parameterNames(method.input),
  };
}

export function firstSentence(text: string): string {
  const paragraph = (text.split(/\n\s*\n/, 1)[0] ?? "").replaceAll(/\s+/g, " ").trim();
  const sentence = /^.*?[.!?](?=\s|$)/.exec(paragraph)?.[0] ?? paragraph;
  return sentence.length <= summaryCharactersMax
    ? sentence
    : `${sentence.slice(0, summaryCharactersMax).toWellFormed()}…`;
}

/** Fields of the request, and those of the messages in it. */
function parameterNames(input: DescMessage): string[] {
  if (needsWrapping(input)) return [wrappedParameter];
  const names = new Set(input.fields.map(({ jsonName }) => jsonName));
  for (const field of input.fields) {
    for (const inner of field.message?.fields ?? []) names.add(inner.jsonName);
  }
  return [...names].slice(0, parameterNamesMax);
}
