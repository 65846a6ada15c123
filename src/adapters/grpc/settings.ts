/** What is read from configuration and secrets. Their values were held against their schemas; what those cannot say is refused here. */
import grpc from "@grpc/grpc-js";
import { Failure } from "../../errors/failure.ts";
import { grpcMessagesDefault, grpcMessagesMax } from "../../limits.ts";
import type { TlsSecrets } from "./channel.ts";
import { timeoutMsDefault } from "./settings-schemas.ts";
import { readTarget, type Target } from "./target.ts";

export type Settings = Readonly<Record<string, unknown>>;

export function timeoutMsOf({ timeoutMs }: Settings): number {
  return typeof timeoutMs === "number" && timeoutMs > 0 ? timeoutMs : timeoutMsDefault;
}

export function messagesMaxOf({ maxMessages }: Settings): number {
  if (typeof maxMessages !== "number" || !Number.isInteger(maxMessages)) return grpcMessagesDefault;
  return Math.min(Math.max(maxMessages, 1), grpcMessagesMax);
}

/** The configured target, or undefined. @throws Failure invalid_request. */
export function targetOf({ target }: Settings): Target | undefined {
  return target === undefined ? undefined : readTarget(target);
}

export function tlsSecrets(secrets: Settings): TlsSecrets {
  const names = ["caCertificate", "clientCertificate", "clientKey"] as const;
  return Object.fromEntries(
    names.flatMap((name) => (typeof secrets[name] === "string" ? [[name, secrets[name]]] : [])),
  );
}

/** All that a target may repeat in its answers and must not. */
export function sentSecrets({ bearerToken, metadata }: Settings): Settings {
  return { bearerToken, ...(isObject(metadata) ? metadata : {}) };
}

/** Metadata of both settings together; of one name the secret counts. @throws Failure invalid_request, naming names only. */
export function settingsMetadata(config: Settings, secrets: Settings): grpc.Metadata {
  const metadata = new grpc.Metadata();
  for (const [name, value] of entries(config.metadata, "config")) metadata.set(name, value);
  for (const [name, value] of entries(secrets.metadata, "secrets")) metadata.set(name, value);
  const { bearerToken } = secrets;
  if (typeof bearerToken === "string" && bearerToken !== "") {
    if (!isText(bearerToken)) throw unsendable("bearerToken", "secrets");
    metadata.set("authorization", `Bearer ${bearerToken}`);
  }
  return metadata;
}

/** Set by the protocol or by the client library. */
const reserved = new Set([
  "connection",
  "content-length",
  "content-type",
  "host",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "user-agent",
]);

function entries(given: unknown, place: "config" | "secrets"): (readonly [string, string | Buffer])[] {
  if (!isObject(given)) return [];
  return Object.entries(given).map(([written, value]) => {
    const name = written.toLowerCase();
    if (!/^[0-9a-z_.-]{1,256}$/.test(name)) {
      throw new Failure("invalid_request", `A name in "metadata" of the ${place} is no metadata name`);
    }
    if (name.startsWith("grpc-") || reserved.has(name) || (name === "authorization" && place === "config")) {
      throw new Failure("invalid_request", `Metadata "${name}" cannot be set in the ${place}`);
    }
    if (typeof value !== "string") throw unsendable(name, place);
    if (!name.endsWith("-bin")) {
      if (!isText(value)) throw unsendable(name, place);
      return [name, value] as const;
    }
    if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(value)) throw unsendable(name, place);
    return [name, Buffer.from(value, "base64")] as const;
  });
}

/** What gRPC allows in a metadata value: visible ASCII and spaces. */
function isText(value: string): boolean {
  return /^[\x20-\x7e]*$/.test(value);
}

function unsendable(name: string, place: string): Failure {
  return new Failure("invalid_request", `The value of "${name}" in the ${place} holds what metadata cannot carry`);
}

function isObject(value: unknown): value is Settings {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
