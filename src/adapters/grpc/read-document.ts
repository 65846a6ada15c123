/**
 * Definition documents: text to a target and a descriptor set. Runs in the descriptor worker.
 *
 *   {"target": "grpc://…", "descriptorSet": "<base64>", "services"?: ["package.Service"]}
 *   {"target": "grpcs://…", "reflection": true, "listed": [names], "descriptorSet": "<base64>"}
 *                                                                                 what discovery makes: a sync asks again
 *   {"target": "grpcs://…"}                                                       no tools until the service is synced
 *   CgsKBWEucHJvdG8…                                                              a descriptor set in base64 and nothing else
 */
import { documentBytesMax, grpcServicesMax } from "../../limits.ts";
import { readTarget } from "./target.ts";
import { shortened, unusable } from "./unusable.ts";

export interface DocumentParts {
  /** In its one spelling; null: the document does not say. */
  readonly target: string | null;
  /** Full names of those that were asked for; null: all. */
  readonly services: readonly string[] | null;
  /** Full names of those the target itself lists; null: it was not asked. */
  readonly listed: readonly string[] | null;
  /** Whether the set came from the target itself, so that asking it again makes sense. */
  readonly reflection: boolean;
  readonly descriptorSet: Uint8Array | null;
}

const known = new Set(["target", "services", "reflection", "listed", "descriptorSet"]);

/** @throws Failure invalid_request. */
export function readDocument(text: string): DocumentParts {
  if (Buffer.byteLength(text) > documentBytesMax) throw unusable(`it is larger than ${documentBytesMax} bytes`);
  const trimmed = text.replace(/^\uFEFF/, "").trim();
  if (trimmed === "") throw unusable("it is empty");
  if (!trimmed.startsWith("{")) {
    return { target: null, services: null, listed: null, reflection: false, descriptorSet: readBase64(trimmed, "it") };
  }
  const document = readObject(trimmed);
  const strange = Object.keys(document).find((key) => !known.has(key));
  if (strange !== undefined) {
    throw unusable(`it has "${shortened(strange, 64)}"; known are ${[...known].map((key) => `"${key}"`).join(", ")}`);
  }
  const { target, reflection, descriptorSet } = document;
  if (target === undefined && descriptorSet === undefined) {
    throw unusable('it has neither "target" nor "descriptorSet"');
  }
  if (descriptorSet !== undefined && typeof descriptorSet !== "string") {
    throw unusable('its "descriptorSet" is not text: it must be a FileDescriptorSet in base64');
  }
  return {
    target: target === undefined ? null : readTarget(target).text,
    services: readServices("services", document.services),
    listed: readServices("listed", document.listed),
    reflection: reflection === true || descriptorSet === undefined,
    descriptorSet: descriptorSet === undefined ? null : readBase64(descriptorSet, 'its "descriptorSet"'),
  };
}

function readObject(text: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    throw unusable("it begins like JSON and is not valid JSON");
  }
}

function readServices(key: string, services: unknown): readonly string[] | null {
  if (services === undefined) return null;
  const isList = Array.isArray(services) && services.every((name) => typeof name === "string");
  if (!isList || services.length === 0 || services.length > grpcServicesMax) {
    throw unusable(`its "${key}" must be a list of full service names, such as "acme.shop.v1.Shop"`);
  }
  return [...new Set<string>(services)];
}

function readBase64(text: string, subject: string): Uint8Array {
  const joined = text.replaceAll(/\s+/g, "");
  if (joined === "" || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(joined)) {
    throw unusable(
      `${subject} is not base64 of a FileDescriptorSet; make one with "buf build -o set.binpb" or "protoc --include_imports --descriptor_set_out=set.binpb" and send "base64 -w0 set.binpb"`,
    );
  }
  return Buffer.from(joined, "base64");
}
