/**
 * Holds answers of a running server against its own OpenAPI document: operation, status, media type, headers and body must be
 * documented. Objects of answers count as closed, so that a field nobody documented is a problem too.
 */
import { Ajv, type ValidateFunction } from "ajv";
import addFormats from "ajv-formats";
import { catalogue } from "../../../src/errors/catalogue.ts";
import type { FailureKind } from "../../../src/errors/failure.ts";

// biome-ignore lint/suspicious/noExplicitAny: a document is looked into in many places
export type Document = any;

export interface Exchange {
  readonly method: string;
  /** As sent, with query. */
  readonly path: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

interface Template {
  readonly path: string;
  readonly pattern: RegExp;
  readonly methods: Readonly<Record<string, Document>>;
}

/** Headers that belong to HTTP, or say how a browser treats the answer, and to no operation. */
const ambientHeaders = new Set([
  "allow",
  "connection",
  "content-disposition",
  "content-length",
  "content-security-policy",
  "content-type",
  "date",
  "keep-alive",
  "referrer-policy",
  "transfer-encoding",
  "vary",
  "x-accel-buffering",
  "x-content-type-options",
]);

export class Contract {
  /** Statuses seen, by operationId. */
  readonly seen = new Map<string, Set<number>>();
  readonly #document: Document;
  readonly #ajv = new Ajv({ strict: false, allErrors: false });
  readonly #templates: readonly Template[];
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(document: Document) {
    this.#document = document;
    addFormats.default(this.#ajv);
    this.#ajv.addSchema({
      $id: "document",
      components: { schemas: mapObject(document.components.schemas, (schema) => toClosedSchema(schema)) },
    });
    this.#templates = Object.entries(document.paths as Record<string, Record<string, Document>>)
      .map(([path, methods]) => ({ path, methods, pattern: patternOf(path) }))
      // Of templates that match, the one that is literal for longest.
      .sort((a, b) => (literally(a.path) < literally(b.path) ? -1 : 1));
  }

  get operationIds(): readonly string[] {
    return this.#templates.flatMap(({ methods }) => Object.values(methods).map(({ operationId }) => operationId));
  }

  /** Streams have no HEAD. */
  operation(method: string, path: string): Document | undefined {
    const name = (method === "HEAD" ? "GET" : method).toLowerCase();
    const operation = this.#matching(path).find(({ methods }) => methods[name] !== undefined)?.methods[name];
    const isStream = operation?.responses[200]?.content?.["text/event-stream"] !== undefined;
    return method === "HEAD" && isStream ? undefined : operation;
  }

  /** Sentences on what is not as documented; none when all is. */
  problems(exchange: Exchange): string[] {
    const { method, path, status } = exchange;
    const [template] = this.#matching(path);
    const operation = this.operation(method, path);
    const where = `${method} ${path.slice(0, 100)} → ${status}`;
    const found =
      operation === undefined ? this.#ofNoOperation(exchange, template) : this.#ofOperation(exchange, operation);
    return found.map((problem) => `${where}: ${problem}`);
  }

  #matching(path: string): readonly Template[] {
    const bare = path.split(/[?#]/, 1)[0] ?? "";
    return this.#templates.filter(({ pattern }) => pattern.test(bare));
  }

  #ofNoOperation({ method, status, headers, text }: Exchange, template: Template | undefined): string[] {
    if (template !== undefined && method === "OPTIONS" && status === 204) return text === "" ? [] : ["has a body"];
    const expected = template === undefined ? [400, 403, 404, 413, 429, 503] : [400, 403, 405, 413, 429, 503];
    if (!expected.includes(status) && status !== 401) return ["the status is not one of unmatched requests"];
    if (status === 405 && headers.get("allow") === null) return ["there is no Allow"];
    return method === "HEAD" ? [] : this.#errorBody(status, text);
  }

  #ofOperation(exchange: Exchange, operation: Document): string[] {
    const { method, status, text } = exchange;
    const seen = this.seen.get(operation.operationId) ?? new Set();
    this.seen.set(operation.operationId, seen.add(status));
    const response = this.#deref(operation.responses[status]);
    if (response === undefined) return [`the status is not documented: ${text.slice(0, 200)}`];
    const found = this.#headers(exchange.headers, response.headers ?? {});
    if (method === "HEAD") return text === "" ? found : [...found, "has a body"];
    if (response.content === undefined) return text === "" ? found : [...found, "a body is not documented"];
    return [...found, ...this.#body(exchange, response.content, `${operation.operationId} ${status}`)];
  }

