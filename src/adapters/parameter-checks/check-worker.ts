/** The child process that checks parameters against foreign schemas. It sees no secret, and has no business with the network. */
import { LRUCache } from "lru-cache";
import { schemaFault } from "../../json/schema-bounds.ts";
import { parameterChecksCachedMax, workerRequestsWaitingMax } from "../../limits.ts";
import type { JsonSchema } from "../../ports/adapter.ts";
import { serveWorker } from "../worker/serve-worker.ts";
import { type CompiledCheck, compileCheck, unusable } from "./compile-check.ts";

/** `lacks`: the server supplies the schema and asks again. */
export type Checked = { readonly lacks: "schema" } | { readonly lacks: null };

export interface CompileInput {
  readonly key: string;
  readonly schema: JsonSchema;
}

export interface CheckInput {
  readonly key: string;
  readonly parameters: unknown;
  readonly subject: string;
}

const checks = new LRUCache<string, CompiledCheck>({ max: parameterChecksCachedMax });
/** Compiled for a check that is on its way: many schemas at once must not push each other out before they were of any use. */
const unused = new LRUCache<string, CompiledCheck>({ max: workerRequestsWaitingMax });

/** Apart from checking, because the first compilation of a large schema takes longer than any check may. */
function compile({ key, schema }: CompileInput): null {
  const fault = schemaFault(schema);
  if (fault !== undefined) throw unusable(fault);
  unused.set(key, compileCheck(schema, { isProven: false }));
  return null;
}

function check({ key, parameters, subject }: CheckInput): Checked {
  const compiled = checks.get(key) ?? unused.get(key);
  if (compiled === undefined) return { lacks: "schema" };
  if (unused.delete(key)) checks.set(key, compiled);
  compiled(parameters, subject);
  return { lacks: null };
}

serveWorker({ compile, check });
