/** What an operator may set: `configSchema` and `secretsSchema` of a service. Runs in the document worker. */
import type { JsonSchema } from "../../ports/adapter.ts";
import type { ServerAddress } from "./server-address.ts";

export const timeoutMsDefault = 30_000;

const dialect = "https://json-schema.org/draft/2020-12/schema";
const texts = { type: "object", additionalProperties: { type: "string" } };

export function configSchema(address: ServerAddress): JsonSchema {
  const timeoutMs = {
    type: "number",
    exclusiveMinimum: 0,
    default: timeoutMsDefault,
    description: "Time for one call, milliseconds",
  };
  const ofHttp = {
    url: {
      type: "string",
      pattern: "^[hH][tT][tT][pP][sS]?://",
      description: "Where the server is; absent: what the definition says",
    },
    headers: {
      ...texts,
      description: "Headers sent with every request; those that hold credentials belong in the secrets",
    },
  };
  return objectOf(address.kind === "http" ? { ...ofHttp, timeoutMs } : { timeoutMs });
}

export function secretsSchema(address: ServerAddress): JsonSchema {
  if (address.kind === "stdio") {
    return objectOf({ env: { ...texts, description: "Environment variables of the server's process" } });
  }
  return objectOf({
    bearerToken: { type: "string", minLength: 1, description: 'Sent as "Authorization: Bearer …"' },
    headers: { ...texts, description: "Headers with credentials, such as X-API-Key" },
  });
}

function objectOf(properties: Readonly<Record<string, unknown>>): JsonSchema {
  return { $schema: dialect, type: "object", properties, additionalProperties: false };
}
