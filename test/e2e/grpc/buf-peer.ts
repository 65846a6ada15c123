/**
 * `buf curl` (connect-go) as a peer: it knows no proto file and asks reflection, as an operator at a terminal does. One process a call. It
 * compresses no request and reads compressed answers.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { arch, platform } from "node:os";
import { fromBinary, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { StatusSchema } from "../../../src/gen/google/rpc/status_pb.ts";
import { pathOf } from "./js-peer.ts";
import type { Ask, Peer, Told } from "./peer.ts";

/** The program itself: the script that starts it does not pass signals on. */
const program = createRequire(import.meta.url).resolve(
  `@bufbuild/buf-${platform()}-${arch() === "arm64" && platform() === "linux" ? "aarch64" : arch()}/bin/buf`,
);

/** `schema`: a folder of proto files in place of reflection. */
export function bufPeer(address: string, schema?: string): Peer {
  const children = new Set<ChildProcess>();
  return {
    name: "buf curl",
    ask: (ask) => askBy(address, schema, children, ask),
    close() {
      for (const child of children) child.kill("SIGKILL");
    },
  };
}

/** Exit codes of failed calls are those of gRPC times eight. */
const exitCodeStep = 8;

function askBy(address: string, schema: string | undefined, children: Set<ChildProcess>, ask: Ask): Promise<Told> {
  const { method, request = {}, metadata = {}, deadlineMs, cancel, readAfterMs } = ask;
  const headers = Object.entries(metadata).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
  const child = spawn(
    program,
    [
      ...["curl", "-v", "--protocol", "grpc", "-d", "@-", ...headers],
      ...(schema === undefined ? ["--reflect-header", "*"] : ["--schema", schema]),
      ...(deadlineMs === undefined ? [] : ["--timeout", `${deadlineMs}ms`]),
      `http://${address}${pathOf(method)}`,
    ],
    { stdio: "pipe" },
  );
  children.add(child);
  child.stdin.on("error", () => undefined);
  child.stdin.end(JSON.stringify(request));
  const out: Buffer[] = [];
  let noise = "";
  child.stderr.on("data", (chunk) => {
    noise += String(chunk);
  });
  setTimeout(() => child.stdout.on("data", (chunk: Buffer) => out.push(chunk)), readAfterMs ?? 0);
  void cancel?.then(() => child.kill("SIGINT"));
  return new Promise((resolve) => {
    child.once("close", (exitCode) => {
      children.delete(child);
      const seen = metadataIn(noise);
      resolve({
        code: exitCode === null ? -1 : exitCode / exitCodeStep,
        message: messageOf(seen["grpc-status-details-bin"]),
        messages: messagesIn(Buffer.concat(out).toString(), method),
        metadata: seen,
      });
    });
  });
}

/** Its own error text may be the client's; the server's words are in the details. */
function messageOf(details: string | undefined): string {
  return details === undefined ? "" : fromBinary(StatusSchema, Buffer.from(details, "base64")).message;
}

/** Of the last exchange: those before it were with reflection. */
function metadataIn(noise: string): Record<string, string> {
  const lines = [...noise.matchAll(/^buf: < \(#(\d+)\) ([\w-]+): (.*)$/gm)];
  const last = Math.max(...lines.map(([, exchange]) => Number(exchange)), ...(/Invoking RPC/.test(noise) ? [] : [0]));
  return Object.fromEntries(
    lines
      .filter(([, exchange]) => Number(exchange) === last)
      .map(([, , name = "", value = ""]) => [name.toLowerCase(), value]),
  );
}

function messagesIn(text: string, method: Ask["method"]): JsonValue[] {
  return text
    .split(/\n(?=\{)/)
    .filter((one) => one.trim() !== "")
    .map((one) => toJson(method.output, fromJson(method.output, JSON.parse(one)), { alwaysEmitImplicit: true }));
}
