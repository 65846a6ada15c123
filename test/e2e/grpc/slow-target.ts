/** A registry and an HTTP API in one that take their time, and know how many of their requests were left before they were answered. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface SlowTarget {
  readonly url: string;
  /** Requests that wait for an answer now. */
  readonly waiting: ReadonlySet<ServerResponse>;
  /** Requests whose caller closed before there was an answer. */
  readonly left: () => number;
  /** Of all paths but the documents. */
  readonly asked: () => number;
  /** Resolves when `isSo`, at the latest after ten seconds; looked at every 10 ms. */
  until(isSo: () => boolean): Promise<boolean>;
  close(): Promise<void>;
}

const operation = (operationId: string) => ({
  get: { operationId, responses: { 200: { description: "At last", content: { "application/json": { schema: {} } } } } },
});

/** `/hang` and pages of definitions never answer; `/slow` after a second. */
export async function startSlowTarget(): Promise<SlowTarget> {
  const waiting = new Set<ServerResponse>();
  let left = 0;
  let asked = 0;
  const server = createServer((request, response) => {
    const json = (body: object): void => {
      response.setHeader("content-type", "application/json").end(JSON.stringify(body));
    };
    const path = (request.url ?? "").split("?")[0];
    if (path === "/.well-known/registry.json") return json({ id: "slow", definitions: { v1: "/definitions" } });
    if (path === "/openapi.json") {
      return json({
        openapi: "3.1.0",
        info: { title: "Slow", version: "1.0.0" },
        servers: [{ url: urlOf() }],
        paths: { "/hang": operation("hang"), "/slow": operation("slow") },
      });
    }
    asked += 1;
    waiting.add(response);
    response.once("close", () => {
      if (!response.writableEnded) left += 1;
      waiting.delete(response);
    });
    if (path === "/slow") setTimeout(() => json({ late: true }), 1_000);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const urlOf = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: urlOf(),
    waiting,
    left: () => left,
    asked: () => asked,
    async until(isSo) {
      for (let tries = 0; tries < 1_000 && !isSo(); tries += 1) await new Promise((resolve) => setTimeout(resolve, 10));
      return isSo();
    },
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
