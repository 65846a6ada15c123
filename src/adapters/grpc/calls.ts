/** Calls on raw bytes: descriptors play no part here. Rejects with the status the library reports, whoever it comes from. */
import grpc from "@grpc/grpc-js";

export interface RawCall {
  /** `/package.Service/Method`. */
  readonly path: string;
  readonly request: Uint8Array;
  readonly metadata: grpc.Metadata;
  /** Epoch milliseconds; the target is told of it. */
  readonly deadline: number;
  readonly signal: AbortSignal;
}

export interface RawAnswer {
  readonly messages: readonly Uint8Array[];
  /** False when there were as many messages as may be: more may have followed. */
  readonly complete: boolean;
  readonly headers: grpc.Metadata;
  readonly trailers: grpc.Metadata;
}

export interface StreamBounds {
  readonly messagesMax: number;
  readonly bytesMax: number;
}

export const asIs = (bytes: Buffer): Buffer => bytes;

export function callUnary(client: grpc.Client, { path, request, metadata, deadline, signal }: RawCall) {
  return new Promise<RawAnswer>((resolve, reject) => {
    let headers = new grpc.Metadata();
    let trailers = new grpc.Metadata();
    const end = cancelling(signal, () => call.cancel());
    const call = client.makeUnaryRequest(
      path,
      asIs,
      asIs,
      Buffer.from(request),
      metadata,
      { deadline },
      (error, value) => {
        end();
        if (error) reject(error);
        // The status, and trailers with it, is reported right after this callback.
        else queueMicrotask(() => resolve({ messages: value ? [value] : [], complete: true, headers, trailers }));
      },
    );
    call.on("metadata", (received) => {
      headers = received;
    });
    call.on("status", (status) => {
      trailers = status.metadata;
    });
  });
}

/** Takes messages until the stream ends or has as many as may be; more bytes than may be are an error. */
export function callServerStream(
  client: grpc.Client,
  { path, request, metadata, deadline, signal }: RawCall,
  { messagesMax, bytesMax }: StreamBounds,
): Promise<RawAnswer> {
  return new Promise<RawAnswer>((resolve, reject) => {
    const messages: Buffer[] = [];
    let bytes = 0;
    let headers = new grpc.Metadata();
    let ended = false;
    let status: grpc.StatusObject | undefined;
    const stream = client.makeServerStreamRequest(path, asIs, asIs, Buffer.from(request), metadata, { deadline });
    const end = cancelling(signal, () => stream.cancel());
    const finish = (settle: () => void) => {
      end();
      settle();
    };
    const finishIfOver = () => {
      if (!ended || status === undefined) return;
      const trailers = status.metadata;
      finish(() => resolve({ messages, complete: true, headers, trailers }));
    };
    stream.on("metadata", (received) => {
      headers = received;
    });
    stream.on("data", (message: Buffer) => {
      if (ended) return;
      bytes += message.length;
      messages.push(message);
      // Not waiting for one more: a stream that tells of changes may stay silent for hours.
      if (bytes <= bytesMax && messages.length < messagesMax) return;
      ended = true;
      stream.cancel();
      if (bytes > bytesMax) finish(() => reject(tooLarge(bytesMax)));
      else finish(() => resolve({ messages, complete: false, headers, trailers: new grpc.Metadata() }));
    });
    // What comes after the promise was settled changes nothing; an error without a listener would end the process.
    stream.on("error", (error) => finish(() => reject(error)));
    stream.on("end", () => {
      ended = true;
      finishIfOver();
    });
    stream.on("status", (received) => {
      status = received;
      finishIfOver();
    });
  });
}

function tooLarge(bytesMax: number): grpc.StatusObject {
  const details = `The stream is larger than ${bytesMax} bytes`;
  return { code: grpc.status.RESOURCE_EXHAUSTED, details, metadata: new grpc.Metadata() };
}

function cancelling(signal: AbortSignal, cancel: () => void): () => void {
  if (signal.aborted) queueMicrotask(cancel);
  signal.addEventListener("abort", cancel, { once: true });
  return () => signal.removeEventListener("abort", cancel);
}
