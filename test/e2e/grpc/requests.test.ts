/** What a client of the proto files may get wrong in a request, and how it is told: the code, and the field in the words of the files. */
import type { DescMethod, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EventService } from "../../../src/gen/troupe/v1/event_service_pb.ts";
import { LogService } from "../../../src/gen/troupe/v1/log_service_pb.ts";
import { ModuleService } from "../../../src/gen/troupe/v1/module_service_pb.ts";
import { ProcessService } from "../../../src/gen/troupe/v1/process_service_pb.ts";
import { RegistryService } from "../../../src/gen/troupe/v1/registry_service_pb.ts";
import { ServiceService } from "../../../src/gen/troupe/v1/service_service_pb.ts";
import { ToolService } from "../../../src/gen/troupe/v1/tool_service_pb.ts";
import { removeFolder, type Server, startServer } from "../server.ts";
import { jsPeer } from "./js-peer.ts";
import { detailsOf, type Peer, type Told } from "./peer.ts";

const invalidArgument = 3;
const deadlineExceeded = 4;

const document = {
  openapi: "3.1.0",
  info: { title: "pets", version: "1.0.0" },
  servers: [{ url: "http://127.0.0.1:9" }],
  paths: {
    "/pets/{id}": {
      get: {
        operationId: "getPet",
        parameters: [{ name: "id", in: "path", required: true, schema: { type: "integer" } }],
        responses: { 200: { description: "A pet" } },
      },
    },
  },
};

let server: Server;
let peer: Peer;

beforeAll(async () => {
  server = await startServer();
  peer = jsPeer(server.grpc);
  await ask(ServiceService.method.createService, { id: "pets", adapter: "openapi", definition: document });
  expect((await ask(ServiceService.method.setServiceEnabled, { serviceId: "pets", enabled: true })).code).toBe(0);
}, 90_000);

afterAll(async () => {
  peer.close();
  await server.kill();
  await removeFolder(server.folder);
});

function ask(method: DescMethod, request: JsonObject, deadlineMs?: number): Promise<Told> {
  return peer.ask({ method, request, ...(deadlineMs === undefined ? {} : { deadlineMs }) });
}

function fieldsOf(told: Told): readonly string[] {
  const { BadRequest } = detailsOf(told) as { BadRequest?: { fieldViolations: { field?: string }[] } };
  return BadRequest?.fieldViolations.map(({ field = "" }) => field) ?? [];
}

async function expectRefused(method: DescMethod, request: JsonObject, field: string): Promise<void> {
  const told = await ask(method, request, 10_000);
  expect([told.code, told.messages]).toEqual([invalidArgument, []]);
  expect(detailsOf(told).ErrorInfo).toMatchObject({ reason: "invalid_request", domain: "troupe" });
  expect(fieldsOf(told)).toContain(field);
}

const oauth2 = { type: "oauth2", clientId: "a", clientSecret: "b", scopes: ["read"], noScopes: true };
const { method: processes } = ProcessService;
const { method: registries } = RegistryService;

describe("a request that says two things of which only one can be is refused", () => {
  it.each<[string, DescMethod, JsonObject, string]>([
    ["a limit, and none", processes.createProcess, { code: "", timeoutMs: 5, noTimeout: true }, "no_timeout"],
    ["an exit state, and none", processes.listProcesses, { exitState: 1, noExitState: true }, "no_exit_state"],
    [
      "scopes of a new registry, and none",
      registries.addRegistry,
      { baseUrl: "http://127.0.0.1:9", auth: oauth2 },
      "auth.no_scopes",
    ],
    ["scopes of a registry, and none", registries.setRegistryAuth, { id: "r", auth: oauth2 }, "auth.no_scopes"],
  ])("%s", (_, method, request, field) => expectRefused(method, request, field));
});

describe("a sequence below 0 to go on from is refused by", () => {
  it.each<[string, DescMethod, JsonObject]>([
    ["WatchProcess", processes.watchProcess, { id: 1 }],
    ["WatchProcesses", processes.watchProcesses, {}],
    ["WatchEvents", EventService.method.watchEvents, {}],
    ["WatchLogs", LogService.method.watchLogs, {}],
  ])("%s", (_, method, request) => expectRefused(method, { ...request, fromSequence: "-1" }, "from_sequence"));
});

let deep: JsonValue = {};
for (let depth = 0; depth < 70; depth += 1) deep = { a: deep };

describe("a refusal names the field at fault as the proto files do", () => {
  const { createService, getService } = ServiceService.method;
  const { invokeTool } = ToolService.method;
  const { installModule } = ModuleService.method;
  const pet = { serviceId: "pets", toolId: "getPet" };
  it.each<[string, DescMethod, JsonObject, string]>([
    ["no id", getService, {}, "service_id"],
    ["no URL of a service", createService, { url: "nowhere" }, "url"],
    ["no adapter of that name", createService, { definition: document, id: "a", adapter: "none" }, "adapter"],
    ["no URL of a registry", registries.addRegistry, { baseUrl: "nowhere" }, "base_url"],
    ["a password in the URL of a registry", registries.addRegistry, { baseUrl: "http://a:b@127.0.0.1:9" }, "base_url"],
    ["no kind of credentials", registries.addRegistry, { baseUrl: "http://127.0.0.1:9", auth: {} }, "auth.type"],
    ["no credentials", registries.setRegistryAuth, { id: "r" }, "auth.type"],
    ["no URL of a package", installModule, { source: "nowhere" }, "source"],
    ["no hash of a package", installModule, { source: "http://127.0.0.1:9/m.tgz" }, "hash"],
    ["a kind that is not set", EventService.method.watchEvents, { kinds: [4, 0] }, "kinds[1]"],
    ["a Struct too deep", processes.createProcess, { code: "", envConfig: deep }, "env_config"],
    ["parameters of another type", invokeTool, { ...pet, parameters: [] }, "parameters"],
    ["a parameter of another type", invokeTool, { ...pet, parameters: { path: { id: 1.5 } } }, "parameters.path.id"],
  ])("%s", (_, method, request, field) => expectRefused(method, request, field));
});

describe("a request that is unusual and right is served", () => {
  it.each([
    ["the last moment a timestamp can hold", { to: "9999-12-31T23:59:59.999999999Z" }],
    ["the first", { from: "0001-01-01T00:00:00Z" }],
    ["both", { from: "0001-01-01T00:00:00Z", to: "9999-12-31T23:59:59.999999999Z" }],
  ])("%s as a bound of ListLogs", async (_, bounds) => {
    const told = await ask(LogService.method.listLogs, { limit: 1, ...bounds });
    expect([told.code, told.messages]).toEqual([0, [expect.objectContaining({ items: [expect.anything()] })]]);
  });

  it("a kind that is named again and again", async () => {
    const told = await ask(EventService.method.watchEvents, { kinds: [3, 4, 3, 3, 4, 3, 3] }, 2_000);
    expect([told.code, told.messages.length]).toEqual([deadlineExceeded, 1]);
    expect(told.messages[0]).toMatchObject({ snapshot: { reason: "SNAPSHOT_REASON_START" } });
  });
});
