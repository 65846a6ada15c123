/**
 * Every operation × (no key, an agent's key, an operator's key). Who may do what is written down here, apart from the server's own rows:
 * an operation that is new, or changes hands, is red until somebody decides it here as well.
 */
import grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { troupeServices } from "../../src/control-plane/services.ts";
import { type Server, startServer } from "./server.ts";

/** By operationId of the OpenAPI document. Metrics need no key from this machine. */
const anybody = `getOpenApiDocument getDocsPage getDocsStyle getAgentGuide getLiveness getReadiness getMetrics`.split(
  " ",
);

/** Reads everything, browses, does all with processes, calls tools. */
const agents = `
  createProcess listProcesses getProcess deleteProcess runProcess killProcess unloadProcess getProcessOutput getProcessCode
  getProcessStdout getProcessStderr watchProcess
  listRegistries getRegistry getRegistryAuth browseDefinitions browseModules getRegistryDefinitionIcon getRegistryModuleIcon
  listModules getModule getModuleConfig getModuleConfigSchema getModuleSecrets getModuleSecretsSchema getModuleIcon
  listServices getService getServiceIcon getServiceConfig getServiceConfigSchema getServiceSecrets getServiceSecretsSchema
  listTools getTool getToolDocs invokeTool getEnvironmentDocs listLogs watchLogs callMcp`
  .trim()
  .split(/\s+/);

const operators = `
  addRegistry deleteRegistry refreshRegistry setRegistryAuth deleteRegistryAuth
  installModule deleteModule setModuleEnabled updateModule rollBackModule reloadModules setModuleAutoUpdate patchModuleConfig
  patchModuleSecrets
  createService deleteService setServiceEnabled patchServiceConfig patchServiceSecrets updateService syncService
  setServiceAutoUpdate setToolEnabled`
  .trim()
  .split(/\s+/);

/** Rpcs that have no route of their own. */
const rpcAgents: readonly string[] = ["EventService/WatchEvents", "ProcessService/WatchProcesses"];

const rpcOperators = `
  DiagnosticsService/GetActor DiagnosticsService/GetLogLevel DiagnosticsService/GetNode DiagnosticsService/ListActors
  DiagnosticsService/ListDeadLetters DiagnosticsService/ListExecutors DiagnosticsService/RestartActor DiagnosticsService/SetLogLevel
  MaintenanceService/Backup MaintenanceService/Drain MaintenanceService/Verify`
  .trim()
  .split(/\s+/);

interface Documented {
  readonly operationId: string;
  readonly method: string;
  readonly path: string;
}

let server: Server;
let documented: readonly Documented[];
beforeAll(async () => {
  server = await startServer({ settings: { SERVICE_API_KEYS: "a:agent:agent-key,o:operator:operator-key" } });
  const { paths } = (await server.get("/openapi.json")).body as {
    paths: Record<string, Record<string, { operationId: string }>>;
  };
  documented = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => ({ operationId, method: method.toUpperCase(), path })),
  );
});
afterAll(() => server.kill());

/** Of things that are not there: who may not ask is to be told so, and nothing else. Streams are left once they have begun. */
async function ask(
  operationId: string,
  key: string | undefined,
): Promise<{ status: number; code: string | undefined }> {
  const { method, path } = documented.find((one) => one.operationId === operationId) ?? expect.unreachable(operationId);
  const stop = new AbortController();
  const response = await fetch(server.http + path.replace(/\{\w+\}/g, "9999"), {
    method,
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(method === "GET" || method === "DELETE" ? {} : { "content-type": "application/json" }),
    },
    ...(method === "GET" || method === "DELETE" ? {} : { body: method === "PATCH" ? "[]" : "{}" }),
    signal: stop.signal,
  });
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  const { code } = isJson ? ((await response.json()) as { code?: string }) : {};
  stop.abort();
  return { status: response.status, code };
}

/** Code of grpc; 0 as soon as there is an answer. Nothing is in the request, and no rpc says more than that for want of it. */
async function askRpc(rpc: string, key: string | undefined): Promise<number> {
  const metadata = new grpc.Metadata();
  if (key !== undefined) metadata.set("authorization", `Bearer ${key}`);
  const client = new grpc.Client(server.grpc, grpc.credentials.createInsecure());
  const pass = (bytes: Buffer): Buffer => bytes;
  const call = client.makeServerStreamRequest(`/troupe.v1.${rpc}`, pass, pass, Buffer.alloc(0), metadata);
  try {
    return await new Promise<number>((resolve) => {
      call.once("data", () => resolve(grpc.status.OK));
      call.once("end", () => resolve(grpc.status.OK));
      call.on("error", (error) => resolve((error as grpc.ServiceError).code));
    });
  } finally {
    call.cancel();
    client.close();
  }
}

const refusedRoles: readonly number[] = [grpc.status.UNAUTHENTICATED, grpc.status.PERMISSION_DENIED];

const may = (answer: { status: number }): boolean => answer.status !== 401 && answer.status !== 403;

describe("who may do what", () => {
  it("is decided here for every operation that there is", () => {
    expect(documented.map(({ operationId }) => operationId).sort()).toEqual(
      [...anybody, ...agents, ...operators].sort(),
    );
  });

  it.each(anybody)("%s asks nobody for a key", async (operationId) => {
    for (const key of [undefined, "agent-key", "operator-key", "unknown"])
      expect(may(await ask(operationId, key))).toBe(true);
  });

  it.each(agents)("%s is for agents and operators", async (operationId) => {
    expect(await ask(operationId, undefined)).toEqual({ status: 401, code: "unauthenticated" });
    for (const key of ["agent-key", "operator-key"]) expect(may(await ask(operationId, key)), key).toBe(true);
  });

  it.each(operators)("%s is for operators", async (operationId) => {
    expect(await ask(operationId, undefined)).toEqual({ status: 401, code: "unauthenticated" });
    expect(await ask(operationId, "agent-key")).toEqual({ status: 403, code: "forbidden" });
    expect(may(await ask(operationId, "operator-key"))).toBe(true);
  });

  it("is decided here for every rpc without a route", () => {
    const names = new Set(documented.map(({ operationId }) => operationId));
    const without = troupeServices.flatMap(({ name, methods }) =>
      methods.filter(({ localName }) => !names.has(localName)).map((method) => `${name}/${method.name}`),
    );
    expect(without.sort()).toEqual([...rpcAgents, ...rpcOperators].sort());
  });

  it.each(rpcAgents)("%s is for agents and operators", async (rpc) => {
    expect(await askRpc(rpc, undefined)).toBe(grpc.status.UNAUTHENTICATED);
    for (const key of ["agent-key", "operator-key"]) expect(refusedRoles).not.toContain(await askRpc(rpc, key));
  });

  it.each(rpcOperators)("%s is for operators", async (rpc) => {
    expect(await askRpc(rpc, undefined)).toBe(grpc.status.UNAUTHENTICATED);
    expect(await askRpc(rpc, "agent-key")).toBe(grpc.status.PERMISSION_DENIED);
    // Drain would end this server: its own test asks it.
    if (!rpc.endsWith("/Drain")) expect(refusedRoles).not.toContain(await askRpc(rpc, "operator-key"));
  });
});
