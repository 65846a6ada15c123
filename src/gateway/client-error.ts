/** Requests that Node's parser refuses never reach the router: the envelope is written to the socket by hand. */
import type { Socket } from "node:net";
import { Failure } from "../errors/failure.ts";
import { requestIdFrom } from "../operations/call.ts";
import { failureBody, jsonContentType } from "./answer.ts";

export function clientErrorHandler(error: Error & { readonly code?: string }, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const { status, failure } = refusal(error.code);
  const body = JSON.stringify(failureBody(failure));
  socket.end(
    [
      `HTTP/1.1 ${status}`,
      `content-type: ${jsonContentType}`,
      `content-length: ${Buffer.byteLength(body)}`,
      `x-request-id: ${requestIdFrom(undefined)}`,
      "connection: close",
      "",
      body,
    ].join("\r\n"),
  );
}

function refusal(code: string | undefined): { status: string; failure: Failure } {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return {
        status: "431 Request Header Fields Too Large",
        failure: new Failure("too_large", "The request headers are too large"),
      };
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return {
        status: "413 Payload Too Large",
        failure: new Failure("too_large", "The chunk extensions are too large"),
      };
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return { status: "408 Request Timeout", failure: new Failure("timeout", "The request was not received in time") };
    default:
      return {
        status: "400 Bad Request",
        failure: new Failure("invalid_request", "The request is not valid HTTP/1.1"),
      };
  }
}
