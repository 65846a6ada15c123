/** Lets a request in or says what it lacks, by what is enforced; what is advertised plays no part here. */
import type { IncomingHttpHeaders } from "node:http";
import type { Behaviour } from "./behaviour.ts";
import { errorReply, type Reply } from "./reply.ts";
import type { TokenBook } from "./token-book.ts";

/** null: welcome. */
export function refusal(headers: IncomingHttpHeaders, behaviour: Behaviour, tokens: TokenBook): Reply | null {
  switch (behaviour.auth) {
    case "none":
      return null;
    case "apikey":
      return keyRefusal(headers, behaviour);
    case "oauth2":
      return tokenRefusal(headers, tokens);
  }
}

function keyRefusal(headers: IncomingHttpHeaders, { headerName, apiKey }: Behaviour): Reply | null {
  const key = headers[headerName.toLowerCase()];
  if (key === apiKey) return null;
  const message = key === undefined ? `Send the API key in the header "${headerName}"` : "The API key is wrong";
  return errorReply(401, "unauthorized", message, { "WWW-Authenticate": 'ApiKey realm="dev-registry"' });
}

function tokenRefusal(headers: IncomingHttpHeaders, tokens: TokenBook): Reply | null {
  const token = /^bearer +(\S+)$/i.exec(headers.authorization ?? "")?.[1];
  if (token === undefined) {
    const message = 'Send an access token in the header "Authorization" as "Bearer TOKEN"';
    return errorReply(401, "unauthorized", message, { "WWW-Authenticate": 'Bearer realm="dev-registry"' });
  }
  const state = tokens.stateOf(token);
  if (state === "valid") return null;
  const message = state === "unknown" ? "The access token is unknown" : `The access token is ${state}`;
  return errorReply(401, "invalid_token", message, {
    "WWW-Authenticate": `Bearer realm="dev-registry", error="invalid_token", error_description="${message}"`,
  });
}
