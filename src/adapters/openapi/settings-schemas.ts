/** What an operator may set: `configSchema` and `secretsSchema` of a service. */
import type { JsonSchema } from "../../ports/adapter.ts";
import type { SecurityScheme, Server, ServicePlan } from "./plan.ts";
import { baseUrl, serverVariables, variablePrefix } from "./servers.ts";

export const timeoutMsDefault = 30_000;

/** `servers`: those of every level, since variables may occur at any. */
export function configSchema(service: ServicePlan, servers: readonly Server[]): JsonSchema {
  const properties: Record<string, unknown> = {
    serverUrl: {
      type: "string",
      pattern: "^[hH][tT][tT][pP][sS]?://",
      description: "Base URL of every call; absent: the servers of the document",
      ...(service.servers.length > 0 ? { examples: service.servers.map((server) => server.url) } : {}),
    },
  };
  for (const [name, variable] of Object.entries(serverVariables(servers))) {
    const listed =
      variable.enum.length > 0 && variable.default !== null
        ? [...new Set([...variable.enum, variable.default])]
        : variable.enum;
    properties[`${variablePrefix}${name}`] = {
      type: "string",
      description: variable.description || `Value of "{${name}}" in the server URL`,
      ...(listed.length > 0 ? { enum: listed } : {}),
      ...(variable.default !== null ? { default: variable.default } : {}),
    };
  }
  properties.timeoutMs = {
    type: "number",
    exclusiveMinimum: 0,
    default: timeoutMsDefault,
    description: "Time for one call, milliseconds",
  };
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties,
    additionalProperties: false,
    ...(hasOwnServer(service) ? {} : { required: ["serverUrl"] }),
  };
}

/** Whether calls have somewhere to go without configuration; missing variables are asked for one by one later. */
function hasOwnServer(service: ServicePlan): boolean {
  if (service.serversUnused) return true;
  const first = service.servers[0];
  if (first !== undefined && /\{/.test(first.url)) return true;
  try {
    baseUrl(service.servers, { documentUrl: service.documentUrl, config: {} });
    return true;
  } catch {
    return false;
  }
}

export function secretsSchema(schemes: Readonly<Record<string, SecurityScheme>>): JsonSchema {
  const properties: Record<string, unknown> = {};
  for (const [id, scheme] of Object.entries(schemes)) {
    if (scheme.kind !== "unsupported") properties[id] = secretSchema(scheme);
  }
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties,
    additionalProperties: false,
  };
}

function secretSchema(scheme: SecurityScheme & { kind: "apiKey" | "basic" | "authorization" }): JsonSchema {
  if (scheme.kind === "basic") {
    return {
      type: "object",
      description: describe("User name and password (HTTP Basic)", scheme.description),
      properties: { username: { type: "string" }, password: { type: "string" } },
      required: ["username", "password"],
      additionalProperties: false,
    };
  }
  const sent =
    scheme.kind === "apiKey" ? `Sent as ${scheme.in} "${scheme.name}"` : `Sent as "Authorization: ${scheme.prefix} …"`;
  return { type: "string", minLength: 1, description: describe(sent, scheme.description) };
}

function describe(sent: string, description: string): string {
  return description === "" ? sent : `${sent}. ${description}`;
}
