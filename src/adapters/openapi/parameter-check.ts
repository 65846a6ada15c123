/** Parameters against a tool's input schema. Runs in the definition worker, which the server ends if a foreign schema holds it up. */
import type { ErrorObject, ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { RE2JS } from "re2js";
import { Failure } from "../../errors/failure.ts";
import { parameterProblemsMax } from "../../limits.ts";
import type { Schema } from "./plan.ts";

export type ParameterCheck = (parameters: unknown) => void;

/** An own Ajv for each schema, so that forgetting the check frees everything it compiled. */
export function compileCheck(schema: Schema): ParameterCheck {
  const ajv = new Ajv2020({
    strict: false,
    allErrors: true,
    // Foreign schemas have been brought into shape by the converter; checking them again costs more than compiling.
    validateSchema: false,
    meta: false,
    logger: false,
    ownProperties: true,
    inlineRefs: false,
    code: { regExp: Object.assign(linearRegExp, { code: "linearRegExp" }) },
  });
  addFormats.default(ajv);
  const validate = compile(ajv, schema);
  return (parameters) => {
    if (!validate(parameters)) throw unfit(validate.errors ?? []);
  };
}

function compile(ajv: Ajv2020, schema: Schema): ValidateFunction {
  try {
    return ajv.compile(schema as object);
  } catch (error) {
    if (error instanceof RangeError) throw error;
    throw new Failure(
      "invalid_request",
      `The tool's input schema cannot be used: ${error instanceof Error ? error.message.slice(0, 200) : "unknown reason"}`,
    );
  }
}

/** Linear time where RE2 knows the syntax; look-around and back references fall back to the engine, under the worker's time limit. */
function linearRegExp(pattern: string, flags: string): { test(text: string): boolean } {
  try {
    const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern));
    return { test: (text) => compiled.matcher(text).find() };
  } catch {
    return new RegExp(pattern, flags);
  }
}

function unfit(errors: readonly ErrorObject[]): Failure {
  const problems = new Map<string, { field: string; description: string }>();
  for (const error of errors) {
    const description = describe(error);
    const place = error.instancePath === "" ? "the parameters" : error.instancePath;
    const text = `${place} ${description}`;
    if (!problems.has(text))
      problems.set(text, { field: error.instancePath.slice(1).replaceAll("/", "."), description });
    if (problems.size >= parameterProblemsMax) break;
  }
  return new Failure("invalid_request", `Parameters do not fit: ${[...problems.keys()].join("; ")}`, {
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
