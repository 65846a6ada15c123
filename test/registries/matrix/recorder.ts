/**
 * Servers that keep the exact bytes of every request and answer from one script: the first request anywhere gets the first
 * answer, and so on. Plain and TLS connections are served on the same port, so that a change of scheme alone is possible.
 */
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import type { Identity } from "./identity.ts";

export interface Answer {
  readonly status: number;
  /** Several values make several fields. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string;
}

export interface Arrival {
  readonly scheme: "http" | "https";
  /** The address and port of ours that the connection was made to. */
  readonly address: string;
  readonly port: number;
  /** Request line, headers and the blank line, as bytes read as latin1. */
  readonly bytes: string;
  readonly target: string;
  /** In order, names as they came. */
  readonly headers: readonly (readonly [name: string, value: string])[];
}

export interface Recorder {
  readonly arrivals: readonly Arrival[];
  /** Forgets what arrived and sets the answers to come; beyond them the answer is 500. */
  expect(answers: readonly Answer[]): void;
  /** Port 0 picks a free one. Rejects as listen does. */
  listen(address: string, port: number): Promise<number>;
  close(): void;
}

const headEnd = "\r\n\r\n";
const firstByteOfTls = 0x16;

export function openRecorder(identity: Identity): Recorder {
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  let arrivals: Arrival[] = [];
  let answers: readonly Answer[] = [];

  function converse(stream: Socket | TLSSocket, scheme: "http" | "https"): void {
    let waiting = "";
    stream.on("error", () => stream.destroy());
    stream.on("data", (chunk: Buffer) => {
      waiting += chunk.toString("latin1");
      for (let end = waiting.indexOf(headEnd); end >= 0; end = waiting.indexOf(headEnd)) {
        const bytes = waiting.slice(0, end + headEnd.length);
        waiting = waiting.slice(end + headEnd.length);
        arrivals.push(arrivalOf(bytes, scheme, stream));
        stream.write(rendered(answers[arrivals.length - 1] ?? { status: 500, headers: {} }));
      }
    });
  }

  const secure = createTlsServer({ ...identity }, (stream) => converse(stream, "https"));
  secure.on("tlsClientError", () => undefined);

  function greet(socket: Socket): void {
    sockets.add(socket);
    socket.on("error", () => socket.destroy()).on("close", () => sockets.delete(socket));
    socket.once("data", (chunk: Buffer) => {
      socket.pause();
      socket.unshift(chunk);
      if (chunk[0] === firstByteOfTls) secure.emit("connection", socket);
      else converse(socket, "http");
      process.nextTick(() => socket.resume());
    });
  }

  return {
    get arrivals() {
      return arrivals;
    },
    expect(next) {
      arrivals = [];
      answers = next;
    },
    async listen(address, port) {
      const server = createServer(greet);
      await new Promise<void>((resolve, reject) => {
        server.once("error", reject).listen(port, address, resolve);
      });
      servers.push(server);
      return (server.address() as AddressInfo).port;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      for (const server of servers) server.close();
    },
  };
}

function arrivalOf(bytes: string, scheme: "http" | "https", stream: Socket): Arrival {
  const [requestLine = "", ...lines] = bytes.slice(0, -headEnd.length).split("\r\n");
  const headers = lines.map((line): readonly [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  return {
    scheme,
    address: stream.localAddress ?? "",
    port: stream.localPort ?? 0,
    bytes,
    target: requestLine.split(" ")[1] ?? "",
    headers,
  };
}

function rendered({ status, headers, body = "" }: Answer): Buffer {
  const fields = Object.entries({ ...headers, "content-length": String(Buffer.byteLength(body)) });
  const head = fields.flatMap(([name, values]) => [values].flat().map((value) => `${name}: ${value}\r\n`)).join("");
  return Buffer.from(`HTTP/1.1 ${status} Scripted\r\n${head}\r\n${body}`, "latin1");
}
