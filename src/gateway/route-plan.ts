/**
 * A row's route, worked out once: the path as the router writes it, how path, query and body become one input object, and
 * how the output becomes the answer.
 *
 * Of a name that comes twice the path wins over the query and the query over the body, so that no body can change which
 * record its URL names.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { Failure } from "../errors/failure.ts";
import { parseJson } from "../json/parse.ts";
import type { Operation } from "../operations/operation.ts";
import { sendJson } from "./answer.ts";
import { jsonMediaTypes } from "./media-type.ts";

export interface RoutePlan {
  readonly row: Operation;
  /** `/processes/:id` */
  readonly url: string;
  /** Media types of the body; undefined when none is read. */
  readonly mediaTypes: readonly string[] | undefined;
  /** Throws Failure. `bytes` are empty when there was no body. */
  input(request: FastifyRequest, bytes: Uint8Array): Record<string, unknown>;
  answer(reply: FastifyReply, output: unknown): void;
}

export function routePlan(row: Operation): RoutePlan {
  const { route } = row;
  const pathFields = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
  const queryFields = route.query ?? [];
  const input = shapeOf(row.input);
  const takesIfMatch = input.properties.has("ifMatch");
  const fromUrl = new Set([...pathFields, ...queryFields]);
  const bodyIsOptional = [...input.required].every((name) => fromUrl.has(name));
  const readFields = bodyReader(row, bodyIsOptional);
  return {
    row,
    url: route.path.replace(/\{(\w+)\}/g, ":$1"),
    mediaTypes: route.body === "none" ? undefined : route.body === "fields" ? jsonMediaTypes : route.body.mediaTypes,
    input(request, bytes) {
      const input = readFields(request, bytes);
      if (takesIfMatch) input.ifMatch = request.headers["if-match"];
      const query = request.query as Readonly<Record<string, unknown>>;
      for (const name of queryFields) {
        const value = query[name];
        if (value === undefined) continue;
        if (typeof value !== "string") throw repeated(name);
        input[name] = value;
      }
      const path = request.params as Readonly<Record<string, string>>;
      for (const name of pathFields) input[name] = path[name];
      return input;
    },
    answer: answerOf(row),
  };
}

/**
 * Two names of fields stand for headers: input `ifMatch` is If-Match and never read from a body, output `etag` is ETag and
 * leaves the JSON. What a schema holds is read from its JSON Schema, which sees through transforms.
 */
function shapeOf(zod: z.ZodType): { properties: ReadonlySet<string>; required: ReadonlySet<string> } {
  const schema = z.toJSONSchema(zod, { io: "input", unrepresentable: "any" });
  return { properties: new Set(Object.keys(schema.properties ?? {})), required: new Set(schema.required ?? []) };
}

function bodyReader(
  row: Operation,
  isOptional: boolean,
): (request: FastifyRequest, bytes: Uint8Array) => Record<string, unknown> {
  const { body } = row.route;
  if (body === "none") return () => ({});
  if (body !== "fields") {
    return (request, bytes) => {
      if (bytes.length === 0) throw missingBody(request);
      return { [body.field]: parseJson(bytes) };
    };
  }
  return (request, bytes) => {
    if (bytes.length === 0) {
      if (isOptional) return {};
      throw missingBody(request);
    }
    const value = parseJson(bytes);
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new Failure("invalid_request", "The body must be a JSON object");
    }
    return value as Record<string, unknown>;
  };
}

function missingBody(request: FastifyRequest): Failure {
  return request.headers["content-type"] === undefined
    ? new Failure("unsupported_media_type", 'A JSON body with Content-Type "application/json" is required')
    : new Failure("invalid_request", "The body is empty; JSON is required");
}

function repeated(name: string): Failure {
  const description = "given more than once";
  return new Failure("invalid_request", `Query parameter "${name}" is ${description}`, {
    fields: [{ field: name, description }],
  });
}

function answerOf(row: Operation): (reply: FastifyReply, output: unknown) => void {
  const { status, answer } = row.route;
  if (status === 204) return (reply) => void reply.code(204).send();
  const hasEtag = shapeOf(row.output).properties.has("etag");
  if (answer === undefined) {
    if (!hasEtag) return (reply, output) => sendJson(reply, status, output);
    return (reply, output) => {
      const { etag, ...body } = output as { readonly etag?: unknown };
      reply.header("etag", etag);
      sendJson(reply, status, body);
    };
  }
  const { field, mediaType } = answer;
  if (mediaType === "application/json") {
    return (reply, output) => {
      const fields = output as Readonly<Record<string, unknown>>;
      if (hasEtag) reply.header("etag", fields.etag);
      sendJson(reply, status, fields[field]);
    };
  }
  const contentType = `${mediaType}; charset=utf-8`;
  return (reply, output) => {
    const text = (output as Readonly<Record<string, unknown>>)[field];
    reply.code(status).header("content-type", contentType).header("x-content-type-options", "nosniff").send(text);
  };
}
