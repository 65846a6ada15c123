/**
 * Starts an MCP server as a process: a process group of its own, current directory /, and of our environment the PATH only. A watcher in
 * the group ends it when this server is gone, even if it pays no attention to its input. Where there is no shell there is no watcher.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { Failure } from "../../errors/failure.ts";
import type { StdioAddress } from "./server-address.ts";

export interface Launched {
  readonly process: ChildProcess;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Ends the whole group at once. Also when the process has exited: it may have left others in it. */
  kill(): void;
}

/** The arguments are command and arguments. The command's exit code is the shell's: 127 not found, 126 not executable. */
const script = `
(read -r _ <&3; kill -s KILL 0) </dev/null >/dev/null 2>&1 &
exec 3<&-
exec "$@"
`;

const hasShell = process.platform !== "win32";

export function launch({ command, args }: StdioAddress, env: Readonly<Record<string, string>>): Launched {
  const [executable, values] = hasShell ? ["/bin/sh", ["-c", script, "sh", command, ...args]] : [command, [...args]];
  const child = spawn(executable, values, {
    cwd: "/",
    env: { ...(process.env.PATH === undefined ? {} : { PATH: process.env.PATH }), LANG: "C.UTF-8", ...env },
    detached: true,
    stdio: ["pipe", "pipe", "pipe", "pipe"],
  });
  // Its listener is the transport; but an error without any would end this server.
  child.on("error", () => undefined);
  // Without streams the machine had no descriptors left for them.
  if (!child.stdio) throw new Failure("unavailable", `Cannot start "${command}": too many files are open`);
  const [stdin, stdout, stderr, leash] = child.stdio as unknown as [Writable, Readable, Readable, Writable];
  // A process that is gone makes writes fail; its end is reported by its exit.
  for (const stream of [stdin, stdout, stderr, leash]) stream.on("error", () => undefined);
  // Nobody speaks on the leash, but an unread end would never be noticed as closed.
  (leash as unknown as Readable).resume();
  let isKilled = false;
  const kill = () => {
    // Once: later the number could be another group's.
    if (isKilled) return;
    isKilled = true;
    leash.destroy();
    // Of the group, not only of the process: what it started itself ends too.
    if (child.pid !== undefined) killGroup(child.pid);
  };
  return { process: child, stdin, stdout, stderr, kill };
}

function killGroup(pid: number): void {
  try {
    process.kill(hasShell ? -pid : pid, "SIGKILL");
  } catch {
    // Nobody is left in it.
  }
}
