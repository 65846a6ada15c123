/** Sends a request as it is, without a client that would tidy it up. */
import { Agent, request } from "node:http";
import type { Exchange } from "../answers/contract.ts";
import type { FuzzRequest } from "./requests.ts";

/** Of an event stream the beginning is enough. */
const streamReadMs = 300;

export interface Sender {
  /** Rejects when there is no answer in time, or the connection breaks. */
  send(made: FuzzRequest): Promise<Exchange>;
  close(): void;
}

export function openSender(base: string, authorization: string): Sender {
  const { hostname, port } = new URL(base);
  const agent = new Agent({ keepAlive: true, maxSockets: 32 });
  return {
    close: () => agent.destroy(),
    send: ({ method, path, headers, body }) =>
      new Promise((resolve, reject) => {
        const bytes = body === undefined ? undefined : Buffer.from(body);
        const sent = { authorization, ...headers, ...(bytes && { "content-length": String(bytes.length) }) };
        const asked = request({ agent, hostname, port, method, path, headers: sent, timeout: 60_000 }, (response) => {
          const chunks: Buffer[] = [];
          const told = new Headers();
          for (const [name, values] of Object.entries(response.headersDistinct)) {
            for (const value of values ?? []) told.append(name, value);
          }
          const done = (): void =>
            resolve({
              method,
              path,
              status: response.statusCode ?? 0,
              headers: told,
              text: Buffer.concat(chunks).toString(),
            });
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.once("end", done);
          response.once("error", reject);
          if (told.get("content-type")?.startsWith("text/event-stream")) {
            setTimeout(() => {
              done();
              asked.destroy();
            }, streamReadMs);
          }
        });
        asked.once("timeout", () => asked.destroy(new Error("no answer within 60 s")));
        asked.once("error", reject);
        asked.end(bytes);
      }),
  };
}
