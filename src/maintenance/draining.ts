/**
 * A drain that a caller asks for. It is the same end as after SIGTERM: whoever runs the node hears of `asked` and closes it, and the process
 * ends with 0. A server that drained and stayed would serve nobody and hold the data folder, so that its successor could not start.
 *
 * The caller is told how it goes on the connection that this end is about to close: the last word comes before that, a little before what
 * still runs is ended. A caller who goes away changes nothing.
 */
import { drainPollMs, drainTellMs, maintenanceProgressMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Draining, DrainProgress } from "../ports/maintenance.ts";

export interface NodeDrainingOptions {
  readonly runs: () => { readonly waiting: number; readonly executing: number };
  /** What running programs get to end by themselves. */
  readonly drainMs: number;
  readonly clock: Clock;
}

export class NodeDraining implements Draining {
  /** Resolves, once, with the name of the caller. */
  readonly asked: Promise<string>;
  readonly #options: NodeDrainingOptions;
  readonly #ask: (by: string) => void;
  #end: number | undefined;

  constructor(options: NodeDrainingOptions) {
    this.#options = options;
    const { promise, resolve } = Promise.withResolvers<string>();
    this.asked = promise;
    this.#ask = resolve;
  }

  begin(by: string): AsyncIterable<DrainProgress> {
    this.#end ??= this.#options.clock.monotonic() + this.#options.drainMs;
    this.#ask(by);
    return this.#follow(this.#end);
  }

  async *#follow(end: number): AsyncGenerator<DrainProgress, void, undefined> {
    const { runs, clock } = this.#options;
    const progress = (state: DrainProgress["state"]): DrainProgress => {
      const { waiting, executing } = runs();
      const leftMs = Math.max(0, Math.round(end - clock.monotonic()));
      return { state, running: executing, queued: waiting, leftMs };
    };
    let toldAt = clock.monotonic();
    yield progress("draining");
    for (;;) {
      // First of all: the node has to have heard of it, and admits no queued run from then on.
      await new Promise<void>((resolve) => clock.after(drainPollMs, resolve));
      const now = clock.monotonic();
      if (runs().executing === 0) break;
      if (now >= end - drainTellMs) {
        yield progress("cut");
        return;
      }
      if (now - toldAt < maintenanceProgressMs) continue;
      toldAt = now;
      yield progress("draining");
    }
    yield progress("drained");
  }
}
