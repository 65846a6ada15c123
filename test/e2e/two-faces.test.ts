/**
 * The same requests through REST and through gRPC give the same answers: results field by field, errors with the same code and
 * the same sentence. Requests that change something are made on twins, one per face.
 */
import type { JsonValue } from "@bufbuild/protobuf";
import type grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PetStore, startPetStore } from "../../src/demo/pet-store.ts";
import { catalogue } from "../../src/errors/catalogue.ts";
import type { FailureKind } from "../../src/errors/failure.ts";
import { type ForeignClient, openForeignClient } from "./foreign-client.ts";
import { type Answer, removeFolder, type Server, startServer } from "./server.ts";

let server: Server;
let client: ForeignClient;
let store: PetStore;

beforeAll(async () => {
  server = await startServer();
  client = await openForeignClient(server.grpc);
  store = await startPetStore({ port: 0, apiKey: "key" });
  for (const id of ["rest", "rpc"]) {
    await server.post("/services", { id, url: store.documentUrl });
    await server.patch(`/services/${id}/config`, { op: "add", path: "/serverVar_port", value: String(store.port) });
    await server.patch(`/services/${id}/secrets`, { op: "add", path: "/petKey", value: "key" });
  }
  for (const ref of ["rest", "rpc"]) {
    const { body } = await server.post("/processes", { code: "console.log('p'); return { n: [1, null, 'x'] }", ref });
    await server.get(`/processes/${body.id}?wait=30`);
  }
});

afterAll(async () => {
  client.close();
  await store.close();
  await server.kill("SIGTERM");
  await removeFolder(server.folder);
});

interface Twin {
  /** Process id or service id of this face's twin. */
  readonly process: number;
  readonly service: string;
}

interface Case {
  readonly rest: (twin: Twin) => readonly [method: string, path: string, body?: unknown];
  readonly rpc: (twin: Twin) => readonly [service: string, method: string, request: JsonValue];
  /** Field of the rpc's answer that is the REST body; absent: the whole. */
  readonly field?: string;
}

const twins: Record<"rest" | "rpc", Twin> = {
  rest: { process: 1, service: "rest" },
  rpc: { process: 2, service: "rpc" },
};

const add = (path: string, value: unknown): unknown[] => [{ op: "add", path, value }];

