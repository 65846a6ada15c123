/** Fields at fault, from the words of the proto files to those of a caller in TypeScript. */
import { expect, it } from "vitest";
import { localPath } from "../../src/client/local-path.ts";
import { WatchEventsRequestSchema } from "../../src/gen/troupe/v1/event_service_pb.ts";
import { CreateProcessRequestSchema } from "../../src/gen/troupe/v1/process_service_pb.ts";
import { AddRegistryRequestSchema } from "../../src/gen/troupe/v1/registry_service_pb.ts";
import { PatchServiceConfigRequestSchema } from "../../src/gen/troupe/v1/service_service_pb.ts";

it.each([
  ["a field of two words", CreateProcessRequestSchema, "timeout_ms", "timeoutMs"],
  ["a key inside a Struct", CreateProcessRequestSchema, "env_config.some_key", "envConfig.some_key"],
  ["a field of a message", AddRegistryRequestSchema, "auth.client_id", "auth.clientId"],
  ["an item of a list", WatchEventsRequestSchema, "kinds[1]", "kinds[1]"],
  ["a field of an item", PatchServiceConfigRequestSchema, "patch[2].path", "patch[2].path"],
  ["what is no field of the request", PatchServiceConfigRequestSchema, "config.time_out", "config.time_out"],
  ["a field of an unknown request", undefined, "timeout_ms", "timeout_ms"],
  ["nothing", CreateProcessRequestSchema, "", ""],
])("the path of %s", (_, request, path, expected) => {
  expect(localPath(path, request)).toBe(expected);
});
