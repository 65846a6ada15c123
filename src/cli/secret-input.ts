/** A secret from a file, from stdin, or typed unseen; never from the command line, where every user of the machine could read it. */
import type { CliIo } from "./cli-io.ts";
import { CliError, exitCodes } from "./exit-codes.ts";
import { readInput } from "./input.ts";

/** `path` is a file, `-` or undefined stdin. One line break at the end is not part of it. */
export async function readSecret(io: CliIo, path: string | undefined, what: string): Promise<string> {
  const isTyped = (path === undefined || path === "-") && io.stdin.isTTY === true && io.stdin.setRawMode !== undefined;
  const text = isTyped ? await typed(io, what) : (await readInput(io, path ?? "-")).replace(/\r?\n$/, "");
  if (text === "") throw new CliError(exitCodes.data, `${what} is empty`);
  return text;
}

const keys = { interrupt: "\u0003", end: "\u0004", delete: "\u007f", backspace: "\b" } as const;

/** Without an echo. */
function typed(io: CliIo, what: string): Promise<string> {
  const { stdin, stderr, signal } = io;
  stderr.write(`${what} (not shown): `);
  stdin.setRawMode?.(true);
  stdin.setEncoding("utf8");
  let text = "";
  return new Promise((resolve, reject) => {
    const finish = (settle: () => void): void => {
      stdin.setRawMode?.(false);
      stdin.removeListener("data", take);
      signal.removeEventListener("abort", interrupt);
      stdin.pause();
      stderr.write("\n");
      settle();
    };
    const interrupt = (): void => finish(() => reject(new CliError(exitCodes.interrupted, "Nothing was set")));
    const take = (chunk: string): void => {
      for (const key of chunk) {
        const isEnd = key === "\r" || key === "\n" || key === keys.end;
        if (isEnd) finish(() => resolve(text));
        else if (key === keys.interrupt) interrupt();
        else text = key === keys.delete || key === keys.backspace ? text.slice(0, -1) : text + key;
        if (isEnd || key === keys.interrupt) return;
      }
    };
    stdin.on("data", take);
    signal.addEventListener("abort", interrupt);
    stdin.resume();
  });
}
