/**
 * JSON Schemas that others wrote: of modules, adapters and tools. A hostile schema or value may cost a refusal, never the
 * event loop: size, depth, unfolded size and number of subschemas are bounded before compiling, the work they make of a value
 * before checking, patterns run on RE2 (linear time), `uniqueItems` is one pass, and no reference leaves the document.
 *
 * Messages are made from the schema's side only. They never repeat a value, so they are fit for secrets.
 */
import { createHash } from "node:crypto";
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { LRUCache } from "lru-cache";
import { schemaProblemsMax, schemasCompiledMax } from "../limits.ts";
import { linearPatterns } from "./pattern.ts";
import { formatPointer, parsePointer } from "./pointer.ts";
import { schemaFault, subschemasFault } from "./schema-bounds.ts";
import { effortFault } from "./schema-effort.ts";
import { uniqueItems } from "./unique-items.ts";

export interface Problem {
  /** JSON Pointer into the value. */
  readonly path: string;
  readonly message: string;
}

type Compiled = { readonly check: ValidateFunction } | { readonly fault: string };

const compiled = new LRUCache<string, Compiled>({ max: schemasCompiledMax });

/**
 * What is wrong with `value`, at most `schemaProblemsMax` places; empty when it is valid. A schema that cannot be used is one
 * problem with path `""`. Draft-07 when `$schema` says so (draft-06 alike), else 2020-12 (2019-09 alike).
 */
export function validate(schema: unknown, value: unknown): readonly Problem[] {
  const entry = compileSchema(schema);
  if ("fault" in entry) return [{ path: "", message: `cannot be checked: ${entry.fault}` }];
  const fault = effortFault(schema, value);
  if (fault !== undefined) return [{ path: "", message: `cannot be checked: ${fault}` }];
  try {
    if (entry.check(value) === true) return [];
  } catch (error) {
    // A schema that refers to itself without consuming any of the value.
    if (error instanceof RangeError)
      return [{ path: "", message: "cannot be checked: the schema refers to itself without end" }];
    throw error;
  }
  return problemsOf(entry.check.errors ?? []);
}

/** Why a schema cannot be used; undefined when it can. */
export function schemaProblem(schema: unknown): string | undefined {
  const entry = compileSchema(schema);
  return "fault" in entry ? entry.fault : undefined;
}

function compileSchema(schema: unknown): Compiled {
  const fault = schemaFault(schema);
  if (fault !== undefined) return { fault };
  const digest = createHash("sha256").update(JSON.stringify(schema)).digest("base64");
  const known = compiled.get(digest);
  if (known !== undefined) return known;
  const entry = compileNew(schema as object | boolean);
  compiled.set(digest, entry);
  return entry;
}

/** Metaschemas are compiled once; a foreign schema gets an instance of its own, so that no `$id` can reach another. */
const dialects = {
  "draft-07": { judge: new Ajv({ strict: false, logger: false }), create: (options: Options) => new Ajv(options) },
  "2020-12": {
    judge: new Ajv2020({ strict: false, logger: false }),
    create: (options: Options) => new Ajv2020(options),
  },
};

function compileNew(schema: object | boolean): Compiled {
  const fault = subschemasFault(schema);
  if (fault !== undefined) return { fault };
  const dialect = dialectOf(schema);
  if (dialect === undefined) return { fault: "the schema's $schema is neither draft-07 nor 2020-12" };
  const { judge, create } = dialects[dialect];
  // Without its `$schema`: Ajv would look for the metaschema under exactly that name, and dialects are spelled in many ways.
  const judged = typeof schema === "object" ? { ...schema, $schema: undefined } : schema;
  if (judge.validateSchema(judged as object) !== true) {
    const at = judge.errors?.[0];
    return {
      fault: `the schema is malformed at "${at?.instancePath ?? ""}": ${at?.message ?? "it is no JSON Schema"}`,
    };
  }
  const ajv = create({
    strict: false,
    allErrors: true,
    logger: false,
    // Without it an inherited `toString` would satisfy `required`.
    ownProperties: true,
    meta: false,
    validateSchema: false,
    // Inlined, a definition is compiled once for each reference to it: only those of a few keywords.
    inlineRefs: 8,
    // Optimizing the code takes more than half of the time, and checks are no quicker for it.
    code: { regExp: linearPatterns(), optimize: false },
  });
  addFormats.default(ajv);
  ajv.removeKeyword("uniqueItems");
  ajv.addKeyword(uniqueItems);
  try {
    return { check: ajv.compile(schema) };
  } catch (error) {
    return { fault: compileFault(error) };
  }
}

function dialectOf(schema: object | boolean): keyof typeof dialects | undefined {
  const named = typeof schema === "object" && "$schema" in schema ? schema.$schema : undefined;
  if (named === undefined) return "2020-12";
  if (typeof named !== "string") return undefined;
  if (/^https?:\/\/json-schema\.org\/draft-0[67]\/schema#?$/.test(named)) return "draft-07";
  if (/^https?:\/\/json-schema\.org\/draft\/(?:2019-09|2020-12)\/schema#?$/.test(named)) return "2020-12";
  return undefined;
}

/** Texts of the library that help the schema's author; they quote the schema, never a value. */
function compileFault(error: unknown): string {
  if (error instanceof RangeError) return "the schema refers to itself without end";
  const reason = error instanceof Error ? error.message : "";
  if (reason.startsWith("can't resolve reference")) return `the schema ${reason.replace(/ from id .*$/, "")}`;
  return `the schema cannot be compiled: ${reason.slice(0, 200)}`;
}

function problemsOf(errors: readonly ErrorObject[]): readonly Problem[] {
  const seen = new Map<string, Problem>();
  let rest = 0;
  for (const error of errors) {
    if (error.keyword === "if") continue;
    const problem = problemOf(error);
    const key = `${problem.path}\n${problem.message}`;
    if (seen.has(key)) continue;
    if (seen.size < schemaProblemsMax) seen.set(key, problem);
    else rest += 1;
  }
  const problems = [...seen.values()];
  return rest === 0 ? problems : [...problems, { path: "", message: `has ${rest} more problems` }];
}

function problemOf(error: ErrorObject): Problem {
  const at = (key: unknown): string => error.instancePath + formatPointer([String(key).toWellFormed()]);
  switch (error.keyword) {
    case "required":
    case "dependentRequired":
      return { path: at(error.params.missingProperty), message: "is required" };
    case "additionalProperties":
      return { path: at(error.params.additionalProperty), message: "is not allowed by the schema" };
    case "unevaluatedProperties":
      return { path: at(error.params.unevaluatedProperty), message: "is not allowed by the schema" };
    case "false schema":
      return { path: error.instancePath, message: "is not allowed by the schema" };
    default:
      return { path: error.instancePath, message: error.message ?? "does not match the schema" };
  }
}

/** `"/a/b" must be string; "" has 3 more problems` as one sentence part. */
export function describeProblems(problems: readonly Problem[]): string {
  return problems.map(({ path, message }) => (path === "" ? message : `"${path}" ${message}`)).join("; ");
}

/** For google.rpc.BadRequest: fields as dotted paths under `root`. */
export function problemFields(problems: readonly Problem[], root: string): { field: string; description: string }[] {
  return problems.map(({ path, message }) => ({
    field: [root, ...(parsePointer(path) ?? [])].join("."),
    description: message,
  }));
}
