/**
 * Starts a module process: empty environment, a process group of its own, the socket on descriptor 3. A watcher in the group ends
 * it when the host is gone, even while it computes and would never notice its socket closing. `ulimit -d` fences the memory outside the
 * JavaScript heap too; where there is no shell there is neither, and the host polls instead.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Duplex, Readable, Writable } from "node:stream";
import { moduleMemoryMb } from "../limits.ts";
import type { StartPlan } from "./isolation.ts";

export interface Launched {
  readonly process: ChildProcess;
  readonly socket: Duplex;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly leash: Writable;
}

/** Flags of node in every module process. */
export const nodeFlags: readonly string[] = [`--max-old-space-size=${moduleMemoryMb}`, "--no-warnings"];

/** $1 data KiB or empty, the rest command and arguments. */
const script = `
ulimit -c 0 2>/dev/null
(read -r _ <&4; kill -s KILL 0) 3<&- >/dev/null 2>&1 &
exec 4<&-
if [ -n "$1" ]; then ulimit -d "$1" || exit 97; fi
shift
exec "$@"
`;

export const hasShell = process.platform !== "win32";

export function launch(plan: StartPlan, dataKbMax: number | undefined): Launched {
  const [command, values] = hasShell
    ? ["/bin/sh", ["-c", script, "sh", String(dataKbMax ?? ""), plan.command, ...plan.arguments]]
    : [plan.command, [...plan.arguments]];
  const child = spawn(command, values, {
    cwd: "/",
    env: {},
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"],
  });
  const [, stdout, stderr, socket, leash] = child.stdio as unknown as [null, Readable, Readable, Duplex, Duplex];
  // A process that is gone makes writes fail; its end is reported by its exit.
  for (const stream of [stdout, stderr, socket, leash]) stream.on("error", () => undefined);
  // Nobody speaks on the leash, but an unread end would never be noticed as closed.
  leash.resume();
  return { process: child, socket, stdout, stderr, leash };
}
