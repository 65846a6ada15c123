/**
 * Places for module processes: only so many live at once. Where none is free, the process that has been idle longest is told to leave; where
 * none is idle, starts wait in the order they came, in a queue with an end. Invariants:
 * 1. A process has its place from before it is started until it is gone, leaving included: what is counted is what lives.
 * 2. As many processes are told to leave as starts wait, never more.
 */
import { Failure } from "../errors/failure.ts";
import { moduleProcessesMax, moduleProcessStartsWaitingMax, moduleProcessWaitMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";

export interface Place {
  /** Its process may be told to leave from now on, by calling `leave`, once. */
  idle(leave: () => void): void;
  busy(): void;
  /** The process is gone, or was never started. Any number of times. */
  release(): void;
}

interface Waiting {
  grant(): void;
}

export class ProcessPlaces {
  readonly #clock: Clock;
  readonly #placesMax: number;
  readonly #waiting = new Set<Waiting>();
  /** In the order in which they became idle. */
  readonly #idle = new Map<Place, () => void>();
  readonly #leaving = new Set<Place>();
  #taken = 0;

  constructor(clock: Clock, placesMax = moduleProcessesMax) {
    this.#clock = clock;
    this.#placesMax = placesMax;
  }

  /** Somebody who takes one now neither waits nor makes another leave. */
  get hasFree(): boolean {
    return this.#taken < this.#placesMax && this.#waiting.size === 0;
  }

  /** Rejects with Failure: overloaded (the queue is full, or no place became free in time), unavailable once `signal` aborts. */
  take(moduleId: string, signal: AbortSignal): Promise<Place> {
    const unwanted = () => new Failure("unavailable", `Module "${moduleId}" is not in use any more`);
    if (signal.aborted) return Promise.reject(unwanted());
    if (this.hasFree) return Promise.resolve(this.#grant());
    const busy = `Module "${moduleId}" cannot be started: all ${this.#placesMax} module processes are busy`;
    if (this.#waiting.size >= moduleProcessStartsWaitingMax) {
      return Promise.reject(new Failure("overloaded", `${busy}, and as many starts wait as may`));
    }
    return new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        this.#waiting.delete(waiting);
        stopTimer();
        signal.removeEventListener("abort", onAbort);
        act();
      };
      const onAbort = () => settle(() => reject(unwanted()));
      const waiting: Waiting = { grant: () => settle(() => resolve(this.#grant())) };
      const stopTimer = this.#clock.after(moduleProcessWaitMs, () =>
        settle(() => reject(new Failure("overloaded", `${busy}, and none was free within ${moduleProcessWaitMs} ms`))),
      );
      signal.addEventListener("abort", onAbort);
      this.#waiting.add(waiting);
      this.#makeRoom();
    });
  }

  #grant(): Place {
    this.#taken += 1;
    let held = true;
    const place: Place = {
      idle: (leave) => {
        if (!held) return;
        this.#idle.set(place, leave);
        this.#makeRoom();
      },
      busy: () => this.#idle.delete(place),
      release: () => {
        if (!held) return;
        held = false;
        this.#idle.delete(place);
        this.#leaving.delete(place);
        this.#taken -= 1;
        const [next] = this.#waiting;
        next?.grant();
      },
    };
    return place;
  }

  #makeRoom(): void {
    for (const [place, leave] of this.#idle) {
      if (this.#leaving.size >= this.#waiting.size) return;
      this.#idle.delete(place);
      this.#leaving.add(place);
      leave();
    }
  }
}
