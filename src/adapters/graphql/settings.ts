/** What an operator may set of a GraphQL service, and how it is read: endpoint, time limit, headers, depth of the default selection. */
import { Failure } from "../../errors/failure.ts";
import { graphqlDefaultDepthMax } from "../../limits.ts";
import type { JsonSchema } from "../../ports/adapter.ts";
import { isHeaderName, isHeaderValue, isReservedHeader } from "../header-rules.ts";
import { readEndpoint } from "./endpoint.ts";

type Settings = Readonly<Record<string, unknown>>;

const timeoutMsDefault = 30_000;
/** Three levels reach the nodes of a Relay connection: connection, edge, node. */
export const selectionDepthDefault = 3;

const dialect = "https://json-schema.org/draft/2020-12/schema";

/** `endpoint`: what the document says, or null: then configuration has to. */
export function configSchema(endpoint: string | null): JsonSchema {
  return {
    $schema: dialect,
    type: "object",
    properties: {
      endpoint: {
        type: "string",
        pattern: "^[hH][tT][tT][pP][sS]?://",
        description: "URL every operation is posted to; absent: that of the definition document",
        ...(endpoint === null ? {} : { examples: [endpoint] }),
      },
      timeoutMs: {
        type: "number",
        exclusiveMinimum: 0,
        default: timeoutMsDefault,
        description: "Time for one call, milliseconds",
      },
      headers: headersSchema("Headers sent with every request; those that hold credentials belong in the secrets"),
      selectionDepth: {
        type: "integer",
        minimum: 1,
        maximum: graphqlDefaultDepthMax,
        default: selectionDepthDefault,
        description: "Levels of fields a tool selects when the caller does not say",
      },
    },
    additionalProperties: false,
    ...(endpoint === null ? { required: ["endpoint"] } : {}),
  };
}

export const secretsSchema: JsonSchema = {
  $schema: dialect,
  type: "object",
  properties: {
    bearerToken: { type: "string", minLength: 1, description: 'Sent as "Authorization: Bearer …"' },
    headers: headersSchema("Headers with credentials, such as X-API-Key"),
  },
  additionalProperties: false,
};

function headersSchema(description: string): Settings {
  return { type: "object", description, additionalProperties: { type: "string" } };
}

export function timeoutMsOf(config: Settings): number {
  const { timeoutMs } = config;
  return typeof timeoutMs === "number" && timeoutMs > 0 ? timeoutMs : timeoutMsDefault;
}

export function selectionDepthOf(config: Settings): number {
  const { selectionDepth } = config;
  if (typeof selectionDepth !== "number" || !Number.isInteger(selectionDepth)) return selectionDepthDefault;
  return Math.min(Math.max(selectionDepth, 1), graphqlDefaultDepthMax);
}

/** The configured endpoint, or undefined. @throws Failure invalid_request. */
export function endpointOf(config: Settings): string | undefined {
  return config.endpoint === undefined ? undefined : readEndpoint(config.endpoint);
}

/** Headers of both settings together; of one name the secret counts. @throws Failure invalid_request, naming names only. */
export function settingsHeaders(config: Settings, secrets: Settings): Record<string, string> {
  const headers = new Map(entries(config.headers, "config", (name) => isReservedHeader(name)));
  const isReserved = (name: string) => isReservedHeader(name) && name !== "authorization" && name !== "cookie";
  for (const [name, value] of entries(secrets.headers, "secrets", isReserved)) headers.set(name, value);
  const { bearerToken } = secrets;
  if (typeof bearerToken === "string" && bearerToken !== "") {
    if (!isHeaderValue(bearerToken)) throw unsendable("bearerToken", "secrets");
    headers.set("authorization", `Bearer ${bearerToken}`);
  }
  return Object.fromEntries(headers);
}

function entries(
  given: unknown,
  place: "config" | "secrets",
  isReserved: (name: string) => boolean,
): (readonly [string, string])[] {
  if (typeof given !== "object" || given === null) return [];
  return Object.entries(given).map(([written, value]) => {
    const name = written.toLowerCase();
    if (!isHeaderName(name))
      throw new Failure("invalid_request", `A name in "headers" of the ${place} is no header name`);
    if (isReserved(name) || name === "accept") {
      throw new Failure("invalid_request", `Header "${name}" cannot be set in the ${place}`);
    }
    if (typeof value !== "string" || !isHeaderValue(value)) throw unsendable(name, place);
    return [name, value] as const;
  });
}

function unsendable(name: string, place: string): Failure {
  return new Failure("invalid_request", `The value of "${name}" in the ${place} holds what a header cannot carry`);
}
