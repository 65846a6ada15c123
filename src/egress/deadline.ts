/** One end for a whole exchange: its time, or the caller going away. Aborts carry the Failure to be thrown. */
import { Failure } from "../errors/failure.ts";
import type { Clock } from "../ports/clock.ts";

export interface Deadline {
  readonly signal: AbortSignal;
  /** The promise, unless the end comes first; what is abandoned may still settle, unheard. */
  race<Value>(work: Promise<Value>): Promise<Value>;
  /** Must be called when the exchange is over. */
  end(): void;
}

export function startDeadline(
  clock: Clock,
  timeoutMs: number,
  host: string,
  caller: AbortSignal | undefined,
): Deadline {
  const controller = new AbortController();
  const { signal } = controller;
  const onCallerGone = (): void => controller.abort(new Failure("cancelled", `The request to "${host}" was cancelled`));
  const stop = clock.after(timeoutMs, () =>
    controller.abort(new Failure("timeout", `"${host}" did not answer within ${timeoutMs} ms`)),
  );
  caller?.addEventListener("abort", onCallerGone, { once: true });
  if (caller?.aborted === true) onCallerGone();
  return {
    signal,
    race: (work) => raceWith(signal, work),
    end() {
      stop();
      caller?.removeEventListener("abort", onCallerGone);
    },
  };
}

function raceWith<Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
