/**
 * GET /metrics, for Prometheus: without a key from this machine itself, with an operator's key from elsewhere; never limited, and answered
 * while the server closes. The Host must be right, as everywhere: a page of strangers must not read it by way of a browser on this machine.
 */
import type { FastifyInstance } from "fastify";
import { Failure } from "../errors/failure.ts";
import type { Authentication } from "../operations/authentication.ts";
import { asFailure } from "../operations/call.ts";
import { type ClientAddress, isFromHere } from "../operations/client-address.ts";
import type { Log } from "../ports/log.ts";
import { sendFailure } from "./answer.ts";

export interface MetricsSource {
  readonly contentType: string;
  collect(): Promise<string>;
}

export interface MetricsRouteOptions {
  readonly source: MetricsSource;
  readonly authentication: Authentication;
  readonly clientAddress: ClientAddress;
  readonly log: Log;
}

export function addMetricsRoute(
  app: FastifyInstance,
  { source, authentication, clientAddress, log }: MetricsRouteOptions,
): void {
  app.get("/metrics", { config: { open: true, unlimited: true } }, async (request, reply) => {
    const { headers, socket } = request.raw;
    try {
      if (!isFromHere(socket.remoteAddress, headers)) {
        const address = clientAddress(socket.remoteAddress, headers["x-forwarded-for"] as string | undefined);
        const { name, role } = authentication.authenticate(headers.authorization, address);
        if (role !== "operator") {
          throw new Failure("forbidden", `Key "${name}" has role "${role}": the metrics need "operator"`);
        }
      }
      const text = await source.collect();
      return reply.header("content-type", source.contentType).header("cache-control", "no-store").send(text);
    } catch (error) {
      sendFailure(reply, asFailure(error, "metrics", request.id, log));
      return reply;
    }
  });
}
