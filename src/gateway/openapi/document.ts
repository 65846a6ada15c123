/**
 * The description of the REST face that the face itself serves: OpenAPI 3.0.0, made from the operation rows and the schemas they
 * validate with, so that what is documented is what is done.
 */
import type { Operation, StreamOperation } from "../../operations/operation.ts";
import { Components } from "./components.ts";
import type { JsonObject } from "./json-object.ts";
import { operationObject, streamObject, tagOf } from "./operation-object.ts";
import { type OwnRoute, ownRouteObject, ownRoutes } from "./own-routes.ts";

export interface DocumentOptions {
  readonly operations: readonly Operation[];
  readonly streams: readonly StreamOperation[];
  /** Whether the face has this route that is no operation. */
  hasRoute(route: OwnRoute): boolean;
}

/** The version of the interface, not of the server. */
const interfaceVersion = "1.0.0";

export function openApiDocument({ operations, streams, hasRoute }: DocumentOptions): JsonObject {
  const components = new Components();
  const paths: Record<string, Record<string, JsonObject>> = {};
  const add = (path: string, method: string, object: JsonObject): void => {
    paths[path] = { ...paths[path], [method.toLowerCase()]: object };
  };
  for (const row of operations) add(row.route.path, row.route.method, operationObject(row, components));
  for (const row of streams) add(row.route.path, "GET", streamObject(row, components));
  for (const route of ownRoutes.filter(hasRoute)) add(route.path, route.method, ownRouteObject(route, components));
  const tags = [...new Set([...[...operations, ...streams].map(({ route }) => tagOf(route.path)), serverTag])];
  return {
    openapi: "3.0.0",
    info: {
      title: "Troupe",
      version: interfaceVersion,
      description: introduction,
      license: { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0" },
    },
    servers: [{ url: "/", description: "This server" }],
    security: [{ bearer: [] }, {}],
    tags: tags.map((name) => ({ name, description: tagDescriptions[name] ?? `Operations on ${name}` })),
    paths,
    components: components.object(),
  };
}

const serverTag = "server";

const tagDescriptions: Readonly<Record<string, string>> = {
  processes: "Programs that callers hand in, and their runs",
  registries: "Remote catalogs of service definitions and modules, and the credentials for them",
  modules: "Installed extensions: adapters that call services, environments that run programs",
  services: "Installed integrations: configuration, secrets, and whether they are on",
  tools: "What services can be asked to do",
  environment: "What programs find when they run",
  logs: "What the server has noted",
  [serverTag]: "Documents, probes and other faces of this server",
};

const introduction = [
  "Connects AI agents to outside services, APIs and devices: agents send programs, the programs run in a sandbox and call the tools of installed services.",
  "Bodies are JSON. Every answer carries `X-Request-Id`. Errors are `{error, code}`; 429 is `{error: rate_limit_exceeded, message, retryAfter}`.",
  "A known path asked by another method answers 405 with `Allow`, an unknown path 404. HEAD answers as GET does, without a body; OPTIONS answers 204 with `Allow`.",
  "A request that is not readable as HTTP is answered below the routes: 400, 408 when it was not received in time, 431 when its headers are too large.",
  "A bearer key is needed where the server was given keys. Keys of role agent read, run programs and call tools; the rest needs role operator.",
].join("\n\n");
