/**
 * Credentials: which schemes a document knows, which of them a call uses, and the one function that attaches them. It runs in
 * the server process only; the definition worker never sees a secret. No error names a secret's value.
 */
import { Failure } from "../../errors/failure.ts";
import { isCookieName, isHeaderName, isHeaderValue, isReservedHeader } from "../header-rules.ts";
import type { Requirement, SecurityScheme } from "./plan.ts";
import { isTree, own, ownText } from "./read-document.ts";
import type { References } from "./references.ts";

/** Schemes that need a conversation with the target, not a value. */
const conversational = /^(digest|negotiate|mutual|hoba|scram-.*|vapid|privatetoken|gnap)$/i;

export function readSchemes(value: unknown, references: References): Record<string, SecurityScheme> {
  if (!isTree(value)) return {};
  return Object.fromEntries(Object.keys(value).map((id) => [id, readScheme(references.resolve(value[id]))]));
}

function readScheme(value: unknown): SecurityScheme {
  const type = ownText(value, "type").toLowerCase();
  const description = ownText(value, "description");
  if (type === "apikey") return readApiKey(value, description);
  if (type === "oauth2" || type === "openidconnect") return { kind: "authorization", prefix: "Bearer", description };
  if (type !== "http")
    return { kind: "unsupported", reason: `schemes of type "${type.slice(0, 40)}" are not supported` };
  const scheme = ownText(value, "scheme");
  if (scheme.toLowerCase() === "basic") return { kind: "basic", description };
  if (scheme.toLowerCase() === "bearer") return { kind: "authorization", prefix: "Bearer", description };
  if (conversational.test(scheme) || !isHeaderName(scheme)) {
    return { kind: "unsupported", reason: `HTTP authentication "${scheme.slice(0, 40)}" is not supported` };
  }
  return { kind: "authorization", prefix: scheme, description };
}

function readApiKey(value: unknown, description: string): SecurityScheme {
  const place = ownText(value, "in");
  const name = ownText(value, "name");
  if (place === "query" && name !== "") return { kind: "apiKey", in: "query", name, description };
  if (place === "cookie" && isCookieName(name)) return { kind: "apiKey", in: "cookie", name, description };
  // Authorization is the one reserved header that a key may use.
  const allowed = isHeaderName(name) && (!isReservedHeader(name) || name.toLowerCase() === "authorization");
  if (place === "header" && allowed) return { kind: "apiKey", in: "header", name, description };
  return {
    kind: "unsupported",
    reason: `an API key in ${place.slice(0, 20) || "no place"} named "${name.slice(0, 40)}" cannot be sent`,
  };
}

/** Alternatives of a `security` list; undefined when it is absent. Scopes are the token's business, not ours. */
export function readRequirements(value: unknown): readonly Requirement[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.filter(isTree).map((each) => Object.keys(each));
}

/** Where API keys go, as `keyPlace` spells it, to the scheme's id: parameters may not set these. */
export function keyPlaces(schemes: Readonly<Record<string, SecurityScheme>>): Map<string, string> {
  return new Map(
    Object.entries(schemes).flatMap(([id, scheme]) =>
      scheme.kind === "apiKey" ? [[keyPlace(scheme.in, scheme.name), id]] : [],
    ),
  );
}

export function keyPlace(place: string, name: string): string {
  return `${place} ${place === "header" ? name.toLowerCase() : name}`;
}

export interface CredentialedRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface CredentialNeeds {
  /** Alternatives; an empty list asks for none. */
  readonly security: readonly Requirement[];
  /** Schemes whose key the operation lists among its own parameters: sent whenever there is a secret. */
  readonly keys: readonly string[];
}

export interface Credentials {
  readonly schemes: Readonly<Record<string, SecurityScheme>>;
  readonly secrets: Readonly<Record<string, unknown>>;
}

/**
 * Pure. The request with the credentials of the first alternative that has them all, or as it is when anonymous calls are
 * allowed. Throws Failure invalid_request naming the missing secrets. `origin` is that of the service's server: a URL elsewhere
 * is never given a credential.
 */
