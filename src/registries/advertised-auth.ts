/**
 * The `auth` field of a well-known document (API document 5.2). Three outcomes: a method we know; an unsupported one, which
 * stays unnoticed until somebody wants to set credentials up; or a malformed document.
 */
import type { AdvertisedAuth, AdvertisedScope } from "../ports/registry-reader.ts";
import { isMembers, type Members, quotable, type Refuse, textOf, urlOf } from "./foreign-json.ts";
import { headerNameFault } from "./header-fields.ts";

export function readAdvertisedAuth(auth: unknown, refuse: Refuse): AdvertisedAuth | null {
  if (auth === undefined) return null;
  if (!isMembers(auth)) return refuse('"auth" is not an object');
  const refuseField: Refuse = (fault) => refuse(`in "auth", ${fault}`);
  const type = textOf(auth, "type", refuseField);
  switch (type) {
    case "apiKey":
      return readApiKey(auth, refuseField);
    case "oauth2":
      return readOauth2(auth, refuseField);
    default:
      return { type: "unsupported", declared: quotable(type), reason: "" };
  }
}

function readApiKey(auth: Members, refuse: Refuse): AdvertisedAuth {
  if (auth.in !== undefined && auth.in !== "header")
    return unsupported("apiKey", '"in" must be "header"; query-param keys are not supported');
  if (typeof auth.name !== "string")
    return refuse(`"name" ${auth.name === undefined ? "is missing" : "is not a string"}`);
  const headerName = auth.name.trim();
  const fault = headerNameFault(headerName);
  return fault === undefined ? { type: "apiKey", headerName } : unsupported("apiKey", fault);
}

function readOauth2(auth: Members, refuse: Refuse): AdvertisedAuth {
  // Before the endpoint: a grant we cannot use may come without one.
  if (auth.grantType !== undefined && auth.grantType !== "client_credentials") {
    const named = typeof auth.grantType === "string" ? `grantType "${quotable(auth.grantType)}"` : "its grantType";
    return unsupported("oauth2", `${named} is not supported, only "client_credentials" is`);
  }
  const tokenEndpoint = urlOf(auth, "tokenEndpoint", refuse).href;
  return { type: "oauth2", tokenEndpoint, scopes: readScopes(auth.scopes, refuse) };
}

function readScopes(scopes: unknown, refuse: Refuse): readonly AdvertisedScope[] {
  if (scopes === undefined) return [];
  if (!Array.isArray(scopes)) return refuse('"scopes" is not an array');
  const read = new Map<string, AdvertisedScope>();
  for (const [at, item] of scopes.entries()) {
    const scope = readScope(item, (fault) => refuse(`in scope ${at + 1}, ${fault}`));
    // A scope listed twice would be asked for twice.
    if (!read.has(scope.id)) read.set(scope.id, scope);
  }
  return [...read.values()];
}

function readScope(scope: unknown, refuse: Refuse): AdvertisedScope {
  if (!isMembers(scope)) return refuse("there is no object");
  const id = textOf(scope, "id", refuse);
  // Scopes travel joined by blanks (RFC 6749, 3.3).
  if (/[\s\p{Cc}]/u.test(id)) refuse('"id" holds blanks or control characters');
  const { description = "" } = scope;
  return { id, description: typeof description === "string" ? description : refuse('"description" is not a string') };
}

function unsupported(declared: string, reason: string): AdvertisedAuth {
  return { type: "unsupported", declared, reason };
}
