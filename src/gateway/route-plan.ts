/**
 * A row's route, worked out once: the path as the router writes it, how path, query and body become one input object, and
 * how the output becomes the answer. If-Match and ETag are fields of a row that travel as headers.
 *
 * Of a name that comes twice the path wins over the query and the query over the body, so that no body can change which
 * record its URL names.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { Failure } from "../errors/failure.ts";
import { parseJson } from "../json/parse.ts";
import type { BytesAnswer, Operation, Route, StreamOperation } from "../operations/operation.ts";
import { allowKeeping, sendBytes, sendJson } from "./answer.ts";
import { fromIfMatch, isHeldAlready, toEtag } from "./entity-tag.ts";
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
  const pathFields = fieldsOfPath(route.path);
  const queryFields = route.query ?? [];
  const fromElsewhere = new Set([
    ...pathFields,
    ...queryFields,
    ...(route.ifMatch === undefined ? [] : [route.ifMatch]),
  ]);
  const bodyIsOptional = requiredFields(row).every((name) => fromElsewhere.has(name));
  const readFields = bodyReader(row, bodyIsOptional);
  return {
    row,
    url: urlOf(route.path),
    mediaTypes: route.body === "none" ? undefined : route.body === "fields" ? jsonMediaTypes : route.body.mediaTypes,
    input(request, bytes) {
      const input = readFields(request, bytes);
      if (route.ifMatch !== undefined) input[route.ifMatch] = fromIfMatch(request.headers["if-match"]);
      addQuery(input, request, queryFields);
      addPath(input, request, pathFields);
      return input;
    },
    answer: answerOf(row),
  };
}

export interface StreamPlan {
  readonly row: StreamOperation;
  readonly url: string;
  /** Throws Failure. */
  input(request: FastifyRequest): Record<string, unknown>;
}

export function streamPlan(row: StreamOperation): StreamPlan {
  const { path, query = [], resume } = row.route;
  const pathFields = fieldsOfPath(path);
  return {
    row,
    url: urlOf(path),
    input(request) {
      const input: Record<string, unknown> = {};
      addQuery(input, request, query);
      // Newer than what the URL says: a browser that comes back adds it to the URL it was given at first.
      const lastEventId = request.headers["last-event-id"];
      if (typeof lastEventId === "string" && lastEventId !== "") input[resume] = lastEventId;
      addPath(input, request, pathFields);
      return input;
    },
  };
}

/** Read from the JSON Schema of the input, which sees through transforms. */
function requiredFields(row: Operation): readonly string[] {
  return z.toJSONSchema(row.input, { io: "input", unrepresentable: "any" }).required ?? [];
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

function fieldsOfPath(path: string): readonly string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
}

function urlOf(path: string): string {
  return path.replace(/\{(\w+)\}/g, ":$1");
}

function addQuery(input: Record<string, unknown>, request: FastifyRequest, names: readonly string[]): void {
  const query = request.query as Readonly<Record<string, unknown>>;
  for (const name of names) {
    const value = query[name];
    if (value === undefined) continue;
    if (typeof value !== "string") throw repeated(name);
    input[name] = value;
  }
}

function addPath(input: Record<string, unknown>, request: FastifyRequest, names: readonly string[]): void {
  const path = request.params as Readonly<Record<string, string>>;
  for (const name of names) input[name] = path[name];
}

function repeated(name: string): Failure {
  const description = "given more than once";
  return new Failure("invalid_request", `Query parameter "${name}" is ${description}`, {
    fields: [{ field: name, description }],
  });
}

function answerOf(row: Operation): (reply: FastifyReply, output: unknown) => void {
  const { method, status, answer, bytes, etag } = row.route;
  if (status === 204) return (reply) => void reply.code(204).send();
  const send = bytes === undefined ? bodyOf(status, answer) : bytesOf(status, bytes);
  if (etag === undefined) return send;
  return (reply, output) => {
    const { [etag]: tag, ...rest } = output as Readonly<Record<string, unknown>>;
    reply.header("etag", toEtag(tag));
    if (bytes !== undefined) allowKeeping(reply, bytes.freshSeconds);
    if (method === "GET" && isHeldAlready(reply.request.headers["if-none-match"], tag)) reply.code(304).send();
    else send(reply, rest);
  };
}

function bytesOf(status: number, { content, mediaType }: BytesAnswer): (reply: FastifyReply, output: unknown) => void {
  return (reply, output) => {
    const fields = output as Readonly<Record<string, unknown>>;
    sendBytes(reply, status, fields[content] as Uint8Array, fields[mediaType] as string);
  };
}

function bodyOf(status: number, answer: Route["answer"]): (reply: FastifyReply, output: unknown) => void {
  if (answer === undefined) return (reply, output) => sendJson(reply, status, output);
  const { field, mediaType } = answer;
  const fieldOf = (output: unknown): unknown => (output as Readonly<Record<string, unknown>>)[field];
  if (mediaType === "application/json") return (reply, output) => sendJson(reply, status, fieldOf(output));
  const contentType = `${mediaType}; charset=utf-8`;
  // nosniff: what a program printed must never be taken for a page.
  return (reply, output) =>
    void reply
      .code(status)
      .header("content-type", contentType)
      .header("x-content-type-options", "nosniff")
      .send(fieldOf(output));
}
