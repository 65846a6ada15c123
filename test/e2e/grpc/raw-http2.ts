/**
 * HTTP/2 by hand: frames as bytes, right or wrong, and what comes back. A client library would refuse to send most of what the tests
 * next to this file send.
 */
import { once } from "node:events";
import net from "node:net";

export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const flags = { ack: 1, endStream: 1, endHeaders: 4, padded: 8, priority: 0x20 } as const;

export const errorNames = [
  "NO_ERROR",
  "PROTOCOL_ERROR",
  "INTERNAL_ERROR",
  "FLOW_CONTROL_ERROR",
  "SETTINGS_TIMEOUT",
  "STREAM_CLOSED",
  "FRAME_SIZE_ERROR",
  "REFUSED_STREAM",
  "CANCEL",
  "COMPRESSION_ERROR",
  "CONNECT_ERROR",
  "ENHANCE_YOUR_CALM",
] as const;

export const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

export function frame(type: number, flagBits: number, streamId: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flagBits;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export function setting(id: number, value: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUInt16BE(id);
  bytes.writeUInt32BE(value, 2);
  return bytes;
}

function hpackLength(length: number): Buffer {
  if (length < 127) return Buffer.from([length]);
  const bytes = [127];
  let rest = length - 127;
  for (; rest >= 128; rest >>= 7) bytes.push((rest & 127) | 128);
  return Buffer.from([...bytes, rest]);
}

export type HeaderList = readonly (readonly [name: string, value: string])[];

/** Every field as a literal that no table keeps, in Latin-1. */
export function headerBlock(fields: HeaderList): Buffer {
  return Buffer.concat(
    fields.flatMap(([name, value]) => [
      Buffer.from([0]),
      hpackLength(name.length),
      Buffer.from(name, "latin1"),
      hpackLength(value.length),
      Buffer.from(value, "latin1"),
    ]),
  );
}

export function grpcHeaders(authority: string, path: string, more: HeaderList = []): HeaderList {
  return [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", authority],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
    ...more,
  ];
}

/** One message as gRPC sends it. */
export function envelope(message: Uint8Array, { flag = 0, declared = message.length } = {}): Buffer {
  return Buffer.concat([Buffer.from([flag]), u32(declared), message]);
}

export class RawConnection {
  readonly socket: net.Socket;
  readonly frames: Frame[] = [];
  #isEnded = false;
  #rest: Buffer = Buffer.alloc(0);
  #wake: (() => void) | undefined;

  constructor(socket: net.Socket) {
    this.socket = socket;
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    // A server that has said its last word is gone, whether or not we close.
    for (const event of ["end", "close"] as const) {
      socket.on(event, () => {
        this.#isEnded = true;
        this.#wake?.();
      });
    }
  }

  get isClosed(): boolean {
    return this.#isEnded || this.socket.destroyed;
  }

  #take(chunk: Buffer): void {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const length = this.#rest.length < 9 ? Number.POSITIVE_INFINITY : this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < 9 + length) break;
      this.frames.push({
        type: this.#rest[3] as number,
        flags: this.#rest[4] as number,
        streamId: this.#rest.readUInt32BE(5) & 0x7fff_ffff,
        payload: this.#rest.subarray(9, 9 + length),
      });
      this.#rest = this.#rest.subarray(9 + length);
    }
    this.#wake?.();
  }

  /** Resolves when it was handed on, or nobody takes it any more. */
  async send(...parts: Uint8Array[]): Promise<void> {
    if (this.isClosed) return;
    if (this.socket.write(Buffer.concat(parts))) return;
    await Promise.race([
      once(this.socket, "drain").catch(() => undefined),
      once(this.socket, "close").catch(() => undefined),
    ]);
  }

  /** Whether it came true within `ms`; looked at whenever something arrives. */
  async until(isSo: () => boolean, ms = 5_000): Promise<boolean> {
    const deadline = performance.now() + ms;
    while (!isSo()) {
      const left = deadline - performance.now();
      if (left <= 0) return false;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return true;
  }

  has(type: number, streamId: number, flagBits = 0): boolean {
    return this.frames.some(
      (one) => one.type === type && one.streamId === streamId && (one.flags & flagBits) === flagBits,
    );
  }

  close(): void {
    this.socket.destroy();
  }
}

/** Connected, with nothing sent. */
export async function openSocket(address: string): Promise<RawConnection> {
  const { hostname, port } = new URL(`http://${address}`);
  const socket = net.connect(Number(port), hostname);
  const connection = new RawConnection(socket);
  await once(socket, "connect");
  socket.setNoDelay(true);
  return connection;
}

/** Greeted from both sides. */
export async function openConnection(address: string, settings: Uint8Array = Buffer.alloc(0)): Promise<RawConnection> {
  const connection = await openSocket(address);
  await connection.send(preface, frame(frameTypes.settings, 0, 0, settings));
  await connection.until(() => connection.frames.length > 0);
  await connection.send(frame(frameTypes.settings, flags.ack, 0));
  return connection;
}
