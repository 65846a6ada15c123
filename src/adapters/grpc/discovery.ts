/** Asks a target what it offers, and gives the document that `define` reads. */
import grpc from "@grpc/grpc-js";
import { Failure } from "../../errors/failure.ts";
import { grpcReflectionAnswerBytesMax, grpcReflectionMs } from "../../limits.ts";
import type { DiscoveryTarget } from "../../ports/adapter.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Log } from "../../ports/log.ts";
import { type Addresses, openChannel } from "./channel.ts";
import type { DescriptorWorkers } from "./descriptor-workers.ts";
import { type ReflectedSet, readByReflection, refused } from "./reflection.ts";
import { openReflectionStream, type ReflectionVersion } from "./reflection-stream.ts";
import { type Settings, settingsMetadata, targetOf, tlsSecrets } from "./settings.ts";
import { isStatus, statusText } from "./status.ts";
import { readTarget, type Target } from "./target.ts";

export interface DiscoveryParts {
  readonly workers: DescriptorWorkers;
  readonly addresses: Addresses;
  readonly clock: Clock;
  readonly log: Log;
}

const versions: readonly ReflectionVersion[] = ["v1", "v1alpha"];

/**
 * Whom it asks: the configured target, else `url`, else the target of the document. A document whose descriptors were given by the caller is
 * all there is, and comes back as it was.
 */
export async function discoverServices(parts: DiscoveryParts, asked: DiscoveryTarget): Promise<string> {
  const { url, document, config, signal } = asked;
  const head = document === undefined ? undefined : await parts.workers.head({ text: document }, signal);
  if (url === undefined && document !== undefined && head?.reflection === false) return document;
  const named = url ?? head?.target ?? undefined;
  const own = named === undefined ? undefined : readTarget(named);
  const target = targetOf(config) ?? own;
  if (target === undefined) throw new Failure("invalid_request", "A gRPC service needs a url or a definition");
  const services = head?.services ?? null;
  const reflected = await reflect(parts, asked, target, services);
  return JSON.stringify({
    target: (own ?? target).text,
    reflection: true,
    ...(services === null ? { listed: reflected.services } : { services }),
    descriptorSet: Buffer.from(reflected.descriptorSet).toString("base64"),
  });
}

/** The newer version of the service first: the older is asked only where the newer does not exist. */
async function reflect(
  { workers, addresses, clock, log }: DiscoveryParts,
  { config, secrets, signal }: DiscoveryTarget,
  target: Target,
  services: readonly string[] | null,
): Promise<ReflectedSet> {
  const metadata = settingsMetadata(config, secrets);
  const client = openChannel({
    target,
    tls: tlsSecrets(secrets),
    addresses,
    answerBytesMax: grpcReflectionAnswerBytesMax,
    clock,
  });
  const deadline = clock.now() + grpcReflectionMs;
  try {
    for (const version of versions) {
      const stream = openReflectionStream(client, { version, metadata, deadline, signal });
      try {
        return await readByReflection({ stream, workers, log, signal, target: target.text }, services);
      } catch (error) {
        if (!isStatus(error) || error.code !== grpc.status.UNIMPLEMENTED) throw error;
      } finally {
        stream.close();
      }
    }
  } catch (error) {
    if (signal.aborted) throw new Failure("cancelled", "The caller went away");
    throw isStatus(error) ? statusRefusal(error, target, secrets) : error;
  } finally {
    client.close();
  }
  throw refused(
    target.text,
    'it has no reflection; make a descriptor set ("buf build -o set.binpb") and install the service with the inline definition ' +
      `{"target": "${target.text}", "descriptorSet": "<base64 of set.binpb>"}`,
  );
}

function statusRefusal(error: grpc.StatusObject, target: Target, secrets: Settings): Failure {
  const said = statusText(error, secrets);
  switch (error.code) {
    case grpc.status.DEADLINE_EXCEEDED:
      return new Failure("timeout", `"${target.text}" did not describe its services within ${grpcReflectionMs} ms`);
    case grpc.status.UNAUTHENTICATED:
    case grpc.status.PERMISSION_DENIED: {
      const way =
        Object.keys(secrets).length > 0
          ? "check the secrets of the service"
          : `install the service with the inline definition {"target": "${target.text}"}, set its secrets, then sync it`;
      return refused(target.text, `it answered ${said}; ${way}`);
    }
    default:
      return refused(target.text, `it answered ${said}`);
  }
}
