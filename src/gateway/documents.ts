/**
 * What the face tells about itself, without a key: the OpenAPI document, a page of it, and a guide for agents. Each is made once, when it
 * is first asked for (by then every route is there), and has an ETag.
 */
import { hash } from "node:crypto";
import type { FastifyInstance, FastifyReply } from "fastify";
import type { Operation, StreamOperation } from "../operations/operation.ts";
import { type AgentGuideFacts, agentGuide } from "./agent-guide.ts";
import { docsPage } from "./docs-page.ts";
import { docsStyle } from "./docs-style.ts";
import { isHeldAlready, toEtag } from "./entity-tag.ts";
import { openApiDocument } from "./openapi/document.ts";

export interface DocumentsOptions {
  readonly operations: readonly Operation[];
  readonly streams: readonly StreamOperation[];
  readonly facts: AgentGuideFacts;
}

export function addDocuments(app: FastifyInstance, { operations, streams, facts }: DocumentsOptions): void {
  const hasRoute = ({ method, path }: { readonly method: string; readonly path: string }): boolean =>
    app.hasRoute({ method, url: path });
  const described = once(() => openApiDocument({ operations, streams, hasRoute }));
  addDocument(app, "/openapi.json", "application/json; charset=utf-8", () => JSON.stringify(described()));
  addDocument(app, "/docs", "text/html; charset=utf-8", () => docsPage(described()));
  addDocument(app, "/docs/style.css", "text/css; charset=utf-8", () => docsStyle);
  addDocument(app, "/llms.txt", "text/markdown; charset=utf-8", () => agentGuide(facts, hasRoute));
}

/** The page brings all it needs from here; whatever else got into it would not be loaded, sent or framed. */
const contentSecurityPolicy =
  "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

function addDocument(app: FastifyInstance, url: string, mediaType: string, make: () => string): void {
  const made = once(() => {
    const text = make();
    return { text, tag: hash("sha256", text).slice(0, 32) };
  });
  app.get(url, { config: { open: true } }, (request, reply): FastifyReply => {
    const { text, tag } = made();
    // no-cache: kept, and asked about each time; the next version of the server may say something else.
    reply.header("etag", toEtag(tag)).header("cache-control", "no-cache");
    if (isHeldAlready(request.headers["if-none-match"], tag)) return reply.code(304).send();
    return reply
      .header("content-type", mediaType)
      .header("content-security-policy", contentSecurityPolicy)
      .header("x-content-type-options", "nosniff")
      .header("referrer-policy", "no-referrer")
      .send(text);
  });
}

function once<Made>(make: () => Made): () => Made {
  let made: { readonly value: Made } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
