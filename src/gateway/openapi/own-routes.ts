/** Routes that are no operations: probes, documents, and the faces that others mount. Those that exist are described. */
import type { FailureKind } from "../../errors/failure.ts";
import type { Components } from "./components.ts";
import type { JsonObject } from "./json-object.ts";

export interface OwnRoute {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly name: string;
  readonly summary: string;
  readonly description?: string;
  /** No key is asked for. */
  readonly isOpen?: boolean;
  readonly body?: JsonObject;
  readonly answers: Readonly<Record<number, OwnAnswer>>;
  readonly failures: readonly FailureKind[];
}

interface OwnAnswer {
  readonly description: string;
  readonly mediaTypes: Readonly<Record<string, JsonObject>>;
  readonly headers?: readonly string[];
}

const text: JsonObject = { schema: { type: "string" } };
const openObject: JsonObject = { schema: { type: "object", additionalProperties: true } };
const status = (value: string): JsonObject => ({
  schema: { type: "object", required: ["status"], properties: { status: { type: "string", enum: [value] } } },
  example: { status: value },
});
const openFailures: readonly FailureKind[] = ["invalid_request", "forbidden", "too_large", "internal"];
const guardedFailures: readonly FailureKind[] = [
  ...openFailures,
  "unauthenticated",
  "rate_limit_exceeded",
  "unavailable",
];

const jsonRpcError: JsonObject = {
  type: "object",
  required: ["jsonrpc", "error", "id"],
  properties: {
    jsonrpc: { type: "string", enum: ["2.0"] },
    error: {
      type: "object",
      required: ["code", "message"],
      properties: { code: { type: "integer" }, message: { type: "string" }, data: {} },
    },
    id: { description: "Of the request; null when it could not be read" },
  },
};

function document(path: string, name: string, summary: string, mediaType: string, content = text): OwnRoute {
  const headers = ["ETag", "Cache-Control"];
  return {
    method: "GET",
    path,
    name,
    summary,
    isOpen: true,
    answers: {
      200: { description: "The document", mediaTypes: { [mediaType]: content }, headers },
      304: { description: "The caller has it already", mediaTypes: {}, headers },
    },
    failures: [...openFailures, "rate_limit_exceeded", "unavailable"],
  };
}

export const ownRoutes: readonly OwnRoute[] = [
  document("/openapi.json", "getOpenApiDocument", "Read this document", "application/json", openObject),
  document("/docs", "getDocsPage", "Read this document as a page", "text/html"),
  document("/docs/style.css", "getDocsStyle", "Read the style of that page", "text/css"),
  document("/llms.txt", "getAgentGuide", "Read how an agent works with this server", "text/markdown"),
  {
    method: "GET",
    path: "/healthz",
    name: "getLiveness",
    summary: "Whether the server is alive",
    isOpen: true,
    answers: { 200: { description: "It is", mediaTypes: { "application/json": status("alive") } } },
    failures: openFailures,
  },
  {
    method: "GET",
    path: "/readyz",
    name: "getReadiness",
    summary: "Whether the server takes calls",
    isOpen: true,
    answers: { 200: { description: "It does", mediaTypes: { "application/json": status("ready") } } },
    failures: [...openFailures, "unavailable"],
  },
  {
    method: "GET",
    path: "/metrics",
    name: "getMetrics",
    summary: "Read counters and gauges for Prometheus",
    description: "Needs no key on a loopback address, elsewhere one of role operator.",
    answers: {
      200: {
        description: "Exposition format of Prometheus",
        mediaTypes: { "text/plain": text },
        headers: ["Cache-Control"],
      },
    },
    failures: guardedFailures,
  },
  {
    method: "POST",
    path: "/mcp",
    name: "callMcp",
    summary: "Model Context Protocol over streamable HTTP, without sessions",
    description: "Messages are JSON-RPC 2.0; the protocol describes them and lists the tools of this server.",
    body: openObject,
    answers: {
      200: {
        description: "The answer, or a stream of messages that ends with it",
        mediaTypes: { "application/json": openObject, "text/event-stream": text },
      },
      202: { description: "A notification was taken", mediaTypes: {} },
      400: {
        description: "The message is not one of the protocol, or the request is not valid",
        mediaTypes: {
          "application/json": { schema: { anyOf: [jsonRpcError, { $ref: "#/components/schemas/Error" }] } },
        },
      },
      406: {
        description: "Accept must name both application/json and text/event-stream",
        mediaTypes: { "application/json": { schema: jsonRpcError } },
      },
    },
    failures: [...guardedFailures.filter((kind) => kind !== "invalid_request"), "unsupported_media_type", "timeout"],
  },
];

export function ownRouteObject(route: OwnRoute, components: Components): JsonObject {
  const isLimited = route.failures.includes("rate_limit_exceeded");
  const quota = isLimited ? ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"] : [];
  const answers = Object.entries(route.answers).map(([number, { description, mediaTypes, headers = [] }]) => [
    number,
    {
      description,
      headers: components.headers("X-Request-Id", ...quota, ...headers),
      ...(Object.keys(mediaTypes).length === 0 ? {} : { content: mediaTypes }),
    },
  ]);
  const hasTag = route.answers[304] !== undefined;
  return {
    operationId: route.name,
    summary: route.summary,
    description: route.description ?? (route.isOpen === true ? "Needs no key." : "For keys of any role."),
    tags: ["server"],
    ...(route.isOpen === true ? { security: [] } : {}),
    parameters: [...(hasTag ? [components.parameter("If-None-Match")] : []), components.parameter("X-Request-Id")],
    ...(route.body === undefined
      ? {}
      : { requestBody: { required: true, content: { "application/json": route.body } } }),
    responses: { ...Object.fromEntries(answers), ...components.errors(route.failures) },
  };
}
