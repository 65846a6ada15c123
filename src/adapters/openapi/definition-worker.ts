/** The child process that reads documents and checks parameters. It never sees a secret, and has no business with the network. */

import { LRUCache } from "lru-cache";
import { Failure } from "../../errors/failure.ts";
import { parameterChecksCachedMax, plansCachedCharactersMax } from "../../limits.ts";
import type { Definition, ToolSchemas } from "../../ports/adapter.ts";
import { type CompiledCheck, compileCheck } from "../parameter-checks/compile-check.ts";
import { serveWorker } from "../worker/serve-worker.ts";
import { definePlan } from "./define-plan.ts";
import { type Plan, type PreparedRequest, planVersion, type Schema, type ServicePlan, type ToolPlan } from "./plan.ts";
import { prepareRequest } from "./prepare-request.ts";
import { readDocument } from "./read-document.ts";
import { closure } from "./schema-closure.ts";

/** What the worker lacks to answer; the server supplies it and asks again. */
export type Lacking = { readonly lacks: "plan" | "check" };
export type Known<T> = { readonly value: T } | Lacking;

export interface DefineInput {
  readonly text: string;
  readonly url: string | undefined;
}
export interface LoadInput {
  readonly hash: string;
  readonly plan: string;
}
export interface ToolInput {
  readonly hash: string;
  readonly toolId: string;
}
export interface PrepareInput extends ToolInput {
  readonly parameters: unknown;
}

interface LoadedPlan {
  readonly plan: Plan;
  readonly tools: ReadonlyMap<string, ToolPlan>;
}

// A plan larger than the whole allowance is still kept while it is the only one: without it nothing could be called.
const plans = new LRUCache<string, LoadedPlan>({ maxSize: plansCachedCharactersMax });
const checks = new LRUCache<string, CompiledCheck>({ max: parameterChecksCachedMax });

async function define({ text, url }: DefineInput): Promise<Definition> {
  return definePlan(await readDocument(text), url);
}

function load({ hash, plan: text }: LoadInput): null {
  const plan = JSON.parse(text) as Plan;
  if (plan.version !== planVersion) throw new Failure("internal", `A plan of version ${plan.version} cannot be read`);
  const loaded = { plan, tools: new Map(plan.tools.map((tool) => [tool.id, tool])) };
  plans.set(hash, loaded, { size: Math.max(1, Math.min(text.length, plansCachedCharactersMax)) });
  return null;
}

function service({ hash }: { readonly hash: string }): Known<ServicePlan> {
  const loaded = plans.get(hash);
  return loaded ? { value: loaded.plan.service } : { lacks: "plan" };
}

function describe(input: ToolInput): Known<ToolSchemas> {
  const loaded = plans.get(input.hash);
  if (!loaded) return { lacks: "plan" };
  const tool = toolOf(loaded, input.toolId);
  return {
    value: {
      inputSchema: complete(tool.inputSchema, loaded.plan),
      outputSchema: complete(tool.outputSchema, loaded.plan),
    },
  };
}

/** Apart from checking, because the first compilation of a large schema takes longer than any check may. */
function compile(input: ToolInput): Known<null> {
  const loaded = plans.get(input.hash);
  if (!loaded) return { lacks: "plan" };
  const schema = complete(toolOf(loaded, input.toolId).inputSchema, loaded.plan);
  checks.set(checkKey(input), compileCheck(schema, { isProven: true }));
  return { value: null };
}

function prepare(input: PrepareInput): Known<PreparedRequest> {
  const loaded = plans.get(input.hash);
  if (!loaded) return { lacks: "plan" };
  const tool = toolOf(loaded, input.toolId);
  const check = checks.get(checkKey(input));
  if (!check) return { lacks: "check" };
  const parameters = input.parameters ?? {};
  check(parameters, "Parameters");
  return { value: prepareRequest(tool, parameters) };
}

function toolOf({ tools }: LoadedPlan, toolId: string): ToolPlan {
  const tool = tools.get(toolId);
  if (!tool) throw new Failure("not_found", `No tool "${toolId}"`);
  return tool;
}

function checkKey({ hash, toolId }: ToolInput): string {
  return `${hash} ${toolId}`;
}

function complete(schema: Schema, { schemas }: Plan): Schema {
  const needed = closure(schema, schemas);
  const own = typeof schema === "boolean" ? (schema ? {} : { not: {} }) : schema;
  const base = { $schema: "https://json-schema.org/draft/2020-12/schema", ...own };
  return Object.keys(needed).length > 0 ? { ...base, $defs: needed } : base;
}

serveWorker({ define, load, service, describe, compile, prepare });
