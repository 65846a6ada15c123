/**
 * Starts a child process: own process group, empty environment, current directory /, descriptors 3 (to the child) and 4 (from
 * it) for frames, and a leash.
 *
 * The leash is descriptor 5, held by a tiny shell in the child's group that waits for it to close and then kills the group. It
 * ends a child whose server was killed even while the child computes and cannot look at its own pipe.
 *
 * The shell also sets limits before it becomes Node: data size (`ulimit -d`), no core files, and a stack large enough that
 * nested code meets the engine's own, polite limit first. Without a shell the child runs with none of these, and the host
 * polls its memory instead.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { extname } from "node:path";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { childSources, hookFlag } from "./child-sources.ts";
import { encodeFrame } from "./frames.ts";

export interface LaunchOptions {
  /** KiB for `ulimit -d`; undefined for none. */
  readonly dataKbMax: number | undefined;
  /** Load all that a run may need before being ready, so that the data size can be read. */
  readonly measure: boolean;
}

export interface Launched {
  readonly process: ChildProcess;
  readonly input: Writable;
  readonly output: Readable;
  readonly errors: Readable;
  readonly leash: { destroy(): unknown };
}

const entry = new URL(`./child/main${extname(import.meta.url)}`, import.meta.url);

/** Made once: the same text for every child. */
let frame: { readonly bytes: Buffer | undefined } | undefined;
function sourcesFrame(): Buffer | undefined {
  if (frame === undefined) {
    const sources = childSources(entry);
    frame = { bytes: sources === undefined ? undefined : encodeFrame(sources) };
  }
  return frame.bytes;
}

/** JavaScript heap of the child itself: the program lives outside it, in the engine's memory. */
const flags = ["--expose-gc", "--max-old-space-size=256", "--no-warnings"];

/** $1 data KiB or empty, $2 node, the rest its arguments. A stack is only promised to Node where the system grants it. */
const script = `
ulimit -c 0 2>/dev/null
if ulimit -s 16384 2>/dev/null; then stack=15000; else stack=900; fi
(read -r _ <&5; kill -s KILL 0) 3<&- 4>&- >/dev/null 2>&1 &
exec 5<&-
if [ -n "$1" ]; then ulimit -d "$1" || exit 97; fi
node=$2
shift 2
exec "$node" "--stack-size=$stack" "$@"
`;

export const hasShell = process.platform !== "win32";

export function launch({ dataKbMax, measure }: LaunchOptions): Launched {
  const sources = sourcesFrame();
  const nodeArguments = [
    ...flags,
    ...(sources === undefined ? [] : [hookFlag]),
    fileURLToPath(entry),
    ...(measure ? ["measure"] : []),
  ];
  const [command, values] = hasShell
    ? ["/bin/sh", ["-c", script, "sh", String(dataKbMax ?? ""), process.execPath, ...nodeArguments]]
    : [process.execPath, nodeArguments];
  const child = spawn(command, values, {
    cwd: "/",
    env: {},
    detached: true,
    stdio: ["ignore", "ignore", "pipe", "pipe", "pipe", "pipe"],
  });
  const [, , errors, input, output, leash] = child.stdio as unknown as [
    null,
    null,
    Readable,
    Writable,
    Readable,
    Writable,
  ];
  // A child that is gone makes writes fail; its end is reported by its exit.
  for (const stream of [errors, input, output, leash]) stream?.on("error", () => undefined);
  // Nobody speaks on the leash or back on the input, but an unread end would never be noticed as closed.
  for (const stream of [input, leash]) (stream as unknown as Readable | undefined)?.resume();
  if (sources !== undefined) input?.write(sources);
  return { process: child, input, output, errors, leash };
}
