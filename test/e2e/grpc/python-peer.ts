/** Debian's python3-grpcio (gRPC's C core) as a peer, where it is installed. */
import { spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fromBinary, fromJson, toBinary, toJson } from "@bufbuild/protobuf";
import { pathOf } from "./js-peer.ts";
import type { Ask, Peer, Told } from "./peer.ts";

const python = "/usr/bin/python3";

export function hasPythonPeer(): boolean {
  return spawnSync(python, ["-c", "import grpc"]).status === 0;
}

export function pythonPeer(address: string): Peer {
  const child = spawn(python, [join(import.meta.dirname, "python_peer.py"), address], {
    stdio: "pipe",
  });
  child.stderr.pipe(process.stderr);
  const waiting = new Map<number, { ask: Ask; resolve: (told: Told) => void }>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const told = JSON.parse(line) as Omit<Told, "messages"> & { number: number; messages: string[] };
    const { ask, resolve } = waiting.get(told.number) ?? {};
    waiting.delete(told.number);
    if (ask === undefined) return;
    const { output } = ask.method;
    const messages = told.messages.map((bytes) =>
      toJson(output, fromBinary(output, Buffer.from(bytes, "base64")), { alwaysEmitImplicit: true }),
    );
    resolve?.({ code: told.code, message: told.message, messages, metadata: told.metadata });
  });
  let number = 0;
  const tell = (order: object): void => void child.stdin.write(`${JSON.stringify(order)}\n`);
  return {
    name: "python3-grpcio",
    ask(ask) {
      number += 1;
      const own = number;
      const { method, request = {}, metadata = {}, deadlineMs, compressed = false, cancel, readAfterMs } = ask;
      void cancel?.then(() => tell({ cancel: own }));
      return new Promise((resolve) => {
        waiting.set(own, { ask, resolve });
        tell({
          number: own,
          path: pathOf(method),
          request: Buffer.from(toBinary(method.input, fromJson(method.input, request))).toString("base64"),
          metadata,
          compressed,
          ...(deadlineMs === undefined ? {} : { deadlineSeconds: deadlineMs / 1_000 }),
          ...(readAfterMs === undefined ? {} : { readAfterSeconds: readAfterMs / 1_000 }),
        });
      });
    },
    close: () => void child.kill(),
  };
}