const cases: Record<string, Case> = {
  "get a process": {
    rest: ({ process }) => ["GET", `/processes/${process}`],
    rpc: ({ process }) => ["ProcessService", "GetProcess", { id: process }],
    field: "process",
  },
  "get a process that is not there": {
    rest: () => ["GET", "/processes/999"],
    rpc: () => ["ProcessService", "GetProcess", { id: 999 }],
  },
  "get process 0": {
    rest: () => ["GET", "/processes/0"],
    rpc: () => ["ProcessService", "GetProcess", { id: 0 }],
  },
  "list processes by ref": {
    rest: () => ["GET", "/processes?ref=rest&state=idle&exitState=success&limit=5"],
    rpc: () => [
      "ProcessService",
      "ListProcesses",
      { ref: "rest", state: "PROCESS_STATE_IDLE", exitState: "PROCESS_EXIT_STATE_SUCCESS", limit: 5 },
    ],
  },
  "list processes that have no exit state": {
    rest: () => ["GET", "/processes?exitState=null"],
    rpc: () => ["ProcessService", "ListProcesses", { noExitState: true }],
  },
  "list processes one at a time": {
    rest: () => ["GET", "/processes?limit=1"],
    rpc: () => ["ProcessService", "ListProcesses", { limit: 1 }],
  },
  "list processes with a broken cursor": {
    rest: () => ["GET", "/processes?cursor=broken!"],
    rpc: () => ["ProcessService", "ListProcesses", { cursor: "broken!" }],
  },
  "list processes with a cursor of another version": {
    rest: () => ["GET", "/processes?cursor=eyJ2IjoyLCJrIjpbMSwyXX0"],
    rpc: () => ["ProcessService", "ListProcesses", { cursor: "eyJ2IjoyLCJrIjpbMSwyXX0" }],
  },
  "read output": {
    rest: ({ process }) => ["GET", `/processes/${process}/output`],
    rpc: ({ process }) => ["ProcessService", "GetProcessOutput", { id: process }],
    field: "output",
  },
  "run a process that has results": {
    rest: ({ process }) => ["POST", `/processes/${process}/signals/run`, {}],
    rpc: ({ process }) => ["ProcessService", "RunProcess", { id: process }],
  },
  "kill an idle process": {
    rest: ({ process }) => ["POST", `/processes/${process}/signals/kill`, {}],
    rpc: ({ process }) => ["ProcessService", "KillProcess", { id: process }],
  },
  "unload a process": {
    rest: ({ process }) => ["POST", `/processes/${process}/signals/unload`, {}],
    rpc: ({ process }) => ["ProcessService", "UnloadProcess", { id: process }],
    field: "process",
  },
  "unload it again": {
    rest: ({ process }) => ["POST", `/processes/${process}/signals/unload`, {}],
    rpc: ({ process }) => ["ProcessService", "UnloadProcess", { id: process }],
  },
  "create a process with too much code": {
    rest: () => ["POST", "/processes", { code: "x".repeat(102_401) }],
    rpc: () => ["ProcessService", "CreateProcess", { code: "x".repeat(102_401) }],
  },
  "create a process with 102,400 astral characters": {
    rest: () => ["POST", "/processes", { code: `//${"𝒳".repeat(102_398)}`, autorun: false }],
    rpc: () => ["ProcessService", "CreateProcess", { code: `//${"𝒳".repeat(102_398)}`, autorun: false }],
  },
  "create a process with a blank ref": {
    rest: () => ["POST", "/processes", { code: "", ref: " " }],
    rpc: () => ["ProcessService", "CreateProcess", { code: "", ref: " " }],
  },
  "create a process with NUL in ref": {
    rest: () => ["POST", "/processes", { code: "", ref: "a\u0000" }],
    rpc: () => ["ProcessService", "CreateProcess", { code: "", ref: "a\u0000" }],
  },
  "create a process with timeoutMs 0": {
    rest: () => ["POST", "/processes", { code: "", timeoutMs: 0 }],
    rpc: () => ["ProcessService", "CreateProcess", { code: "", timeoutMs: 0 }],
  },
  "create a process without a limit of time": {
    rest: () => [
      "POST",
      "/processes",
      { code: "", timeoutMs: null, envConfig: { a: [1, { b: null }] }, autorun: false },
    ],
    rpc: () => [
      "ProcessService",
      "CreateProcess",
      { code: "", noTimeout: true, envConfig: { a: [1, { b: null }] }, autorun: false },
    ],
  },
  "delete a process": {
    rest: ({ process }) => ["DELETE", `/processes/${process}`],
    rpc: ({ process }) => ["ProcessService", "DeleteProcess", { id: process }],
    field: "process",
  },
  "get a service": {
    rest: ({ service }) => ["GET", `/services/${service}`],
    rpc: ({ service }) => ["ServiceService", "GetService", { serviceId: service }],
    field: "service",
  },
  "list services": {
    rest: () => ["GET", "/services?query=pet&enabled=false&stale=false&adapter=openapi"],
    rpc: () => ["ServiceService", "ListServices", { query: "pet", enabled: false, stale: false, adapter: "openapi" }],
  },
  "install a service twice": {
    rest: ({ service }) => ["POST", "/services", { id: service, definition: { openapi: "3.1.0" } }],
    rpc: ({ service }) => ["ServiceService", "CreateService", { id: service, definition: { openapi: "3.1.0" } }],
  },
  "install a service from something else": {
    rest: () => ["POST", "/services", { id: "other", definition: "hello" }],
    rpc: () => ["ServiceService", "CreateService", { id: "other", definition: "hello" }],
  },
  "install a service without a document": {
    rest: () => ["POST", "/services", { id: "other" }],
    rpc: () => ["ServiceService", "CreateService", { id: "other" }],
  },
  "install a service with a bad id": {
    rest: () => ["POST", "/services", { id: "9bad", definition: "{}" }],
    rpc: () => ["ServiceService", "CreateService", { id: "9bad", definition: "{}" }],
  },
  "patch configuration": {
    rest: ({ service }) => ["PATCH", `/services/${service}/config`, add("/timeoutMs", 5000)],
    rpc: ({ service }) => [
      "ServiceService",
      "PatchServiceConfig",
      { serviceId: service, patch: add("/timeoutMs", 5000) as JsonValue },
    ],
  },
  "patch configuration with a key that is not allowed": {
    rest: ({ service }) => ["PATCH", `/services/${service}/config`, add("/unknown", null)],
    rpc: ({ service }) => [
      "ServiceService",
      "PatchServiceConfig",
      { serviceId: service, patch: add("/unknown", null) as JsonValue },
    ],
  },
  "patch configuration with an operation that has no value": {
    rest: ({ service }) => ["PATCH", `/services/${service}/config`, [{ op: "add", path: "/timeoutMs" }]],
    rpc: ({ service }) => [
      "ServiceService",
      "PatchServiceConfig",
      { serviceId: service, patch: [{ op: "add", path: "/timeoutMs" }] },
    ],
  },
  "patch secrets": {
    rest: ({ service }) => [
      "PATCH",
      `/services/${service}/secrets`,
      [{ op: "replace", path: "/petKey", value: "key" }],
    ],
    rpc: ({ service }) => [
      "ServiceService",
      "PatchServiceSecrets",
      { serviceId: service, patch: [{ op: "replace", path: "/petKey", value: "key" }] },
    ],
  },
  "test a secret": {
    rest: ({ service }) => ["PATCH", `/services/${service}/secrets`, [{ op: "test", path: "/petKey", value: "guess" }]],
    rpc: ({ service }) => [
      "ServiceService",
      "PatchServiceSecrets",
      { serviceId: service, patch: [{ op: "test", path: "/petKey", value: "guess" }] },
    ],
  },
  "read secrets": {
    rest: ({ service }) => ["GET", `/services/${service}/secrets`],
    rpc: ({ service }) => ["ServiceService", "GetServiceSecrets", { serviceId: service }],
  },
  "read the schema of the configuration": {
    rest: ({ service }) => ["GET", `/services/${service}/config/schema`],
    rpc: ({ service }) => ["ServiceService", "GetServiceConfigSchema", { serviceId: service }],
  },
  "read the schema of the secrets": {
    rest: ({ service }) => ["GET", `/services/${service}/secrets/schema`],
    rpc: ({ service }) => ["ServiceService", "GetServiceSecretsSchema", { serviceId: service }],
  },
  "call a tool of a disabled service": {
    rest: ({ service }) => ["POST", `/tools/${service}/getStats/invoke`, {}],
    rpc: ({ service }) => ["ToolService", "InvokeTool", { serviceId: service, toolId: "getStats" }],
  },
  "enable a service": {
    rest: ({ service }) => ["POST", `/services/${service}/enabled`, { enabled: true }],
    rpc: ({ service }) => ["ServiceService", "SetServiceEnabled", { serviceId: service, enabled: true }],
  },
  "list tools": {
    rest: ({ service }) => ["GET", `/tools?serviceId=${service}&limit=2`],
    rpc: ({ service }) => ["ToolService", "ListTools", { serviceId: service, limit: 2 }],
  },
  "search tools": {
    rest: ({ service }) => ["GET", `/tools?serviceId=${service}&query=photo`],
    rpc: ({ service }) => ["ToolService", "ListTools", { serviceId: service, query: "photo" }],
  },
  "get a tool with its schemas": {
    rest: ({ service }) => ["GET", `/tools/${service}/listPets`],
    rpc: ({ service }) => ["ToolService", "GetTool", { serviceId: service, toolId: "listPets" }],
    field: "tool",
  },
  "call a tool": {
    rest: ({ service }) => ["POST", `/tools/${service}/listPets/invoke`, { parameters: { query: { tags: ["calm"] } } }],
    rpc: ({ service }) => [
      "ToolService",
      "InvokeTool",
      { serviceId: service, toolId: "listPets", parameters: { query: { tags: ["calm"] } } },
    ],
  },
  "call a tool with parameters that do not fit": {
    rest: ({ service }) => ["POST", `/tools/${service}/getPet/invoke`, { parameters: { path: { petId: "x" } } }],
    rpc: ({ service }) => [
      "ToolService",
      "InvokeTool",
      { serviceId: service, toolId: "getPet", parameters: { path: { petId: "x" } } },
    ],
  },
  "call a tool that is not there": {
    rest: ({ service }) => ["POST", `/tools/${service}/nothing/invoke`, {}],
    rpc: ({ service }) => ["ToolService", "InvokeTool", { serviceId: service, toolId: "nothing" }],
  },
  "forbid a tool": {
    rest: ({ service }) => ["POST", `/tools/${service}/getStats/enabled`, { enabled: false }],
    rpc: ({ service }) => ["ToolService", "SetToolEnabled", { serviceId: service, toolId: "getStats", enabled: false }],
  },
  "call a forbidden tool": {
    rest: ({ service }) => ["POST", `/tools/${service}/getStats/invoke`, {}],
    rpc: ({ service }) => ["ToolService", "InvokeTool", { serviceId: service, toolId: "getStats" }],
  },
  "disable a service": {
    rest: ({ service }) => ["POST", `/services/${service}/enabled`, { enabled: false }],
    rpc: ({ service }) => ["ServiceService", "SetServiceEnabled", { serviceId: service, enabled: false }],
  },
  "get a registry that is not there": {
    rest: () => ["GET", "/registries/nowhere"],
    rpc: () => ["RegistryService", "GetRegistry", { id: "nowhere" }],
  },
  "list registries": {
    rest: () => ["GET", "/registries"],
    rpc: () => ["RegistryService", "ListRegistries", {}],
  },
  "add a registry that is none": {
    rest: () => ["POST", "/registries", { baseUrl: "ftp://x.test" }],
    rpc: () => ["RegistryService", "AddRegistry", { baseUrl: "ftp://x.test" }],
  },
  "set auth of a registry that is not there": {
    rest: () => ["POST", "/registries/nowhere/auth", { type: "apiKey", apiKey: "k" }],
    rpc: () => ["RegistryService", "SetRegistryAuth", { id: "nowhere", auth: { type: "apiKey", apiKey: "k" } }],
  },
  "set auth without a key": {
    rest: () => ["POST", "/registries/nowhere/auth", { type: "apiKey" }],
    rpc: () => ["RegistryService", "SetRegistryAuth", { id: "nowhere", auth: { type: "apiKey" } }],
  },
  "browse with a limit that is too high": {
    rest: () => ["GET", "/registries/nowhere/definitions?limit=201"],
    rpc: () => ["RegistryService", "BrowseDefinitions", { id: "nowhere", limit: 201 }],
  },
  "browse a registry that is not there": {
    rest: () => ["GET", "/registries/nowhere/modules"],
    rpc: () => ["RegistryService", "BrowseModules", { id: "nowhere" }],
  },
  "list modules": {
    rest: () => ["GET", "/modules?type=environment&isBuiltin=true&limit=5"],
    rpc: () => ["ModuleService", "ListModules", { type: "MODULE_TYPE_ENVIRONMENT", isBuiltin: true, limit: 5 }],
  },
  "list modules that are missing": {
    rest: () => ["GET", "/modules?missing=true&enabled=true&query=nothing"],
    rpc: () => ["ModuleService", "ListModules", { missing: true, enabled: true, query: "nothing" }],
  },
  "get a module": {
    rest: () => ["GET", "/modules/openapi"],
    rpc: () => ["ModuleService", "GetModule", { moduleId: "openapi" }],
    field: "module",
  },
  "get a module that is not there": {
    rest: () => ["GET", "/modules/nope"],
    rpc: () => ["ModuleService", "GetModule", { moduleId: "nope" }],
  },
  "install a module from nowhere": {
    rest: () => ["POST", "/modules", {}],
    rpc: () => ["ModuleService", "InstallModule", {}],
  },
  "install a module without a hash": {
    rest: () => ["POST", "/modules", { source: "http://127.0.0.1:9/module.tgz" }],
    rpc: () => ["ModuleService", "InstallModule", { source: "http://127.0.0.1:9/module.tgz" }],
  },
  "install a module that is there": {
    rest: () => ["POST", "/modules", { registryId: "nowhere", moduleId: "openapi" }],
    rpc: () => ["ModuleService", "InstallModule", { registryId: "nowhere", moduleId: "openapi" }],
  },
  "install a module of a registry that is not there": {
    rest: () => ["POST", "/modules", { registryId: "nowhere", moduleId: "toy" }],
    rpc: () => ["ModuleService", "InstallModule", { registryId: "nowhere", moduleId: "toy" }],
  },
  "delete a module that is built in": {
    rest: () => ["DELETE", "/modules/openapi"],
    rpc: () => ["ModuleService", "DeleteModule", { moduleId: "openapi" }],
  },
  "update a module that is built in": {
    rest: () => ["POST", "/modules/openapi/update", {}],
    rpc: () => ["ModuleService", "UpdateModule", { moduleId: "openapi" }],
  },
  "roll back a module that is built in": {
    rest: () => ["POST", "/modules/openapi/rollback", {}],
    rpc: () => ["ModuleService", "RollBackModule", { moduleId: "openapi" }],
  },
  "enable a module that is enabled": {
    rest: () => ["POST", "/modules/javascript/enabled", { enabled: true }],
    rpc: () => ["ModuleService", "SetModuleEnabled", { moduleId: "javascript", enabled: true }],
  },
  "set the auto-update of a module that is built in": {
    rest: () => ["POST", "/modules/openapi/auto-update", { autoUpdate: true, constraint: "^1.0.0" }],
    rpc: () => [
      "ModuleService",
      "SetModuleAutoUpdate",
      { moduleId: "openapi", autoUpdate: true, constraint: "^1.0.0" },
    ],
  },
  "set the auto-update of a module to what is no range": {
    rest: () => ["POST", "/modules/openapi/auto-update", { autoUpdate: true, constraint: "not a range" }],
    rpc: () => [
      "ModuleService",
      "SetModuleAutoUpdate",
      { moduleId: "openapi", autoUpdate: true, constraint: "not a range" },
    ],
  },
  "change the configuration of a module": {
    rest: () => ["PATCH", "/modules/javascript/config", add("/memoryMb", 64)],
    rpc: () => [
      "ModuleService",
      "PatchModuleConfig",
      { moduleId: "javascript", patch: [{ op: "add", path: "/memoryMb", value: 64 }] },
    ],
  },
  "change the configuration of a module against its schema": {
    rest: () => ["PATCH", "/modules/javascript/config", add("/unknown", 1)],
    rpc: () => [
      "ModuleService",
      "PatchModuleConfig",
      { moduleId: "javascript", patch: [{ op: "add", path: "/unknown", value: 1 }] },
    ],
  },
  "read the configuration schema of a module": {
    rest: () => ["GET", "/modules/javascript/config/schema"],
    rpc: () => ["ModuleService", "GetModuleConfigSchema", { moduleId: "javascript" }],
  },
  "read the secrets of a module": {
    rest: () => ["GET", "/modules/javascript/secrets"],
    rpc: () => ["ModuleService", "GetModuleSecrets", { moduleId: "javascript" }],
  },
  "read the secrets schema of a module": {
    rest: () => ["GET", "/modules/javascript/secrets/schema"],
    rpc: () => ["ModuleService", "GetModuleSecretsSchema", { moduleId: "javascript" }],
  },
  "set a secret that a module does not have": {
    rest: () => ["PATCH", "/modules/javascript/secrets", add("/token", "x")],
    rpc: () => [
      "ModuleService",
      "PatchModuleSecrets",
      { moduleId: "javascript", patch: [{ op: "add", path: "/token", value: "x" }] },
    ],
  },
  "read the icon of a module that has none": {
    rest: () => ["GET", "/modules/javascript/icon"],
    rpc: () => ["ModuleService", "GetModuleIcon", { moduleId: "javascript" }],
  },
  "read the icon of a service that has none": {
    rest: ({ service }) => ["GET", `/services/${service}/icon`],
    rpc: ({ service }) => ["ServiceService", "GetServiceIcon", { serviceId: service }],
  },
  "reload the modules": {
    rest: () => ["POST", "/modules/reload", {}],
    rpc: () => ["ModuleService", "ReloadModules", {}],
  },
  "list log records": {
    rest: () => ["GET", "/logs?event=listening&level=info&levelMin=debug&query=takes&limit=5"],
    rpc: () => [
      "LogService",
      "ListLogs",
      { event: "listening", level: "LOG_LEVEL_INFO", levelMin: "LOG_LEVEL_DEBUG", query: "takes", limit: 5 },
    ],
  },
  "list log records of a process that is none": {
    rest: () => ["GET", "/logs?processId=0"],
    rpc: () => ["LogService", "ListLogs", { processId: 0 }],
  },
  "list log records with the cursor of another list": {
    rest: () => ["GET", "/logs?cursor=eyJ2IjoxLCJrIjpbMSwyXX0"],
    rpc: () => ["LogService", "ListLogs", { cursor: "eyJ2IjoxLCJrIjpbMSwyXX0" }],
  },
  "delete a service": {
    rest: ({ service }) => ["DELETE", `/services/${service}`],
    rpc: ({ service }) => ["ServiceService", "DeleteService", { serviceId: service }],
  },
};

