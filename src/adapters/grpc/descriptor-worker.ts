/**
 * The child process that reads descriptors and messages: the only place where foreign protobuf is parsed. It never sees a secret, and has
 * no business with the network.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import { LRUCache } from "lru-cache";
import { Failure } from "../../errors/failure.ts";
import { grpcPlansCachedCharactersMax } from "../../limits.ts";
import type { Definition, ToolSchemas } from "../../ports/adapter.ts";
import { serveWorker } from "../worker/serve-worker.ts";
import { type Comments, readComments } from "./comments.ts";
import { defineService } from "./define-service.ts";
import { type FileSet, rereadFileSet } from "./file-set.ts";
import { requestSchema, resultSchema } from "./message-schema.ts";
import { decodeAnswers, encodeRequest, type Method } from "./messages.ts";
import { type Plan, planVersion, type ReadyTool, type ServicePlan } from "./plan.ts";
import { readDocument } from "./read-document.ts";
import { type Reflected, readReflected } from "./reflected.ts";
import { type FieldViolation, readFieldViolations } from "./status-details.ts";
import { methodPath, toolsOf } from "./tools.ts";

/** What the worker lacks to answer; the server supplies it and asks again. */
export type Known<T> = { readonly value: T } | { readonly lacks: "plan" };

export interface DocumentInput {
  readonly text: string;
}
/** All of a document that says whom to ask, and whether. */
export interface DocumentHead {
  readonly target: string | null;
  readonly services: readonly string[] | null;
  readonly reflection: boolean;
}
export interface BytesInput {
  readonly bytes: Uint8Array;
}
export interface LoadInput {
  readonly hash: string;
  readonly plan: string;
}
export interface PlanInput {
  readonly hash: string;
}
export interface ToolInput extends PlanInput {
  readonly toolId: string;
}
export interface EncodeInput extends ToolInput {
  readonly parameters: unknown;
}
export interface DecodeInput extends ToolInput {
  readonly messages: readonly Uint8Array[];
}

interface Loaded {
  readonly plan: Plan;
  readonly set: FileSet | null;
  readonly tools: ReadonlyMap<string, DescMethod>;
  readonly comments: Comments;
}

const plans = new LRUCache<string, Loaded>({ maxSize: grpcPlansCachedCharactersMax });

function define({ text }: DocumentInput): Definition {
  return defineService(readDocument(text));
}

function head({ text }: DocumentInput): DocumentHead {
  const { target, services, reflection } = readDocument(text);
  return { target, services, reflection };
}

function reflected({ bytes }: BytesInput): Reflected {
  return readReflected(bytes);
}

function violations({ bytes }: BytesInput): readonly FieldViolation[] {
  return readFieldViolations(bytes);
}

function load({ hash, plan: text }: LoadInput): null {
  const plan = JSON.parse(text) as Plan;
  if (plan.version !== planVersion) throw new Failure("internal", `A plan of version ${plan.version} cannot be read`);
  const set = plan.descriptorSet === "" ? null : rereadFileSet(Buffer.from(plan.descriptorSet, "base64"));
  const loaded: Loaded = {
    plan,
    set,
    tools: set === null ? new Map() : toolsOf(set.registry, plan.services).byId,
    comments: readComments(set?.files ?? []),
  };
  // One larger than the whole allowance is still kept while it is the only one: without it nothing could be called.
  plans.set(hash, loaded, { size: Math.max(1, Math.min(text.length, grpcPlansCachedCharactersMax)) });
  return null;
}

function service({ hash }: PlanInput): Known<ServicePlan> {
  const loaded = plans.get(hash);
  return loaded ? { value: loaded.plan.service } : { lacks: "plan" };
}

function describe(input: ToolInput): Known<ToolSchemas> {
  return withTool(input, ({ method }, comments) => ({
    inputSchema: requestSchema(method, comments),
    outputSchema: resultSchema(method, comments),
  }));
}

function ready(input: ToolInput): Known<ReadyTool> {
  return withTool(input, ({ method }, comments) => ({
    path: methodPath(method),
    kind: method.methodKind === "unary" ? "unary" : "server_streaming",
    inputSchema: requestSchema(method, comments),
  }));
}

function encode(input: EncodeInput): Known<Uint8Array> {
  return withTool(input, (method) => encodeRequest(method, input.parameters));
}

function decode(input: DecodeInput): Known<string> {
  return withTool(input, (method) => decodeAnswers(method, input.messages));
}

function withTool<T>({ hash, toolId }: ToolInput, read: (method: Method, comments: Comments) => T): Known<T> {
  const loaded = plans.get(hash);
  if (!loaded) return { lacks: "plan" };
  const method = loaded.tools.get(toolId);
  if (!method || !loaded.set) throw new Failure("not_found", `No tool "${toolId}"`);
  return { value: read({ registry: loaded.set.registry, method, toolId }, loaded.comments) };
}

serveWorker({ define, head, reflected, violations, load, service, describe, ready, encode, decode });
