/** A stream that goes on where it was when its connection breaks, until Ctrl-C or until it is over. */
import { setTimeout as sleep } from "node:timers/promises";
import { SilentServerError } from "./exit-codes.ts";
import type { Run, Streaming } from "./run.ts";

const retryMs = 1_000;

/**
 * @param open the stream after the message of that number; undefined: from the start.
 * @param isEndless a stream that ends was ended by a server that goes: it is opened again.
 * @throws TroupeError for a first try that fails, and for what is not a lost connection.
 */
export async function* follow<Message>(
  run: Run,
  open: (after: bigint | undefined, streaming: Streaming) => AsyncIterable<Message>,
  sequenceOf: (message: Message) => bigint | undefined,
  { isEndless = true, after }: { readonly isEndless?: boolean; readonly after?: bigint | undefined } = {},
): AsyncGenerator<Message> {
  let last = after;
  let hasBegun = after !== undefined;
  let isAway = false;
  for (;;) {
    try {
      const from = last;
      for await (const message of run.stream((streaming) => open(from, streaming))) {
        isAway = false;
        hasBegun = true;
        last = sequenceOf(message) ?? last;
        yield message;
      }
      if (!isEndless) return;
    } catch (error) {
      const isSilent = error instanceof SilentServerError;
      if (!(isLost(error) || isSilent) || !hasBegun) throw error;
      if (!isAway) await run.out.note("The server is away; trying again until Ctrl-C");
      isAway = true;
    }
    await sleep(retryMs, undefined, { signal: run.signal });
  }
}

const lostCodes: ReadonlySet<string> = new Set(["unavailable", "connection_lost"]);

export function isLost(error: unknown): boolean {
  return error instanceof Error && lostCodes.has((error as { readonly code?: string }).code ?? "");
}
