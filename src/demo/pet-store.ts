/**
 * A small real HTTP API for the demo, the examples and tests: state in memory, an API key, checked input, errors as JSON.
 * `pet-store-document.ts` describes it; the document itself needs no key.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Answer, PetShop, ShopError } from "./pet-shop.ts";
import { apiKeyHeader, petStoreDocument } from "./pet-store-document.ts";

/** No pet needs more. */
const bodyBytesMax = 64 * 1024;

export interface PetStore {
  /** Base of the API, `http://127.0.0.1:41234/v1`. */
  readonly url: string;
  readonly documentUrl: string;
  readonly port: number;
  /** Ends open connections too. */
  close(): Promise<void>;
}

/** Port 0 picks a free one. Listens on 127.0.0.1 only. */
export async function startPetStore({ port, apiKey }: { port: number; apiKey: string }): Promise<PetStore> {
  const shop = new PetShop();
  const server = createServer((request, response) => {
    respond(shop, apiKey, request).then(
      (answer) => send(response, answer),
      (error: unknown) => send(response, failed(error)),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  const taken = (server.address() as AddressInfo).port;
  return {
    url: `http://127.0.0.1:${taken}/v1`,
    documentUrl: `http://127.0.0.1:${taken}/openapi.json`,
    port: taken,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve, reject) => server.close((error) => (error ? reject(error) : resolve())));
    },
  };
}

async function respond(shop: PetShop, apiKey: string, request: IncomingMessage): Promise<Answer> {
  const url = new URL(request.url ?? "/", "http://127.0.0.1");
  if (url.pathname === "/openapi.json") return { status: 200, body: petStoreDocument };
  if (request.headers[apiKeyHeader.toLowerCase()] !== apiKey) {
    throw new ShopError(401, "unauthorized", `Send the key in the header ${apiKeyHeader}`);
  }
  const [, version, ...path] = url.pathname.split("/");
  if (version !== "v1") throw new ShopError(404, "not_found", `No such path: "${url.pathname}"`);
  const body = await readJson(request);
  return shop.answer({ method: request.method ?? "GET", path, query: url.searchParams, body });
}

/** Undefined when there is no body. */
async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) throw new ShopError(413, "too_large", `The body is larger than ${bodyBytesMax} bytes`);
    chunks.push(chunk);
  }
  if (bytes === 0) return undefined;
  if (!/^application\/json\s*(;|$)/i.test(request.headers["content-type"] ?? "")) {
    throw new ShopError(415, "unsupported_media_type", "The body must be application/json");
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch {
    throw new ShopError(400, "invalid", "The body is not JSON");
  }
}

function failed(error: unknown): Answer {
  if (error instanceof ShopError) return { status: error.status, body: { code: error.code, message: error.message } };
  return { status: 500, body: { code: "internal", message: "Something broke in the pet store" } };
}

function send(response: ServerResponse, { status, body }: Answer): void {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body === undefined ? "" : JSON.stringify(body));
  const mediaType = Buffer.isBuffer(body) ? "image/png" : "application/json";
  response.writeHead(status, status === 204 ? {} : { "Content-Type": mediaType, "Content-Length": bytes.length });
  response.end(status === 204 ? undefined : bytes);
}
