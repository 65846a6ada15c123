/**
 * The newest changes in memory, numbered one after the other: bounded by number and by size, the oldest leave first.
 *
 * 1. A reader is a position, the number of the last change it took. It holds no changes, so one that is slow costs nothing.
 * 2. Whoever adds never waits: readers are woken later, all that wait together.
 */
import { changesCharactersMax, changesHeldMax, changesTellMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";

export interface ChangeRingOptions {
  readonly clock: Clock;
  /** Number of the first change; a positive safe integer. */
  readonly first: number;
  readonly heldMax?: number;
  readonly charactersMax?: number;
}

export class ChangeRing<Change> {
  readonly #clock: Clock;
  readonly #heldMax: number;
  readonly #charactersMax: number;
  /** By number modulo `heldMax`. */
  readonly #changes: (Change | undefined)[] = [];
  readonly #sizes: number[] = [];
  readonly #waiting = new Set<() => void>();
  #lowest: number;
  #last: number;
  #characters = 0;
  #cancelTell: (() => void) | undefined;

  constructor({ clock, first, heldMax = changesHeldMax, charactersMax = changesCharactersMax }: ChangeRingOptions) {
    this.#clock = clock;
    this.#heldMax = heldMax;
    this.#charactersMax = charactersMax;
    this.#lowest = first;
    this.#last = first - 1;
  }

  /** Number of the newest change; before there is one, of the one before the first. */
  get last(): number {
    return this.#last;
  }

  get held(): number {
    return this.#last + 1 - this.#lowest;
  }

  /** Readers that wait for a change. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Whether every change after the position is here, or still to come. */
  remembers(position: number): boolean {
    return position >= this.#lowest - 1 && position <= this.#last;
  }

  /** Undefined where it has left, or has not come. */
  at(sequence: number): Change | undefined {
    return sequence < this.#lowest || sequence > this.#last ? undefined : this.#changes[sequence % this.#heldMax];
  }

  /** The answer is its number. The change added stays, however large. */
  add(change: Change, characters: number): number {
    if (this.held === this.#heldMax) this.#leave();
    this.#last += 1;
    const place = this.#last % this.#heldMax;
    this.#changes[place] = change;
    this.#sizes[place] = characters;
    this.#characters += characters;
    while (this.#characters > this.#charactersMax && this.held > 1) this.#leave();
    if (this.#waiting.size > 0) this.#cancelTell ??= this.#clock.after(changesTellMs, () => this.#tell());
    return this.#last;
  }

  /** Resolves when there is a change after the position, or `signal` is aborted. */
  async appended(position: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#last > position) return;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }

  #leave(): void {
    const place = this.#lowest % this.#heldMax;
    this.#characters -= this.#sizes[place] ?? 0;
    this.#changes[place] = undefined;
    this.#lowest += 1;
  }

  #tell(): void {
    this.#cancelTell = undefined;
    for (const wake of [...this.#waiting]) wake();
  }
}
