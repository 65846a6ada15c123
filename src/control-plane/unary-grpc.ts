/**
 * Unary gRPC, straight on HTTP/2. Connect serves every protocol with one pipeline of generators, and takes five times the processor for
 * it; the calls that services make all day are answered here: one message in, one out, binary, uncompressed. All else (streams, gRPC-Web,
 * Connect, JSON, compressed or odd requests) is left to Connect, which would answer these as well, with the same codes.
 *
 * 1. The same admission, the same rows, the same failures as there: only the bytes are handled here.
 * 2. A message is read after its caller was admitted, and never more of it than may be sent.
 */
import http2 from "node:http2";
import { type DescMethod, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { Failure, type FailureKind } from "../errors/failure.ts";
import { bodyBytesMax, requestReceiveMs, rpcAnswerBytesMax, rpcRecursionMax } from "../limits.ts";
import { type Call, timedOut } from "../operations/call.ts";
import type { UntakenAnswers } from "../operations/untaken-answers.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import { type Arrival, authorityOf, certificateNameOf, isUsableAuthority, newArrival } from "./arrival.ts";
import { toConnectError } from "./connect-error.ts";
import { GrowingBuffer } from "./growing-buffer.ts";
import { grpcTimeoutMs } from "./grpc-timeout.ts";
import { grpcTrailer } from "./grpc-trailer.ts";
import type { RpcRequest } from "./serve-row.ts";
import { prefixBytes } from "./whole-messages.ts";

export interface UnaryRpc {
  readonly method: DescMethod;
  /** Rejects with Failure. */
  readonly answer: (request: RpcRequest) => Promise<Message>;
}

export interface UnaryGrpcOptions {
  /** By path, as `/troupe.v1.ProcessService/GetProcess`. */
  readonly rpcs: ReadonlyMap<string, UnaryRpc>;
  readonly mutualTls: boolean;
  readonly untakenAnswers: UntakenAnswers;
  readonly clock: Clock;
  readonly log: Log;
  /** Throws Failure. */
  readonly admit: (method: DescMethod, arrival: Arrival, tell: (name: string, value: string) => void) => void;
}

type Headers2 = http2.IncomingHttpHeaders;

/** False: not one of these calls, and nothing was done. */
export type StreamHandler = (
  stream: http2.ServerHttp2Stream,
  headers: Headers2,
  rawHeaders: readonly string[],
) => boolean;

export function unaryGrpc(options: UnaryGrpcOptions): StreamHandler {
  return (stream, headers, rawHeaders) => {
    const rpc = options.rpcs.get(headers[":path"] ?? "");
    if (rpc === undefined || !isPlainUnary(headers)) return false;
    void new UnaryExchange(options, rpc, stream).serve(headers, rawHeaders.length / 2);
    return true;
  };
}

const contentType = "application/grpc+proto";
const acceptedTypes: ReadonlySet<string | undefined> = new Set(["application/grpc", contentType]);

/** What differs in any way from what gRPC clients send is not ours to judge. Web pages (Origin) are not among them. */
function isPlainUnary(headers: Headers2): boolean {
  return (
    headers[":method"] === "POST" &&
    acceptedTypes.has(headers["content-type"]) &&
    (headers["grpc-encoding"] === undefined || headers["grpc-encoding"] === "identity") &&
    headers.origin === undefined &&
    isUsableAuthority(authorityOf(headers)) &&
    (headers["grpc-timeout"] === undefined || grpcTimeoutMs(headers["grpc-timeout"]) !== undefined)
  );
}

const binaryOptions = { recursionLimit: rpcRecursionMax };

class UnaryExchange {
  readonly #options: UnaryGrpcOptions;
  readonly #rpc: UnaryRpc;
  readonly #stream: http2.ServerHttp2Stream;
  readonly #answerHeaders: http2.OutgoingHttpHeaders = { ":status": 200, "content-type": contentType };

  constructor(options: UnaryGrpcOptions, rpc: UnaryRpc, stream: http2.ServerHttp2Stream) {
    this.#options = options;
    this.#rpc = rpc;
    this.#stream = stream;
    stream.on("error", () => undefined); // a client that resets is no news; the stream closes after it
  }

  async serve(headers: Headers2, headersCount: number): Promise<void> {
    const { clock, admit, mutualTls, log } = this.#options;
    const { method, answer } = this.#rpc;
    try {
      const began = clock.monotonic();
      const { session } = this.#stream;
      const arrival = newArrival(headers, {
        headersCount,
        socketAddress: session?.socket.remoteAddress,
        certificateName: mutualTls && session !== undefined ? certificateNameOf(session) : undefined,
      });
      admit(method, arrival, (name, value) => {
        this.#answerHeaders[name] = value;
      });
      const timeout = headers["grpc-timeout"];
      const givenMs = timeout === undefined ? undefined : grpcTimeoutMs(timeout);
      const message = messageOf(await this.#receive(givenMs), method);
      const leftMs = givenMs === undefined ? undefined : givenMs - (clock.monotonic() - began);
      const output = await answer({ message, arrival, leftMs, watchCaller: (call) => this.#watch(call) });
      this.#succeed(output, arrival.countedAs);
    } catch (error) {
      if (error === gone) return;
      if (error instanceof Failure) this.#fail(error);
      else {
        log.error("rpc-crashed", `${method.parent.typeName}/${method.name} crashed outside its operation`, { error });
        this.#fail(new Failure("internal", "Internal error"));
      }
    }
  }

  /** The bytes after the prefix of the one message. Rejects with Failure, or with `gone`. */
  #receive(leftMs = Number.POSITIVE_INFINITY): Promise<Buffer> {
    const stream = this.#stream;
    const { method } = this.#rpc;
    return new Promise((resolve, reject) => {
      const held = new GrowingBuffer();
      const cancelLimit = this.#options.clock.after(Math.min(leftMs, requestReceiveMs), () =>
        reject(timedOut(method.localName)),
      );
      stream.on("data", (chunk: Buffer) => {
        held.add(chunk);
        const { length } = held;
        const declared = length >= prefixBytes ? held.bytes.readUInt32BE(1) : 0;
        if (declared <= bodyBytesMax && length <= bodyBytesMax + 2 * prefixBytes) return;
        cancelLimit();
        const bytes = Math.max(declared, length - prefixBytes);
        const text = `message size ${bytes} is larger than configured readMaxBytes ${bodyBytesMax}`;
        reject(new Failure("too_large", text));
      });
      stream.once("end", () => {
        cancelLimit();
        resolve(held.take());
      });
      stream.once("close", () => {
        cancelLimit();
        reject(gone);
      });
    });
  }

  #watch(call: Call): void {
    const over = (): void => call.end(new Failure("cancelled", "The client went away"));
    if (this.#stream.destroyed) over();
    else this.#stream.once("close", over);
  }

  #succeed(message: Message, countedAs: string): void {
    const stream = this.#stream;
    if (stream.destroyed) return;
    const bytes = toBinary(this.#rpc.method.output, message);
    if (bytes.length > rpcAnswerBytesMax) {
      const text = `message size ${bytes.length} is larger than configured writeMaxBytes ${rpcAnswerBytesMax}`;
      this.#fail(new Failure("too_large", text));
      return;
    }
    this.#options.untakenAnswers.add(countedAs, bytes.length, stream, () =>
      stream.close(http2.constants.NGHTTP2_CANCEL),
    );
    const frame = Buffer.allocUnsafe(prefixBytes + bytes.length);
    frame[0] = 0;
    frame.writeUInt32BE(bytes.length, 1);
    frame.set(bytes, prefixBytes);
    stream.respond(this.#answerHeaders, { waitForTrailers: true });
    stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(frame);
  }

  #fail(failure: Failure): void {
    const stream = this.#stream;
    if (stream.destroyed || stream.headersSent) return;
    stream.respond(
      { ...this.#answerHeaders, ...Object.fromEntries(grpcTrailer(toConnectError(failure))) },
      { endStream: true },
    );
    // What the client may still be sending is wanted by nobody.
    if (!stream.readableEnded) stream.close(http2.constants.NGHTTP2_NO_ERROR);
  }
}

/** The stream closed before it was answered. */
const gone = Symbol("gone");

/** Throws Failure, with the codes and words that Connect has for the same faults. */
function messageOf(body: Buffer, method: DescMethod): Message {
  const declared = body.length < prefixBytes ? 0 : body.readUInt32BE(1);
  const received = body.length - prefixBytes;
  if (body.length === 0 || (received === 0 && declared > 0)) {
    throw broken("missing input message for unary method", "method_not_allowed");
  }
  if (received < declared) throw broken("incomplete envelope", "invalid_request");
  if (received > declared) throw broken("received extra input message for unary method", "method_not_allowed");
  if (body[0] !== 0) {
    throw new Failure("internal", "received compressed envelope, but do not know how to decompress");
  }
  try {
    return fromBinary(method.input, body.subarray(prefixBytes), binaryOptions);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Failure("invalid_request", `parse binary: ${reason}`);
  }
}

function broken(what: string, kind: FailureKind): Failure {
  return new Failure(kind, `protocol error: ${what}`);
}
