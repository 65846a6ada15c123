/**
 * Reads a request body with a bound. Media type and announced size are judged before a byte is read, and only then does a
 * client that asked (`Expect: 100-continue`) get its "go on".
 *
 * A body that is too large is answered while the client may still be sending. Closing at once would reset the connection and
 * lose the answer, so the rest is read away, up to `refusedBodyBytesDrainedMax`.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Failure } from "../errors/failure.ts";
import { bodyBytesMax, refusedBodyBytesDrainedMax } from "../limits.ts";
import { requireMediaType } from "./media-type.ts";

/** The bytes of the body; empty when there is none. Rejects with Failure unsupported_media_type, too_large or cancelled. */
export async function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  mediaTypes: readonly string[],
): Promise<Uint8Array> {
  if (!hasBody(request)) return nothing;
  requireMediaType(request.headers["content-type"], request.headers["content-encoding"], mediaTypes);
  if (Number(request.headers["content-length"] ?? 0) > bodyBytesMax) {
    drain(request);
    throw tooLarge();
  }
  if (expectsContinue(request)) response.writeContinue();
  return collect(request);
}

/** True until the client was told to go on: a connection that is answered before must not be used again. */
export function expectsContinue(request: IncomingMessage): boolean {
  return request.headers.expect?.toLowerCase() === "100-continue";
}

function hasBody(request: IncomingMessage): boolean {
  const length = request.headers["content-length"];
  return request.headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0");
}

const nothing = new Uint8Array(0);

function collect(request: IncomingMessage): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const forget = (): void => {
      request.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onClose);
    };
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size <= bodyBytesMax) {
        chunks.push(chunk);
        return;
      }
      forget();
      drain(request);
      reject(tooLarge());
    };
    const onEnd = (): void => {
      forget();
      resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, size));
    };
    const onClose = (): void => {
      forget();
      reject(new Failure("cancelled", "The client went away while sending its request"));
    };
    request.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onClose);
  });
}

function drain(request: IncomingMessage): void {
  let left = refusedBodyBytesDrainedMax;
  request.on("error", () => undefined);
  request.on("data", (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) request.socket.destroy();
  });
}

function tooLarge(): Failure {
  return new Failure("too_large", `The body is larger than ${bodyBytesMax} bytes`);
}
