/**
 * The token endpoint: RFC 6749, client credentials only, with the client's id and secret in the form. Errors are those of
 * section 5.2; scopes are enforced here and nowhere else.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { Behaviour } from "./behaviour.ts";
import { jsonReply, type Reply } from "./reply.ts";
import type { TokenBook } from "./token-book.ts";

export interface TokenRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const noStore = { "Cache-Control": "no-store" };
const parameterNames = ["grant_type", "client_id", "client_secret", "scope"];

export function issueToken({ headers, body }: TokenRequest, behaviour: Behaviour, tokens: TokenBook): Reply {
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(headers["content-type"] ?? "")) {
    return refused("invalid_request", 'Content-Type must be "application/x-www-form-urlencoded"');
  }
  const form = new URLSearchParams(body);
  const repeated = parameterNames.find((name) => form.getAll(name).length > 1);
  if (repeated !== undefined) return refused("invalid_request", `"${repeated}" is given more than once`);
  if (!form.has("grant_type")) return refused("invalid_request", '"grant_type" is missing');
  if (form.get("client_id") !== behaviour.clientId || form.get("client_secret") !== behaviour.clientSecret) {
    return refused("invalid_client", "The client is unknown or its secret is wrong", 401);
  }
  if (form.get("grant_type") !== "client_credentials") {
    return refused("unsupported_grant_type", 'Only "client_credentials" is supported');
  }
  const known = behaviour.scopes.map(({ id }) => id);
  const wanted = (form.get("scope") ?? "").split(" ").filter((scope) => scope !== "");
  if (wanted.some((scope) => !known.includes(scope))) {
    return refused("invalid_scope", "A requested scope is not offered here");
  }
  return granted(wanted.length === 0 ? known : wanted, behaviour, tokens);
}

function granted(scopes: readonly string[], behaviour: Behaviour, tokens: TokenBook): Reply {
  const { tokenLifetimeSeconds: seconds, expiresIn, refreshToken } = behaviour;
  const answer = {
    access_token: tokens.issue(seconds),
    token_type: "Bearer",
    ...(expiresIn === "absent" ? {} : { expires_in: expiresIn === "text" ? String(seconds) : seconds }),
    ...(scopes.length === 0 ? {} : { scope: scopes.join(" ") }),
    // Good for nothing: the grant that would take it is not supported.
    ...(refreshToken === "absent" ? {} : { refresh_token: "dev-refresh-token" }),
  };
  return jsonReply(200, answer, noStore);
}

/** The description must not repeat what was sent: clients put it into their logs. */
function refused(error: string, description: string, status = 400): Reply {
  return jsonReply(status, { error, error_description: description }, noStore);
}
