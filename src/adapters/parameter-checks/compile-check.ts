/** Parameters against a tool's input schema. Runs in workers, which the server ends if a foreign schema holds them up. */
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { RE2JS } from "re2js";
import { Failure } from "../../errors/failure.ts";
import { parameterProblemsMax } from "../../limits.ts";
import type { JsonSchema } from "../../ports/adapter.ts";

/** Throws Failure invalid_request naming the fields that do not fit; `subject` opens its text, and is a plural. */
export type CompiledCheck = (parameters: unknown, subject: string) => void;

export interface CompileOptions {
  /** Whether the schema was brought into shape by us, as 2020-12: judging it again costs more than compiling it. */
  readonly isProven: boolean;
}

/** Metaschemas are compiled once, and only where foreign schemas are judged. */
const judges: { [dialect in Dialect]?: Ajv | Ajv2020 } = {};

/**
 * Draft-07 when `$schema` says so (draft-06 alike), else 2020-12 (2019-09 alike). An own Ajv for each schema, so that forgetting the
 * check frees everything it compiled. Throws Failure invalid_request when the schema cannot be used.
 */
export function compileCheck(schema: JsonSchema, { isProven }: CompileOptions): CompiledCheck {
  const dialect = isProven ? "2020-12" : dialectOf(schema);
  if (!isProven) requireWellFormed(schema, dialect);
  const ajv = create(dialect, {
    strict: false,
    allErrors: true,
    validateSchema: false,
    meta: false,
    logger: false,
    ownProperties: true,
    inlineRefs: false,
    // Optimizing the code takes more than half of the time, and checks are no quicker for it.
    code: { regExp: Object.assign(linearRegExp, { code: "linearRegExp" }), optimize: false },
  });
  addFormats.default(ajv);
  const validate = compile(ajv, schema);
  return (parameters, subject) => {
    if (!fits(validate, parameters, subject)) throw unfit(subject, validate.errors ?? []);
  };
}

function fits(validate: ValidateFunction, parameters: unknown, subject: string): boolean {
  try {
    return validate(parameters) === true;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new Failure("invalid_request", `${subject} cannot be checked: they or their schema nest without end`);
  }
}

type Dialect = "draft-07" | "2020-12";

function dialectOf(schema: JsonSchema): Dialect {
  const named = typeof schema === "object" ? schema.$schema : undefined;
  if (named === undefined) return "2020-12";
  if (typeof named === "string") {
    if (/^https?:\/\/json-schema\.org\/draft-0[67]\/schema#?$/.test(named)) return "draft-07";
    if (/^https?:\/\/json-schema\.org\/draft\/(?:2019-09|2020-12)\/schema#?$/.test(named)) return "2020-12";
  }
  throw unusable("its $schema is neither draft-07 nor 2020-12");
}

function create(dialect: Dialect, options: Options): Ajv | Ajv2020 {
  return dialect === "draft-07" ? new Ajv(options) : new Ajv2020(options);
}

function requireWellFormed(schema: JsonSchema, dialect: Dialect): void {
  judges[dialect] ??= create(dialect, { strict: false, logger: false });
  const judge = judges[dialect];
  // Without its `$schema`: Ajv would look for the metaschema under exactly that name, and dialects are spelled in many ways.
  const judged = typeof schema === "object" ? { ...schema, $schema: undefined } : schema;
  if (judge.validateSchema(judged as object) === true) return;
  const [first] = judge.errors ?? [];
  throw unusable(`it is malformed at "${first?.instancePath ?? ""}": ${first?.message ?? "it is no JSON Schema"}`);
}

function compile(ajv: Ajv | Ajv2020, schema: JsonSchema): ValidateFunction {
  try {
    return ajv.compile(schema as object);
  } catch (error) {
    if (error instanceof RangeError) throw error;
    throw unusable(error instanceof Error ? error.message : "unknown reason");
  }
}

export function unusable(reason: string): Failure {
  return new Failure("invalid_request", `The tool's input schema cannot be used: ${reason.slice(0, 200)}`);
}

/** Linear time where RE2 knows the syntax; look-around and back references fall back to the engine, under the worker's time limit. */
function linearRegExp(pattern: string, flags: string): { test(text: string): boolean; toString(): string } {
  try {
    const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern));
    // Ajv tells compiled patterns apart by their text: without it all patterns of a schema would be the first one.
    return { test: (text) => compiled.matcher(text).find(), toString: () => pattern };
  } catch {
    return new RegExp(pattern, flags);
  }
}

function unfit(subject: string, errors: readonly ErrorObject[]): Failure {
  const problems = new Map<string, { field: string; description: string }>();
  for (const error of errors) {
    const description = describe(error);
    const place = error.instancePath === "" ? "the parameters" : error.instancePath;
    const text = `${place} ${description}`;
    if (!problems.has(text))
      problems.set(text, { field: error.instancePath.slice(1).replaceAll("/", "."), description });
    if (problems.size >= parameterProblemsMax) break;
  }
  return new Failure("invalid_request", `${subject} do not fit: ${[...problems.keys()].join("; ")}`, {
    fields: [...problems.values()],
  });
}

function describe({ keyword, params, message }: ErrorObject): string {
  switch (keyword) {
    case "additionalProperties":
    case "unevaluatedProperties":
      return `may not have property "${String(params.additionalProperty ?? params.unevaluatedProperty).slice(0, 80)}"`;
    case "enum":
      return `must be one of ${listed(params.allowedValues)}`;
    case "required":
      return `must have property "${String(params.missingProperty)}"`;
    case "const":
      return `must be ${JSON.stringify(params.allowedValue)}`;
    default:
      return (message ?? "does not fit").slice(0, 300);
  }
}

function listed(values: unknown): string {
  const all = Array.isArray(values) ? values : [];
  const shown = all.slice(0, 10).map((value) => JSON.stringify(value).slice(0, 80));
  return all.length > shown.length ? `${shown.join(", ")} and ${all.length - shown.length} more` : shown.join(", ");
}
