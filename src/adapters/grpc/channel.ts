/** A gRPC client to one target: dials approved addresses only, no proxy, no retries, nothing shared with other services. */
import { X509Certificate } from "node:crypto";
import grpc from "@grpc/grpc-js";
import { Failure } from "../../errors/failure.ts";
import { grpcIdleMs, grpcReconnectMaxMs, grpcReconnectMinMs } from "../../limits.ts";
import type { Clock } from "../../ports/clock.ts";
import type { CredentialedFetcher } from "../../ports/fetcher.ts";
import { type Judging, judgedScheme, judgingOption } from "./judged-resolver.ts";
import type { Target } from "./target.ts";

export type Addresses = Pick<CredentialedFetcher, "approve">;

/** PEM texts; absent ones are the platform's roots and no client certificate. */
export interface TlsSecrets {
  readonly caCertificate?: string;
  readonly clientCertificate?: string;
  readonly clientKey?: string;
}

export interface ChannelParts {
  readonly target: Target;
  readonly tls: TlsSecrets;
  readonly addresses: Addresses;
  readonly answerBytesMax: number;
  readonly clock: Clock;
}

/** Connects with its first call. @throws Failure invalid_request when the TLS secrets cannot be used. */
export function openChannel({ target, tls, addresses, answerBytesMax, clock }: ChannelParts): grpc.Client {
  const judging: Judging = {
    approve: () => addresses.approve(target.url),
    port: target.port,
    after: (delayMs, action) => clock.after(delayMs, action),
  };
  return new grpc.Client(`${judgedScheme}:${target.authority}`, credentials(target, tls), {
    [judgingOption]: judging,
    "grpc.enable_http_proxy": 0,
    // A tool call is never made twice by itself.
    "grpc.enable_retries": 0,
    "grpc.service_config_disable_resolution": 1,
    "grpc.use_local_subchannel_pool": 1,
    "grpc.max_receive_message_length": answerBytesMax,
    "grpc.initial_reconnect_backoff_ms": grpcReconnectMinMs,
    "grpc.max_reconnect_backoff_ms": grpcReconnectMaxMs,
    "grpc.client_idle_timeout_ms": grpcIdleMs,
    "grpc.enable_channelz": 0,
  });
}

function credentials(target: Target, { caCertificate, clientCertificate, clientKey }: TlsSecrets) {
  const given = Object.entries({ caCertificate, clientCertificate, clientKey }).filter(([, pem]) => pem !== undefined);
  if (!target.tls) {
    if (given.length > 0) {
      throw new Failure("invalid_request", `Secret "${given[0]?.[0]}" needs a "grpcs" target: this one is plain text`);
    }
    return grpc.credentials.createInsecure();
  }
  if ((clientCertificate === undefined) !== (clientKey === undefined)) {
    throw new Failure("invalid_request", 'Secrets "clientCertificate" and "clientKey" must be set together');
  }
  try {
    // The TLS library takes text that is no certificate for an empty list.
    for (const pem of [caCertificate, clientCertificate]) if (pem !== undefined) new X509Certificate(pem);
    return grpc.credentials.createSsl(bytes(caCertificate), bytes(clientKey), bytes(clientCertificate));
  } catch (error) {
    const names = given.map(([name]) => `"${name}"`).join(", ");
    throw new Failure(
      "invalid_request",
      `The TLS secrets cannot be used: ${names} must be PEM texts that belong together`,
      {
        cause: error,
      },
    );
  }
}

function bytes(pem: string | undefined): Buffer | null {
  return pem === undefined ? null : Buffer.from(pem);
}
