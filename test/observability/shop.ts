/** A service of one tool on 127.0.0.1, for tests of what is told about calls. */
import type { Server } from "../e2e/server.ts";

export function shopDefinition(origin: string): unknown {
  return {
    openapi: "3.0.3",
    info: { title: "Shop", version: "1.0.0" },
    servers: [{ url: origin }],
    components: { securitySchemes: { key: { type: "apiKey", in: "query", name: "api_key" } } },
    security: [{ key: [] }],
    paths: {
      "/pets/{petId}": {
        get: {
          operationId: "getPet",
          parameters: [{ name: "petId", in: "path", required: true, schema: { type: "string" } }],
          responses: { 200: { description: "A pet" } },
        },
      },
    },
  };
}

export async function installShop(
  server: Server,
  origin: string,
  { id = "shop", secret, headers = {} }: { id?: string; secret?: string; headers?: Record<string, string> } = {},
): Promise<void> {
  const does = async (method: string, path: string, body: unknown): Promise<void> => {
    const { status, text } = await server.call(method, path, body, headers);
    if (status >= 300) throw new Error(`${method} ${path} answered ${status}: ${text}`);
  };
  await does("POST", "/services", { id, adapter: "openapi", definition: shopDefinition(origin) });
  if (secret !== undefined) {
    await does("PATCH", `/services/${id}/secrets`, [{ op: "add", path: "/key", value: secret }]);
  }
  await does("POST", `/services/${id}/enabled`, { enabled: true });
}