  #headers(headers: Headers, documented: Readonly<Record<string, Document>>): string[] {
    const known = new Map(
      Object.entries(documented).map(([name, header]) => [name.toLowerCase(), this.#deref(header)]),
    );
    const found: string[] = [];
    for (const [name, header] of known) {
      const value = headers.get(name);
      if (value === null) {
        if (header.required === true) found.push(`header ${name} is missing`);
        continue;
      }
      const typed = header.schema.type === "integer" && /^-?\d+$/.test(value) ? Number(value) : value;
      const validate = this.#validator(`header ${JSON.stringify(header.schema)}`, header.schema);
      if (!validate(typed)) found.push(`header ${name}: ${this.#ajv.errorsText(validate.errors)}`);
    }
    for (const [name] of headers) {
      const isAmbient = ambientHeaders.has(name) || name.startsWith("access-control-");
      if (!known.has(name) && !isAmbient) found.push(`header ${name} is not documented`);
    }
    return found;
  }

  #body({ headers, status, text }: Exchange, content: Readonly<Record<string, Document>>, key: string): string[] {
    const mediaType = headers.get("content-type")?.split(";", 1)[0]?.trim() ?? "";
    const documented = content[mediaType];
    if (documented === undefined) return [`media type "${mediaType}" is not documented`];
    if (mediaType !== "application/json") return [];
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return ["the body is not JSON"];
    }
    const validate = this.#validator(`${key} ${mediaType}`, documented.schema);
    const found = validate(value) ? [] : [`the body is not as documented: ${this.#ajv.errorsText(validate.errors)}`];
    const isEnvelope = /\/(Error|RateLimitError)$/.test(documented.schema.$ref ?? "");
    return isEnvelope ? [...found, ...this.#errorBody(status, text)] : found;
  }

  /** The code is one that stands for this status. */
  #errorBody(status: number, text: string): string[] {
    let body: { readonly error?: unknown; readonly code?: unknown };
    try {
      body = JSON.parse(text);
    } catch {
      return ["the error is not JSON"];
    }
    const expected = status === 429 ? "error,message,retryAfter" : "error,code";
    if (Object.keys(body).join() !== expected) return [`the error has the fields ${Object.keys(body).join()}`];
    if (status === 429) return [];
    const kind = body.code as FailureKind;
    return catalogue[kind]?.rest === status ? [] : [`the code "${kind}" does not belong to the status`];
  }

  #validator(key: string, schema: Document): ValidateFunction {
    const known = this.#validators.get(key);
    if (known !== undefined) return known;
    const validate = this.#ajv.compile(toClosedSchema(schema));
    this.#validators.set(key, validate);
    return validate;
  }

  #deref(value: Document): Document {
    if (value?.$ref === undefined) return value;
    return value.$ref
      .split("/")
      .slice(1)
      .reduce((part: Document, name: string) => part?.[name], this.#document);
  }
}

/** An OpenAPI 3.0 schema as JSON Schema draft-07; objects with known properties are closed. */
export function toClosedSchema(schema: Document, isClosed = true): Document {
  if (typeof schema !== "object" || schema === null) return schema;
  const { nullable, exclusiveMinimum, exclusiveMaximum, example, $ref, format, discriminator, ...rest } = schema;
  if ($ref !== undefined) return { $ref: `document${$ref}` };
  const deeper = (one: Document): Document => toClosedSchema(one, isClosed);
  const made: Document = { ...rest };
  if (format === "date-time") made.format = format;
  if (exclusiveMinimum === true) {
    made.exclusiveMinimum = rest.minimum;
    delete made.minimum;
  }
  if (exclusiveMaximum === true) {
    made.exclusiveMaximum = rest.maximum;
    delete made.maximum;
  }
  if (rest.properties !== undefined) {
    made.properties = mapObject(rest.properties, deeper);
    if (isClosed && rest.additionalProperties === undefined) made.additionalProperties = false;
  }
  if (typeof rest.additionalProperties === "object") made.additionalProperties = deeper(rest.additionalProperties);
  if (rest.items !== undefined) made.items = deeper(rest.items);
  for (const keyword of ["oneOf", "anyOf", "allOf"]) {
    if (rest[keyword] !== undefined) made[keyword] = rest[keyword].map(deeper);
  }
  return nullable === true ? { anyOf: [{ type: "null" }, made] } : made;
}

function mapObject(object: Record<string, Document>, map: (value: Document) => Document): Record<string, Document> {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, map(value)]));
}

function patternOf(path: string): RegExp {
  const literal = path.replace(/[.*+?^$()|[\]\\]/g, "\\$&");
  return new RegExp(`^${literal.replace(/\{\w+\}/g, "[^/]+")}$`);
}

/** Parameters sort behind everything literal. */
function literally(path: string): string {
  return path.replace(/\{\w+\}/g, "\uffff");
}
