/** The child process that checks parameters against foreign schemas. It sees no secret, and has no business with the network. */
import { LRUCache } from "lru-cache";
import { measure } from "../../json/safety.ts";
import { schemaFault } from "../../json/schema-bounds.ts";
import { parameterChecksCachedMax, parameterChecksCachedWeightMax, schemaCharactersMax } from "../../limits.ts";
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

const checks = new LRUCache<string, CompiledCheck>({
  max: parameterChecksCachedMax,
  maxSize: parameterChecksCachedWeightMax,
});

/** Apart from checking, because the first compilation of a large schema takes longer than any check may. */
function compile({ key, schema }: CompileInput): null {
  const fault = schemaFault(schema);
  if (fault !== undefined) throw unusable(fault);
  const compiled = compileCheck(schema, { isProven: false });
  warmUp(compiled);
  checks.set(key, compiled, { size: measure(schema, schemaCharactersMax).weight });
  return null;
}

/** The engine reads a function when it is first run, which takes a second where thousands of properties are checked. */
function warmUp(compiled: CompiledCheck): void {
  try {
    compiled(undefined, "");
  } catch {
    // Nothing does not fit, as a rule.
  }
}

function check({ key, parameters, subject }: CheckInput): Checked {
  const compiled = checks.get(key);
  if (compiled === undefined) return { lacks: "schema" };
  compiled(parameters, subject);
  return { lacks: null };
}

serveWorker({ compile, check });
