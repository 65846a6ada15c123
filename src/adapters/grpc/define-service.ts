/** A document, read and judged, becomes a definition. Runs in the descriptor worker. */
import { create, type DescMethod, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import type { Definition } from "../../ports/adapter.ts";
import { readComments } from "./comments.ts";
import { type FileSet, filesOfServices, readFileSet } from "./file-set.ts";
import { isInfrastructure, type Plan, planVersion } from "./plan.ts";
import type { DocumentParts } from "./read-document.ts";
import { configSchema, secretsSchema } from "./settings-schemas.ts";
import { firstSentence, methodPath, summariseTool, toolsOf } from "./tools.ts";
import { shortened, unusable } from "./unusable.ts";

/** Methods and services named in a text; the rest is counted. */
const namesShown = 20;

export function defineService(document: DocumentParts): Definition {
  const { target, descriptorSet } = document;
  const set = descriptorSet === null ? null : readFileSet(descriptorSet);
  const services = set === null ? [] : chosenServices(set, document.services ?? document.listed);
  const comments = readComments(set?.files ?? []);
  const tools = set === null ? { byId: new Map<string, DescMethod>(), leftOut: [] } : toolsOf(set.registry, services);
  const title = titleOf(services, target);
  const described = services.length === 1 ? serviceComment(set, services[0]!, comments) : "";
  const at = target === null ? "" : ` at ${target}`;
  const parts = [
    described,
    services.length > 1 ? `Services: ${listed(services)}` : "",
    set === null ? "Not read yet: sync the service to get its tools" : "",
    tools.leftOut.length === 0
      ? ""
      : `Left out, since their callers send streams: ${listed(tools.leftOut.map(methodPath))}`,
  ];
  return {
    title,
    name: title,
    summary: firstSentence(described) || `gRPC service${at}`,
    description: parts.filter((part) => part !== "").join("\n\n"),
    version: "",
    configSchema: configSchema(target),
    secretsSchema,
    tools: [...tools.byId].map(([id, method]) => summariseTool(id, method, comments)),
    plan: JSON.stringify(planOf(document, set, services)),
  };
}

/** With services named, only the files they need; else all, since a file that no method needs may describe what is packed in an Any. */
function planOf({ target, services: named }: DocumentParts, set: FileSet | null, services: readonly string[]): Plan {
  const plan = { version: planVersion, service: { target }, services } as const;
  if (set === null) return { ...plan, descriptorSet: "" };
  const kept = create(FileDescriptorSetSchema);
  kept.file = [...(named === null ? set.files : filesOfServices(set, services))];
  return { ...plan, descriptorSet: Buffer.from(toBinary(FileDescriptorSetSchema, kept)).toString("base64") };
}

function chosenServices({ registry }: FileSet, named: readonly string[] | null): string[] {
  const all = [...registry].flatMap((type) => (type.kind === "service" ? [type.typeName] : []));
  if (named === null) {
    const chosen = all.filter((name) => !isInfrastructure(name));
    if (chosen.length === 0) throw unusable("its descriptor set holds no services");
    return chosen;
  }
  const strange = named.find((name) => registry.getService(name) === undefined);
  if (strange !== undefined) {
    const has = all.length === 0 ? "it has none" : `it has ${listed(all)}`;
    throw unusable(`it has no service "${shortened(strange, 200)}"; ${has}`);
  }
  return [...named];
}

/** One service's name, else the package all of them share, else the host. */
function titleOf(services: readonly string[], target: string | null): string {
  const host = target === null ? "grpc" : new URL(target.replace(/^grpc/, "http")).hostname;
  const [first, ...others] = services;
  if (first === undefined) return host;
  if (others.length === 0) return first.slice(first.lastIndexOf(".") + 1);
  const packageOf = (name: string) => name.split(".").slice(0, -1);
  const shared = others.reduce((names, other) => {
    const theirs = packageOf(other);
    const differs = names.findIndex((name, at) => name !== theirs[at]);
    return differs < 0 ? names : names.slice(0, differs);
  }, packageOf(first));
  return shared.join(".") || host;
}

function serviceComment(set: FileSet | null, name: string, comments: ReadonlyMap<object, string>): string {
  const service = set?.registry.getService(name);
  return service === undefined ? "" : (comments.get(service.proto) ?? "");
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, namesShown).join(", ");
  return names.length > namesShown ? `${shown} and ${names.length - namesShown} more` : shown;
}
