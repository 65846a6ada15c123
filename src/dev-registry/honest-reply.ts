/** From a request to the honest answer: existence, method, authorization, content, in this order. */
import type { IncomingHttpHeaders } from "node:http";
import { advertisement, type Place } from "./advertisement.ts";
import { refusal } from "./authorization.ts";
import type { Behaviour } from "./behaviour.ts";
import { descriptorReply, pageReply } from "./entries.ts";
import type { Offer } from "./offers/offer.ts";
import { errorReply, jsonReply, type Reply } from "./reply.ts";
import type { EntryRoute, Route } from "./routes.ts";
import type { Shelf } from "./shelf.ts";
import type { TokenBook } from "./token-book.ts";
import { issueToken } from "./token-endpoint.ts";

export interface Asked {
  readonly route: Route;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Answering {
  readonly behaviour: Behaviour;
  readonly place: Place;
  readonly tokens: TokenBook;
  readonly shelf: Shelf;
}

export function honestReply(asked: Asked, answering: Answering): Reply {
  const { behaviour, place, tokens } = answering;
  const { route, method, headers } = asked;
  if (route.name === "unknown" || (route.name === "token" && behaviour.auth !== "oauth2")) return notFound(asked);
  const allowed = route.name === "token" ? ["POST"] : ["GET", "HEAD"];
  if (!allowed.includes(method)) {
    const message = `Use ${allowed.join(" or ")}`;
    return errorReply(405, "method_not_allowed", message, { Allow: allowed.join(", ") });
  }
  if (route.name === "token") return issueToken(asked, behaviour, tokens);
  if (route.name === "advertisement") return jsonReply(200, advertisement(behaviour, place));
  const refused = route.isProtected ? refusal(headers, behaviour, tokens) : null;
  return refused ?? catalogReply(asked, route, answering);
}

function catalogReply(asked: Asked, route: EntryRoute, { behaviour, place, shelf }: Answering): Reply {
  const listing = { kind: route.kind, base: route.base, origin: place.origin, behaviour };
  const offers = shelf.offers(route.kind, behaviour.samples);
  if (route.name === "definitions" || route.name === "modules") return pageReply(offers, asked.query, listing);
  const offer = offers.find(({ id }) => id === route.id);
  if (offer === undefined) return notFound(asked);
  switch (route.name) {
    case "descriptor":
      return descriptorReply(offer, listing);
    case "icon":
      return { status: 200, headers: { "Content-Type": "image/png" }, body: offer.icon.bytes };
    case "download":
      return downloadReply(offer, route) ?? notFound(asked);
  }
}

function downloadReply({ releases }: Offer, wanted: { version: string; fileName: string }): Reply | undefined {
  const release = releases.find(({ version, fileName }) => version === wanted.version && fileName === wanted.fileName);
  return release && { status: 200, headers: { "Content-Type": release.mediaType }, body: release.bytes };
}

function notFound({ path }: Asked): Reply {
  return errorReply(404, "not_found", `There is nothing at "${path}"`);
}
