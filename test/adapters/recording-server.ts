/** An HTTP server on 127.0.0.1 that writes down what it was sent, byte for byte, and answers what a test asks for. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Recorded {
  readonly method: string;
  readonly path: string;
  /** Raw, without the question mark. */
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export type Respond = (request: Recorded, response: ServerResponse) => void;

export interface RecordingServer {
  readonly origin: string;
  readonly requests: Recorded[];
  respond: Respond;
  last(): Recorded;
  close(): Promise<void>;
}

export const respondOk: Respond = (_, response) => {
  response.writeHead(200, { "content-type": "application/json" }).end('{"ok":true}');
};

export async function openRecordingServer(): Promise<RecordingServer> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const [path, query] = splitOnce(request.url ?? "", "?");
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    const recorded = { method: request.method ?? "", path, query, headers, body: Buffer.concat(chunks) };
    recording.requests.push(recorded);
    recording.respond(recorded, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const recording: RecordingServer = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    respond: respondOk,
    last() {
      const last = recording.requests.at(-1);
      if (!last) throw new Error("Nothing was recorded");
      return last;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return recording;
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + separator.length)];
}
