/**
 * Long readings of the whole store, bounded: how many at once, how long each may take, and how long it waits for somebody who takes nothing
 * of it. What such a reading holds is let go when it ends, however it ends, even while nobody asks for its next item.
 */
import { Failure } from "../errors/failure.ts";
import { backupMsMax, backupStalledMs, maintenanceAtOnceMax } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";

export interface LeaseBounds {
  readonly atOnceMax: number;
  readonly stalledMs: number;
  readonly totalMs: number;
}

const bounds: LeaseBounds = { atOnceMax: maintenanceAtOnceMax, stalledMs: backupStalledMs, totalMs: backupMsMax };
const retryAfterSeconds = 30;

export class WorkLeases {
  readonly #clock: Clock;
  readonly #bounds: LeaseBounds;
  #taken = 0;

  constructor(clock: Clock, given: LeaseBounds = bounds) {
    this.#clock = clock;
    this.#bounds = given;
  }

  /** `work` begins with the first item asked for, and must let go of everything when it is returned from. */
  async *run<Item>(
    name: string,
    signal: AbortSignal,
    work: () => AsyncGenerator<Item, void, undefined>,
  ): AsyncGenerator<Item, void, undefined> {
    this.#take();
    const started = this.#clock.monotonic();
    const items = work();
    let isLeft = false;
    const leave = async (): Promise<void> => {
      if (isLeft) return;
      isLeft = true;
      this.#taken -= 1;
      await items.return();
    };
    try {
      for (;;) {
        signal.throwIfAborted();
        const { done, value } = await items.next();
        if (done === true) return;
        const leftMs = started + this.#bounds.totalMs - this.#clock.monotonic();
        if (leftMs <= 0) throw tooSlow(name);
        const cancel = this.#clock.after(Math.min(this.#bounds.stalledMs, leftMs), () => void leave().catch(ignore));
        yield value;
        cancel();
        if (isLeft) throw tooSlow(name);
      }
    } finally {
      await leave();
    }
  }

  #take(): void {
    const { atOnceMax } = this.#bounds;
    if (this.#taken >= atOnceMax) {
      const resetAt = Math.ceil(this.#clock.now() / 1_000) + retryAfterSeconds;
      throw new Failure("overloaded", `${atOnceMax} backups or proofs of the store are under way already`, {
        exhaustion: { limit: atOnceMax, remaining: 0, resetAt, retryAfterSeconds },
      });
    }
    this.#taken += 1;
  }
}

function tooSlow(name: string): Failure {
  return new Failure("timeout", `The ${name} was taken too slowly and is cut off: begin it again`);
}

function ignore(): void {}
