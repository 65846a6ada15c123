/** Starts `writer-child.ts` and listens to it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const script = fileURLToPath(new URL("writer-child.ts", import.meta.url));

export interface Writer {
  readonly child: ChildProcess;
  /** Ids of acknowledged commits, in order. */
  readonly acknowledged: string[];
  /** Resolves with the epoch once the store is open; rejects if the process ends before. */
  readonly opened: Promise<number>;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null; readonly stderr: string }>;
  kill(): Promise<void>;
}

export function startWriter(folder: string, writers: number): Writer {
  const child = spawn(process.execPath, [script, folder, String(writers)], { stdio: ["ignore", "pipe", "pipe"] });
  const acknowledged: string[] = [];
  let stderr = "";
  let rest = "";
  child.stderr.on("data", (piece) => {
    stderr += piece;
  });
  const opened = new Promise<number>((resolve, reject) => {
    child.stdout.on("data", (piece) => {
      const lines = `${rest}${piece}`.split("\n");
      // A line cut off by the kill was never a whole acknowledgement.
      rest = lines.pop()!;
      for (const line of lines) {
        if (line.startsWith("open ")) resolve(Number(line.slice(5)));
        else acknowledged.push(line);
      }
    });
    child.once("close", () => reject(new Error(`The writer ended: ${stderr}`)));
  });
  opened.catch(() => undefined);
  const ended = once(child, "close").then(([code, signal]) => ({ code, signal, stderr }));
  const kill = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  return { child, acknowledged, opened, ended, kill };
}
