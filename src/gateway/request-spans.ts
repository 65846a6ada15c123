/**
 * One span for each request over REST, from its arrival until its answer was sent or the client left; what is done for it happens within.
 * A caller's own trace goes on where its header `traceparent` is well-formed. Probes make none. Never a query, a header or a body.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { catalogue } from "../errors/catalogue.ts";
import type { Tracing } from "../ports/tracing.ts";

/** Before admission, so that what is refused has a span as well. */
export function addRequestSpans(app: FastifyInstance, tracing: Tracing): void {
  app.addHook("onRequest", (request, reply, done) => {
    const { config } = request.routeOptions;
    if (config?.probe === true || config?.unlimited === true) {
      done();
      return;
    }
    const { traceparent, tracestate } = request.headers;
    const parent = tracing.arrived(single(traceparent), single(tracestate));
    const span = tracing.start(nameOf(request), "server", attributesOf(request), parent);
    reply.raw.once("close", () => {
      const isWhole = reply.raw.writableFinished;
      const status = isWhole ? reply.raw.statusCode : catalogue.cancelled.rest;
      span.set({ "http.response.status_code": status, "troupe.refused": request.refusal?.kind });
      // What the caller did wrong is no error of this server.
      span.end(status >= 500 ? (request.refusal?.kind ?? "internal") : undefined);
    });
    tracing.within(span.place, done);
  });
}

function nameOf(request: FastifyRequest): string {
  const template = request.routeOptions.config?.template;
  return template === undefined ? request.method : `${request.method} ${template}`;
}

function attributesOf(request: FastifyRequest) {
  const template = request.routeOptions.config?.template;
  return {
    "http.request.method": request.method,
    "http.route": template,
    // Of paths nobody serves nothing is known, so nothing is told.
    "url.path": template === undefined ? undefined : request.url.split("?", 1)[0],
    "url.scheme": "http",
    "troupe.request.id": request.id,
  };
}

function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? undefined : header;
}
