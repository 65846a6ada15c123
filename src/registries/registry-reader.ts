/**
 * The RegistryReader port: what to ask a registry for, and what to make of the answer. How it is asked, and with which
 * credentials, is in `registry-requests.ts`.
 */
import { createHash } from "node:crypto";
import { Failure } from "../errors/failure.ts";
import { registryArtifactMs, registryDocumentBytesMax, wellKnownBytesMax } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { CredentialedFetcher } from "../ports/fetcher.ts";
import type { Log } from "../ports/log.ts";
import type { RegistryReader } from "../ports/registry-reader.ts";
import { readDescriptor } from "./descriptors.ts";
import { pageUrl, readPage } from "./pages.ts";
import { plaintextExemption } from "./plaintext-exemption.ts";
import { readAnonymously, readFromRegistry } from "./registry-requests.ts";
import { requireSafeTransport } from "./safe-transport.ts";
import { exchangeToken } from "./token-exchange.ts";
import { readWellKnown, wellKnownUrl } from "./well-known.ts";

export interface RegistryReaderOptions {
  readonly egress: CredentialedFetcher;
  /** Entries of SERVICE_REGISTRY_AUTH_INSECURE_CIDRS. */
  readonly insecureCidrs: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

const json = "application/json";

/** @throws Failure refused naming a malformed entry of the setting. */
export function openRegistryReader({ egress, insecureCidrs, clock, log }: RegistryReaderOptions): RegistryReader {
  const exemption = plaintextExemption(insecureCidrs);
  const parts = { egress, exemption, clock, log };
  return {
    async advertisement(baseUrl, signal) {
      const url = wellKnownUrl(baseUrl);
      const what = `The well-known document of "${new URL(url).host}"`;
      const answer = await readAnonymously(
        egress,
        { url, what, accept: json, bodyBytesMax: wellKnownBytesMax },
        signal,
      );
      return readWellKnown(answer.body, new URL(answer.url));
    },

    async page(access, kind, capabilityUrl, query) {
      const what = `The ${kind} page of registry "${access.registryId}"`;
      const url = pageUrl(capabilityUrl, query);
      const request = { url, what, accept: json, bodyBytesMax: registryDocumentBytesMax };
      return readPage((await readFromRegistry(parts, access, request)).body, kind, capabilityUrl, what);
    },

    async descriptor(access, source) {
      const what = `The entry descriptor of registry "${access.registryId}"`;
      const request = { url: source, what, accept: json, bodyBytesMax: registryDocumentBytesMax };
      return readDescriptor((await readFromRegistry(parts, access, request)).body, source, what);
    },

    async artifact(access, url, bytesMax, hash) {
      const what = `The download from registry "${access.registryId}"`;
      const request = { url, what, accept: "*/*", bodyBytesMax: bytesMax, exchangeMs: registryArtifactMs };
      const { body } = await readFromRegistry(parts, access, request);
      if (hash !== null && createHash("sha256").update(body).digest("hex") !== hash.toLowerCase())
        throw new Failure("upstream_failed", `${what} does not have the SHA-256 that the registry gives for it`);
      return body;
    },

    exchange: (request, signal) => exchangeToken(egress, exemption, request, signal),
    requireSafeTransport: (url, signal) => requireSafeTransport(egress, exemption, clock, url, signal),
  };
}
