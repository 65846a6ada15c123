/** Fields at fault as clients of the proto files know them. */
import { describe, expect, it } from "vitest";
import { protoPath, withProtoPaths } from "../../src/control-plane/field-paths.ts";
import { Failure } from "../../src/errors/failure.ts";
import { WatchEventsRequestSchema } from "../../src/gen/troupe/v1/event_service_pb.ts";
import { CreateProcessRequestSchema } from "../../src/gen/troupe/v1/process_service_pb.ts";
import { AddRegistryRequestSchema, SetRegistryAuthRequestSchema } from "../../src/gen/troupe/v1/registry_service_pb.ts";
import { PatchServiceConfigRequestSchema } from "../../src/gen/troupe/v1/service_service_pb.ts";
import { InvokeToolRequestSchema } from "../../src/gen/troupe/v1/tool_service_pb.ts";

describe("the path of a field at fault", () => {
  it.each([
    ["a field of one word", CreateProcessRequestSchema, "ref", "ref"],
    ["a field of two words", CreateProcessRequestSchema, "timeoutMs", "timeout_ms"],
    ["a key inside a Struct", CreateProcessRequestSchema, "envConfig.someKey", "env_config.someKey"],
    ["an item of a list", WatchEventsRequestSchema, "kinds.1", "kinds[1]"],
    ["an item in brackets", PatchServiceConfigRequestSchema, "patch[0]", "patch[0]"],
    ["a field of an item", PatchServiceConfigRequestSchema, "patch.2.path", "patch[2].path"],
    ["a field of a message", AddRegistryRequestSchema, "auth.clientId", "auth.client_id"],
    ["an item of a list in a message", AddRegistryRequestSchema, "auth.scopes.0", "auth.scopes[0]"],
    [
      "a field that REST has outside of its message",
      SetRegistryAuthRequestSchema,
      "clientSecret",
      "auth.client_secret",
    ],
    ["a place in a Value", InvokeToolRequestSchema, "parameters.path.petId", "parameters.path.petId"],
    ["what is no field of the request", PatchServiceConfigRequestSchema, "config.timeoutMs", "config.timeoutMs"],
    ["nothing", CreateProcessRequestSchema, "", ""],
  ])("%s", (_, request, path, expected) => {
    expect(protoPath(path, request)).toBe(expected);
  });

  it("leaves the rest of a failure alone", () => {
    const cause = new Error("why");
    const failure = new Failure("invalid_request", "Wrong", {
      cause,
      fields: [{ field: "timeoutMs", description: "no" }],
    });
    const said = withProtoPaths(failure, CreateProcessRequestSchema);
    expect([said.kind, said.message]).toEqual(["invalid_request", "Wrong"]);
    expect(said.details).toEqual({ cause, fields: [{ field: "timeout_ms", description: "no" }] });
    const other = new Failure("conflict", "Not now");
    expect(withProtoPaths(other, CreateProcessRequestSchema)).toBe(other);
  });
});
