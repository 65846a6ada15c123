/** Asks an endpoint for its schema, or fetches a schema file, and gives the document that `define` reads. */
import { Failure } from "../../errors/failure.ts";
import { documentBytesMax, documentFetchMs, redirectsMax } from "../../limits.ts";
import type { DiscoveryTarget } from "../../ports/adapter.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Fetcher, OutboundAnswer } from "../../ports/fetcher.ts";
import { withoutCredentials } from "../masking.ts";
import { readEndpoint, shownEndpoint } from "./endpoint.ts";
import { postHeaders } from "./graphql-service.ts";
import type { SchemaWorkers } from "./schema-workers.ts";
import { endpointOf, settingsHeaders } from "./settings.ts";

export interface DiscoveryParts {
  readonly workers: SchemaWorkers;
  readonly fetcher: Fetcher;
  readonly clock: Clock;
}

const inlineWay = 'give the schema itself (SDL or an introspection result) as "definition" and set config "endpoint"';

/**
 * Whom it asks: a schema file when `url` names one, else the configured endpoint, else `url`, else the endpoint of the document. With none
 * of them the document is all there is. Credentials go to endpoints only.
 */
export async function discoverSchema(parts: DiscoveryParts, target: DiscoveryTarget): Promise<string> {
  const { url, document, config, secrets, signal } = target;
  if (url !== undefined && isSchemaFile(readEndpoint(url))) return fetchFile(parts, readEndpoint(url), signal);
  const endpoint = endpointOf(config) ?? (url === undefined ? undefined : readEndpoint(url));
  if (endpoint !== undefined) return introspect(parts, { ...target, endpoint });
  if (document === undefined) throw new Failure("invalid_request", "A GraphQL service needs a url or a definition");
  const named = await parts.workers.endpoint({ text: document, url: undefined }, signal);
  return named === null ? document : introspect(parts, { config, secrets, signal, endpoint: named });
}

function isSchemaFile(url: string): boolean {
  return /\.(graphqls?|gql|json)$/i.test(new URL(url).pathname);
}

async function fetchFile({ fetcher }: DiscoveryParts, url: string, signal: AbortSignal): Promise<string> {
  const answer = await fetcher.fetch({
    method: "GET",
    url,
    headers: { accept: "application/graphql, application/json, text/plain, */*;q=0.5" },
    redirectsMax,
    bodyBytesMax: documentBytesMax,
    timeoutMs: documentFetchMs,
    signal,
  });
  if (answer.status < 200 || answer.status > 299) {
    throw new Failure("upstream_failed", `The server of the GraphQL schema answered with status ${answer.status}`);
  }
  return new TextDecoder().decode(answer.body);
}

type IntrospectionTarget = Pick<DiscoveryTarget, "config" | "secrets" | "signal"> & { readonly endpoint: string };

/** The newest query first; a server that does not know all of it is asked the oldest one, within the same time. */
async function introspect(parts: DiscoveryParts, target: IntrospectionTarget): Promise<string> {
  const { endpoint, signal, secrets } = target;
  const headers = postHeaders(settingsHeaders(target.config, secrets));
  const queries = await parts.workers.introspectionQueries(signal);
  const deadline = parts.clock.monotonic() + documentFetchMs;
  let refusal = "";
  for (const query of queries) {
    const timeoutMs = Math.max(1, deadline - parts.clock.monotonic());
    const answer = await parts.fetcher.fetch({
      method: "POST",
      url: endpoint,
      headers,
      body: JSON.stringify({ query, operationName: "IntrospectionQuery" }),
      redirectsMax: 0,
      bodyBytesMax: documentBytesMax,
      timeoutMs,
      signal,
    });
    requireAnswer(answer, target);
    const read = await parts.workers.introspected({ body: answer.body, endpoint }, signal);
    if (read.outcome === "document") return read.document;
    if (read.outcome === "foreign") throw cannot(endpoint, `${whatCame(answer)}, which is no GraphQL answer`);
    refusal = read.message;
  }
  const said = refusal === "" ? "" : ` ("${masked(refusal, secrets)}")`;
  throw cannot(endpoint, `it refuses introspection${said}; ${inlineWay}`);
}

function requireAnswer(answer: OutboundAnswer, { endpoint, secrets, config }: IntrospectionTarget): void {
  if (answer.status === 401 || answer.status === 403) {
    const known = Object.keys(settingsHeaders(config, secrets)).length > 0;
    const way = `install the service with the inline definition {"endpoint": "${shownEndpoint(endpoint)}"}, set its secrets, then sync it`;
    throw cannot(
      endpoint,
      `it answered with status ${answer.status}; ${known ? "check the secrets of the service" : way}`,
    );
  }
  if (answer.status >= 300 && answer.status < 400) {
    throw cannot(endpoint, `it answered with a redirect (status ${answer.status}), which is not followed`);
  }
}

function whatCame({ status, headers }: OutboundAnswer): string {
  const type = /^[\w!#$&^.+/-]{1,64}/.exec(headers["content-type"] ?? "")?.[0];
  return `it answered with status ${status} and a body ${type === undefined ? "without a content type" : `of type "${type}"`}`;
}

function cannot(endpoint: string, reason: string): Failure {
  return new Failure("upstream_failed", `Cannot read the GraphQL schema of "${shownEndpoint(endpoint)}": ${reason}`);
}

/** A target may repeat in its error what it was sent. */
function masked(text: string, secrets: Readonly<Record<string, unknown>>): string {
  const { bearerToken, headers } = secrets;
  const flat = { bearerToken, ...(typeof headers === "object" && headers !== null ? headers : {}) };
  return withoutCredentials({ text }, flat).text ?? "";
}
