/** Small real parts the store tests share: a wall clock, a log that keeps what it is told, a folder that goes away. */
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../src/ports/clock.ts";
import type { Log, LogLevel } from "../../src/ports/log.ts";

export const wallClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, action) {
    const timer = setTimeout(action, delayMs);
    return () => clearTimeout(timer);
  },
};

export interface KeptLog extends Log {
  readonly lines: { level: LogLevel; event: string; message: string }[];
}

export function keptLog(): KeptLog {
  const lines: KeptLog["lines"] = [];
  const at = (level: LogLevel) => (event: string, message: string) => {
    lines.push({ level, event, message });
  };
  return { lines, debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

export async function temporaryFolder(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await realpath(await mkdtemp(join(tmpdir(), "troupe-store-")));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}