/** The answer in a form both faces share: no nulls, and names, ids and times that belong to one twin made the same. */
function shared(value: unknown, name = ""): unknown {
  if (Array.isArray(value)) return value.map((item) => shared(item));
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).filter(
      ([key, member]) => member !== null && key !== "nextCursor" && key !== "reason",
    );
    return Object.fromEntries(entries.map(([key, member]) => [key, shared(member, key)]).sort());
  }
  if (name === "id" && /^[0-9]+$/.test(String(value))) return "a number";
  if (name === "pid" || name === "seq") return "a number";
  if (typeof value === "string") {
    if (/^\d{4}-\d\d-\d\dT/.test(value)) return "a time";
    const enumeration = /^(?:PROCESS_(?:EXIT_)?STATE|MODULE_TYPE|LOG_LEVEL)_([A-Z]+)$/.exec(value);
    if (enumeration !== null) return enumeration[1]?.toLowerCase();
    return value.replace(/\b(rest|rpc)\b/g, "twin").replace(/process \d+/gi, "process N");
  }
  return value;
}

interface Told {
  readonly status: number;
  readonly body: unknown;
}

async function byRest([method, path, body]: readonly [string, string, unknown?]): Promise<Told> {
  const answer: Answer = await server.call(method, path, body);
  if (answer.status < 400) return { status: 200, body: shared(answer.body ?? {}) };
  return { status: answer.status, body: shared({ code: answer.body.code, error: answer.body.error }) };
}

