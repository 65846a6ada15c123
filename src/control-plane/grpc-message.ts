/**
 * The `grpc-message` trailer, encoded as the protocol says: only what is no printable ASCII, and `%` itself. Connect encodes like
 * a URL component, which @grpc/grpc-js does not undo: its users would read `%2Fpath%2Fid must be integer`.
 */

export const grpcMessageHeader = "grpc-message";

export function encodeGrpcMessage(message: string): string {
  return message.toWellFormed().replace(/[^ -$&-~]+/g, encodeURIComponent);
}

/** In place: from Connect's encoding to the protocol's. */
export function plainGrpcMessage(headers: Headers): void {
  const encoded = headers.get(grpcMessageHeader);
  if (encoded !== null) headers.set(grpcMessageHeader, encodeGrpcMessage(decodeURIComponent(encoded)));
}
