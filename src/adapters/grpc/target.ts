/** Where a gRPC service is: `grpc://host:port` in plain text, `grpcs://host:port` over TLS; http and https mean the same. */
import { Failure } from "../../errors/failure.ts";
import { urlCharactersMax } from "../../limits.ts";

export interface Target {
  /** `host:port`, as the target is to hear it; an IPv6 address in brackets. */
  readonly authority: string;
  readonly port: number;
  readonly tls: boolean;
  /** The one spelling we store and show: `grpcs://host:port`. */
  readonly text: string;
  /** The same for whoever judges addresses. */
  readonly url: string;
}

const form = 'must look like "grpc://host:port" or, over TLS, "grpcs://host:port"';

/** @throws Failure invalid_request. The message never repeats the text: it may hold what it should not. */
export function readTarget(value: unknown): Target {
  const match = typeof value === "string" ? /^(grpcs?|https?):\/\/(.+)$/is.exec(value.trim()) : null;
  if (match === null || match[0].length > urlCharactersMax) throw refused(form);
  const tls = /s$/i.test(match[1] ?? "");
  // The rules for hosts are those of http: `URL` does not know the schemes of gRPC.
  const url = URL.parse(`${tls ? "https" : "http"}://${match[2]}`);
  if (url === null) throw refused(form);
  if (url.username !== "" || url.password !== "") throw refused("may not hold a user name or password");
  if ((url.pathname !== "/" && url.pathname !== "") || url.search !== "" || url.hash !== "") {
    throw refused("may not have a path: gRPC methods have theirs from their names");
  }
  const port = url.port === "" ? (tls ? 443 : 80) : Number(url.port);
  const authority = `${url.hostname}:${port}`;
  return {
    authority,
    port,
    tls,
    text: `${tls ? "grpcs" : "grpc"}://${authority}`,
    url: `${tls ? "https" : "http"}://${authority}`,
  };
}

function refused(reason: string): Failure {
  const field = { field: "target", description: reason };
  return new Failure("invalid_request", `The "target" of a gRPC service ${reason}`, { fields: [field] });
}