async function byRpc([service, method, request]: readonly [string, string, JsonValue], field?: string): Promise<Told> {
  try {
    const answer = (await client.call(service, method, request)) as Record<string, unknown>;
    return { status: 200, body: shared(field === undefined ? answer : answer[field]) };
  } catch (error) {
    const { code, details, metadata } = error as grpc.ServiceError;
    const info = String(metadata.get("grpc-status-details-bin")[0] ?? "");
    const kind = (Object.keys(catalogue) as FailureKind[]).find(
      (name) => catalogue[name].grpc === code && info.includes(name),
    );
    return { status: catalogue[kind ?? "internal"].rest, body: shared({ code: kind, error: details }) };
  }
}

describe("through both faces the same answer: ", () => {
  for (const [what, { rest, rpc, field }] of Object.entries(cases)) {
    it(what, async () => {
      const restAnswer = await byRest(rest(twins.rest));
      const rpcAnswer = await byRpc(rpc(twins.rpc), field);
      expect(rpcAnswer).toEqual(restAnswer);
      expect(restAnswer.status).not.toBe(500);
    });
  }

  it("text resources", async () => {
    const { body } = await server.post("/processes", { code: "console.log('out'); console.error('err')" });
    await server.get(`/processes/${body.id}?wait=30`);
    for (const [path, method, field] of [
      ["code", "GetProcessCode", "code"],
      ["stdout", "GetProcessStdout", "stdout"],
      ["stderr", "GetProcessStderr", "stderr"],
    ] as const) {
      const answer = (await client.call("ProcessService", method, { id: body.id })) as Record<string, string>;
      expect(answer[field]).toBe((await server.get(`/processes/${body.id}/${path}`)).text);
    }
    const docs = (await client.call("ToolService", "GetEnvironmentDocs", {})) as { docs: string };
    const page = await server.get("/environment/docs");
    expect(docs.docs).toBe(page.text);
    expect(page.headers.get("content-type")).toBe("text/markdown; charset=utf-8");
  });

  it("covers every rpc of troupe.v1", () => {
    expect(client.services.filter((name) => name.startsWith("troupe."))).toEqual([
      "troupe.v1.DiagnosticsService",
      "troupe.v1.EventService",
      "troupe.v1.LogService",
      "troupe.v1.MaintenanceService",
      "troupe.v1.ModuleService",
      "troupe.v1.ProcessService",
      "troupe.v1.RegistryService",
      "troupe.v1.ServiceService",
      "troupe.v1.ToolService",
    ]);
  });
});
