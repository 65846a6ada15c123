/** One operation row as an operation object: parameters, body, answers with headers, and the errors it may have. */
import type { FailureKind } from "../../errors/failure.ts";
import type { Operation, StreamOperation } from "../../operations/operation.ts";
import { jsonMediaTypes } from "../media-type.ts";
import type { Components } from "./components.ts";
import type { JsonObject } from "./json-object.ts";
import { propertyOf, type SchemaObject, withoutProperties } from "./schema.ts";

const quota = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"] as const;

/** Any call may end so, whatever it asks for. */
const failuresOfAll: readonly FailureKind[] = [
  "invalid_request",
  "unauthenticated",
  "forbidden",
  "too_large",
  "rate_limit_exceeded",
  "internal",
  "unavailable",
  "timeout",
];

export function operationObject(row: Operation, components: Components): JsonObject {
  const { route } = row;
  const input = components.deref(components.schema(row.input, "input"));
  const pathNames = namesIn(route.path);
  const queryNames = route.query ?? [];
  const conditional = route.etag !== undefined && route.method === "GET";
  return {
    ...about(row),
    parameters: [
      ...pathNames.map((name) => pathParameter(name, input, components)),
      ...queryNames.map((name) => queryParameter(name, input)),
      ...(route.ifMatch === undefined ? [] : [components.parameter("If-Match")]),
      ...(conditional ? [components.parameter("If-None-Match")] : []),
      ...(row.idempotent === undefined ? [] : [components.parameter("Idempotency-Key")]),
      components.parameter("X-Request-Id"),
    ],
    ...requestBody(row, input, new Set([...pathNames, ...queryNames, route.ifMatch ?? ""]), components),
    responses: {
      [route.status]: success(row, components),
      ...(conditional ? { 304: notModified(row, components) } : {}),
      ...components.errors([...failuresOfAll, ...failuresOf(row, pathNames.length > 0)]),
    },
  };
}

export function streamObject(row: StreamOperation, components: Components): JsonObject {
  const { path, query = [] } = row.route;
  const input = components.deref(components.schema(row.input, "input"));
  const pathNames = namesIn(path);
  const headers = components.headers("X-Request-Id", ...quota);
  const streamHeaders = components.headers("X-Request-Id", ...quota, "Cache-Control");
  return {
    ...about(row),
    parameters: [
      ...pathNames.map((name) => pathParameter(name, input, components)),
      ...query.map((name) => queryParameter(name, input)),
      components.parameter("Last-Event-ID"),
      components.parameter("X-Request-Id"),
    ],
    responses: {
      200: {
        description: "Server-sent events (WHATWG HTML); the data of each is JSON, comments keep the connection open",
        headers: streamHeaders,
        content: {
          "text/event-stream": {
            schema: { type: "string" },
            example: 'id: 1\nevent: state\ndata: {"state":"running"}\n\n',
          },
        },
      },
      204: { description: "Nothing is left to tell, now or later", headers },
      ...components.errors([...failuresOfAll, ...(pathNames.length > 0 ? notFound : []), ...(row.failures ?? [])]),
    },
  };
}

/** `/processes/{id}/output` → `processes` */
export function tagOf(path: string): string {
  return path.split("/")[1] ?? "";
}

const notFound: readonly FailureKind[] = ["not_found"];

function failuresOf(row: Operation, hasPathNames: boolean): readonly FailureKind[] {
  const { route, idempotent, failures = [] } = row;
  return [
    ...(hasPathNames ? notFound : []),
    ...(route.body === "none" ? [] : (["unsupported_media_type"] as const)),
    ...(route.ifMatch === undefined ? [] : (["etag_mismatch"] as const)),
    ...(idempotent === undefined ? [] : (["conflict"] as const)),
    ...failures,
  ];
}

function about(row: Pick<Operation, "name" | "summary" | "role"> & { readonly route: { readonly path: string } }) {
  return {
    operationId: row.name,
    summary: row.summary,
    description: row.role === "operator" ? "For keys of role operator." : "For keys of any role.",
    tags: [tagOf(row.route.path)],
  };
}

function namesIn(path: string): readonly string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
}

function pathParameter(name: string, input: SchemaObject, components: Components): JsonObject {
  const { description, ...schema } = propertyOf(input, name) ?? { type: "string" };
  return { name, in: "path", required: true, description, schema, example: components.example(schema) };
}

function queryParameter(name: string, input: SchemaObject): JsonObject {
  const { description, ...schema } = propertyOf(input, name) ?? { type: "string" };
  const isRequired = input.required?.includes(name) === true;
  return { name, in: "query", ...(isRequired ? { required: true } : {}), description, schema };
}

function requestBody(
  { route }: Operation,
  input: SchemaObject,
  elsewhere: ReadonlySet<string>,
  components: Components,
): JsonObject {
  const { body } = route;
  if (body === "none") return {};
  const schema = body === "fields" ? withoutProperties(input, elsewhere) : (propertyOf(input, body.field) ?? {});
  // As the route plan has it: a body without which a required field is missing.
  const isRequired = body !== "fields" || requiresFields(components.deref(schema));
  const mediaTypes = body === "fields" ? jsonMediaTypes : body.mediaTypes;
  const content = { schema, example: components.example(schema) };
  return {
    requestBody: {
      required: isRequired,
      content: Object.fromEntries(mediaTypes.map((mediaType) => [mediaType, content])),
    },
  };
}

function requiresFields({ required = [], oneOf = [] }: SchemaObject): boolean {
  return required.length > 0 || oneOf.some(requiresFields);
}

function success({ route, output, idempotent }: Operation, components: Components): JsonObject {
  const headers = components.headers(
    "X-Request-Id",
    ...quota,
    ...(route.etag === undefined ? [] : (["ETag"] as const)),
    ...(route.bytes === undefined ? [] : (["Cache-Control"] as const)),
    ...(idempotent === undefined ? [] : (["Idempotency-Replayed"] as const)),
  );
  if (route.status === 204) return { description: "Done", headers };
  const whole = components.schema(output, "output");
  return { description: "The answer", headers, content: answerContent(route, whole, components) };
}

function answerContent(route: Operation["route"], whole: SchemaObject, components: Components): JsonObject {
  const { bytes, answer, etag } = route;
  const fields = components.deref(whole);
  if (bytes !== undefined) {
    const mediaTypes = (propertyOf(fields, bytes.mediaType)?.enum ?? []) as readonly string[];
    return Object.fromEntries(mediaTypes.map((name) => [name, { schema: { type: "string", format: "binary" } }]));
  }
  const schema =
    answer !== undefined
      ? (propertyOf(fields, answer.field) ?? {})
      : etag === undefined
        ? whole
        : withoutProperties(fields, new Set([etag]));
  return { [answer?.mediaType ?? "application/json"]: { schema, example: components.example(schema) } };
}

function notModified({ route }: Operation, components: Components): JsonObject {
  const kept = route.bytes === undefined ? [] : (["Cache-Control"] as const);
  return {
    description: "The caller has it already",
    headers: components.headers("X-Request-Id", ...quota, "ETag", ...kept),
  };
}