export function attachCredentials(
  request: CredentialedRequest,
  origin: string,
  { security, keys }: CredentialNeeds,
  { schemes, secrets }: Credentials,
): CredentialedRequest {
  const listed = keys.filter((id) => isUsable(own(schemes, id)) && isPresent(own(secrets, id)));
  const chosen = [...new Set([...choose(security, schemes, secrets), ...listed])];
  if (chosen.length === 0) return request;
  const url = new URL(request.url);
  if (url.origin !== origin)
    throw new Failure("refused", `Credentials for "${origin}" are not sent to "${url.origin}"`);
  const headers: Record<string, string> = { ...request.headers };
  for (const id of chosen) attach(id, schemes[id]!, secrets[id], url, headers);
  return { url: url.href, headers };
}

function choose(
  security: readonly Requirement[],
  schemes: Credentials["schemes"],
  secrets: Credentials["secrets"],
): Requirement {
  const named = security.filter((requirement) => requirement.length > 0);
  const ready = named.find((requirement) =>
    requirement.every((id) => isUsable(own(schemes, id)) && isPresent(own(secrets, id))),
  );
  if (ready) return ready;
  if (named.length < security.length || security.length === 0) return [];
  throw new Failure(
    "invalid_request",
    `Credentials are missing: set ${named.map((each) => describeMissing(each, schemes, secrets)).join(", or ")}`,
  );
}

function describeMissing(
  requirement: Requirement,
  schemes: Credentials["schemes"],
  secrets: Credentials["secrets"],
): string {
  const missing = requirement.filter((id) => !isUsable(own(schemes, id)) || !isPresent(own(secrets, id)));
  const described = missing.map((id) => {
    const scheme = own(schemes, id) as SecurityScheme | undefined;
    if (scheme === undefined) return `secret "${id}" (which the document does not define)`;
    return scheme.kind === "unsupported" ? `"${id}" (which cannot be used: ${scheme.reason})` : `secret "${id}"`;
  });
  return described.join(" and ");
}

function isUsable(scheme: unknown): boolean {
  return isTree(scheme) && scheme.kind !== "unsupported";
}

function isPresent(secret: unknown): boolean {
  if (typeof secret === "string") return secret !== "";
  return isTree(secret) && typeof secret.username === "string" && typeof secret.password === "string";
}

function attach(id: string, scheme: SecurityScheme, secret: unknown, url: URL, headers: Record<string, string>): void {
  if (scheme.kind === "unsupported") return;
  const text = secretText(id, scheme, secret);
  if (scheme.kind !== "apiKey") setHeader(id, headers, "authorization", text);
  else if (scheme.in === "header") setHeader(id, headers, scheme.name.toLowerCase(), text);
  else if (scheme.in === "query")
    url.search = joined(url.search, "&", `${encodeURIComponent(scheme.name)}=${encodeURIComponent(text)}`);
  else headers.cookie = joined(headers.cookie ?? "", "; ", `${scheme.name}=${encodeURIComponent(text)}`);
}

function secretText(id: string, scheme: SecurityScheme, secret: unknown): string {
  if (scheme.kind === "basic") {
    if (!isTree(secret)) throw wrongSecret(id, "is not a user name and password");
    return `Basic ${Buffer.from(`${secret.username}:${secret.password}`).toString("base64")}`;
  }
  if (typeof secret !== "string") throw wrongSecret(id, "is not text");
  return scheme.kind === "authorization" ? `${scheme.prefix} ${secret}` : secret;
}

function joined(before: string, separator: string, pair: string): string {
  return before === "" ? pair : `${before}${separator}${pair}`;
}

function setHeader(id: string, headers: Record<string, string>, name: string, value: string): void {
  if (!isHeaderValue(value)) throw wrongSecret(id, "holds characters that a header cannot carry");
  headers[name] = value;
}

function wrongSecret(id: string, why: string): Failure {
  return new Failure("invalid_request", `Secret "${id}" ${why}`);
}

/** Refuses secrets that could never be sent, when the service is made ready rather than at its first call. */
export function checkSecrets({ schemes, secrets }: Credentials): void {
  for (const id of Object.keys(secrets)) {
    const scheme = own(schemes, id) as SecurityScheme | undefined;
    if (scheme === undefined || scheme.kind === "unsupported" || !isPresent(secrets[id])) continue;
    attach(id, scheme, secrets[id], new URL("http://localhost/"), {});
  }
}
