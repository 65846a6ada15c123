/** How often something ended how, and how long it took; by one label from a closed set and the kinds of failures. */
import type { DurationTally, TalliedCounter, TalliedHistogram, Tally } from "./metrics-tallies.ts";

export class OutcomeMeter {
  readonly #total: TalliedCounter;
  readonly #duration: TalliedHistogram;
  readonly #label: string;
  readonly #byOutcome = new Map<string, Tally>();
  readonly #byValue = new Map<string, DurationTally>();

  constructor(parts: { total: TalliedCounter; duration: TalliedHistogram }, label: string) {
    this.#total = parts.total;
    this.#duration = parts.duration;
    this.#label = label;
  }

  /** Makes the series at nothing: one that begins with its first failures has no increase by them. */
  expect(value: string, outcomes: readonly string[]): void {
    for (const outcome of outcomes) this.#tally(value, outcome);
  }

  add(value: string, outcome: string, durationMs: number): void {
    this.#tally(value, outcome).count += 1;
    let duration = this.#byValue.get(value);
    if (duration === undefined) {
      duration = this.#duration.holder({ [this.#label]: value });
      this.#byValue.set(value, duration);
    }
    duration.observe(durationMs);
  }

  #tally(value: string, outcome: string): Tally {
    const name = `${value} ${outcome}`;
    let tally = this.#byOutcome.get(name);
    if (tally === undefined) {
      tally = this.#total.holder({ [this.#label]: value, outcome });
      this.#byOutcome.set(name, tally);
    }
    return tally;
  }
}
