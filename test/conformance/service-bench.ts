/**
 * Services for rows: OpenAPI documents of a few lines, and definitions that say everything themselves, served by an adapter module
 * that answers each call with what it was hydrated with. Both also from a registry, where another version can be put on offer.
 */
import { afterAll, beforeAll, expect } from "vitest";
import { type DevRegistry, startDevRegistry } from "../../src/dev-registry/dev-registry.ts";
import { moduleArchive } from "../../src/dev-registry/offers/modules.ts";
import type { JsonSchema, ServiceDefinition } from "../../src/sdk/sdk.ts";
import { openRecordingServer, type RecordingServer } from "../adapters/recording-server.ts";
import type { Answer } from "../e2e/server.ts";
import type { Site } from "./site.ts";

/** Documents are definitions. A service with `fails` in its configuration or plan cannot be made ready. */
export const mirrorSource = `export default {
  type: "adapter",
  setup: () => ({
    generateDefinition: ({ document }) => JSON.parse(document),
    hydrate: ({ config, secrets, plan }) => {
      if (config.fails || plan?.fails) throw new Error("The mirror is broken");
      return { config, secrets: Object.keys(secrets).sort() };
    },
    invoke: (hydrated) => hydrated,
  }),
};
`;

export type Definition = Omit<ServiceDefinition, "name">;

export interface ServiceBench {
  readonly registry: DevRegistry;
  readonly target: RecordingServer;
  /** Installs it and expects that to succeed; the answer is its id. */
  install(request: object): Promise<string>;
  /** Inline, for the mirror: one tool `look` unless the definition has its own. */
  mirrored(definition?: Partial<Definition>, id?: string): Promise<string>;
  /** For the mirror, with this configuration schema and this configuration. */
  configured(configSchema: JsonSchema, config?: object): Promise<string>;
  patchConfig(id: string, ...operations: unknown[]): Promise<Answer>;
  patchSecrets(id: string, ...operations: unknown[]): Promise<Answer>;
  /** From the registry, for the mirror; `offer` puts another version there. */
  offered(definition: Partial<Definition>): Promise<{ id: string; offer(next: Partial<Definition>): void }>;
  /** What the mirror was hydrated with. */
  hydratedWith(id: string): Promise<Answer["body"]>;
  enable(id: string, enabled?: boolean): Promise<Answer>;
  read(id: string): Promise<Answer["body"]>;
  config(id: string): Promise<Answer["body"]>;
  /** Id and flag of each tool, in the order of the list. */
  tools(id: string): Promise<readonly (readonly [string, boolean])[]>;
}

let idCount = 0;
export const newServiceId = (): string => `row_${++idCount}`;

export const look = { id: "look", name: "Look" };
export const noValues = { type: "object", properties: {}, additionalProperties: false };

export const add = (path: string, value: unknown) => ({ op: "add", path, value });
export const remove = (path: string) => ({ op: "remove", path });

export function object(properties: object, more: object = {}): Record<string, unknown> {
  return { type: "object", properties, additionalProperties: false, ...more };
}

/** A document with an operation per entry: id to path, or to more of the operation. */
export function openApi(url: string, operations: Readonly<Record<string, object>>, more: object = {}): object {
  const responses = { 200: { description: "ok" } };
  const paths = Object.entries(operations).map(([id, operation]) => [
    `/${id}`,
    { get: { operationId: id, responses, ...operation } },
  ]);
  return {
    openapi: "3.1.0",
    info: { title: "Row", version: "1.0.0" },
    servers: [{ url }],
    paths: Object.fromEntries(paths),
    ...more,
  };
}

export function openServiceBench(site: Site): ServiceBench {
  let registry: DevRegistry | undefined;
  let target: RecordingServer | undefined;

  beforeAll(async () => {
    registry = await startDevRegistry();
    target = await openRecordingServer();
    expect((await site.server.post("/registries", { baseUrl: registry.url })).status).toBe(201);
    const manifest = { id: "mirror", name: "Mirror", type: "adapter", description: "Shows itself" } as const;
    const content = moduleArchive({ ...manifest, version: "1.0.0", source: mirrorSource });
    registry.publish("modules", { id: "mirror", version: "1.0.0", content });
    const installed = await site.server.post("/modules", { registryId: "dev-registry", moduleId: "mirror" });
    expect(installed.status, installed.text).toBe(201);
    expect((await site.server.post("/modules/mirror/enabled", { enabled: true })).status).toBe(200);
  });
  afterAll(async () => {
    await registry?.close();
    await target?.close();
  });

  const text = (definition: Partial<Definition>): string =>
    JSON.stringify({ name: "Row", tools: [look], ...definition });

  const bench: ServiceBench = {
    get registry() {
      return registry ?? expect.unreachable("The registry is not started");
    },
    get target() {
      return target ?? expect.unreachable("The target is not started");
    },
    async install(request) {
      const answer = await site.server.post("/services", request);
      expect(answer.status, answer.text).toBe(201);
      return answer.body.id;
    },
    mirrored: (definition = {}, id = newServiceId()) =>
      bench.install({ id, adapter: "mirror", definition: text(definition) }),
    async configured(configSchema, config = {}) {
      const id = await bench.mirrored({ configSchema });
      const answer = await bench.patchConfig(id, add("", config));
      expect(answer.status, answer.text).toBe(200);
      return id;
    },
    patchConfig: (id, ...operations) => site.server.patch(`/services/${id}/config`, ...operations),
    patchSecrets: (id, ...operations) => site.server.patch(`/services/${id}/secrets`, ...operations),
    async offered(definition) {
      const id = newServiceId();
      let minor = 0;
      const offer = (next: Partial<Definition>): void =>
        bench.registry.publish("definitions", { id, version: `1.${minor++}.0`, content: text(next) });
      offer(definition);
      await bench.install({ id, adapter: "mirror", registryId: "dev-registry", definitionId: id });
      return { id, offer };
    },
    async hydratedWith(id) {
      const answer = await site.server.post(`/tools/${id}/look/invoke`, {});
      expect(answer.status, answer.text).toBe(200);
      return answer.body.result;
    },
    enable: (id, enabled = true) => site.server.post(`/services/${id}/enabled`, { enabled }),
    read: async (id) => (await site.server.get(`/services/${id}`)).body,
    config: async (id) => (await site.server.get(`/services/${id}/config`)).body,
    tools: async (id) =>
      (await site.server.get(`/tools?serviceId=${id}&limit=100`)).body.items.map(
        (tool: { id: string; enabled: boolean }) => [tool.id, tool.enabled],
      ),
  };
  return bench;
}
