/** States of modules to start from, and contents to take over. */
import type { ModuleContent, ModuleState } from "../../src/actors/module.ts";

export function moduleContent(version: string, more: Partial<ModuleContent> = {}): ModuleContent {
  return {
    name: "Toy",
    description: "",
    version,
    hash: `hash-of-${version}`,
    hasIcon: false,
    configSchema: {
      type: "object",
      properties: { size: { type: "integer", default: 3 } },
      additionalProperties: false,
    },
    secretsSchema: { type: "object", properties: { token: { type: "string" } }, additionalProperties: false },
    ...more,
  };
}

export function installedModule(id: string, more: Partial<ModuleState> = {}): ModuleState {
  return {
    id,
    type: "adapter",
    isBuiltin: false,
    ...(moduleContent("1.0.0") as Pick<ModuleState, keyof ModuleContent>),
    source: "http://registry.test/toy-1.0.0.tgz",
    registry: { registryId: "r", entryId: id, descriptor: `http://registry.test/${id}.json` },
    enabled: false,
    missing: null,
    failed: null,
    createdAt: 1,
    updatedAt: 1,
    versionSince: 1,
    autoUpdate: true,
    autoUpdateConstraint: null,
    previous: null,
    brokenVersion: null,
    config: {},
    secrets: null,
    secretsPresent: [],
    secretsOutdated: [],
    generation: 1,
    ...more,
  };
}
