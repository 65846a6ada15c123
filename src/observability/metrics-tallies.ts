/**
 * Counters and histograms for what happens with every request. prom-client looks up the labels anew each time it counts, which costs a
 * microsecond; these count in plain numbers, one holder for each set of labels, and are asked for them when somebody collects.
 */
import { Counter, type Histogram, type Metric, type Registry } from "prom-client";

type Labels = Readonly<Record<string, string>>;

export interface TallyOptions {
  readonly registry: Registry;
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

export interface Tally {
  count: number;
}

/** Ask for a holder once and keep it: each call makes another series. */
export class TalliedCounter {
  readonly #tallies: { readonly labels: Labels; readonly tally: Tally }[] = [];

  constructor({ registry, name, help, labelNames }: TallyOptions) {
    const tallies = this.#tallies;
    new Counter({
      name,
      help,
      labelNames: [...labelNames],
      registers: [registry],
      collect() {
        this.reset();
        for (const { labels, tally } of tallies) this.inc(labels, tally.count);
      },
    });
  }

  holder(labels: Labels): Tally {
    const tally = { count: 0 };
    this.#tallies.push({ labels, tally });
    return tally;
  }
}

export class DurationTally {
  readonly labels: Labels;
  readonly #boundsMs: Float64Array;
  readonly #counts: Float64Array;
  #sumMs = 0;

  constructor(labels: Labels, boundsSeconds: readonly number[]) {
    this.labels = labels;
    this.#boundsMs = Float64Array.from(boundsSeconds, (seconds) => seconds * 1_000);
    this.#counts = new Float64Array(boundsSeconds.length + 1);
  }

  observe(durationMs: number): void {
    const bounds = this.#boundsMs;
    let place = 0;
    while (place < bounds.length && durationMs > (bounds[place] as number)) place += 1;
    this.#counts[place] = (this.#counts[place] as number) + 1;
    this.#sumMs += durationMs;
  }

  /** How many were at most as long as each bound, the last being all of them; and their sum. */
  read(): { readonly upTo: readonly number[]; readonly sumSeconds: number } {
    let sum = 0;
    const upTo = Array.from(this.#counts, (count) => {
      sum += count;
      return sum;
    });
    return { upTo, sumSeconds: this.#sumMs / 1_000 };
  }
}

export interface TalliedHistogramOptions extends TallyOptions {
  readonly boundsSeconds: readonly number[];
}

/** Seconds outside, milliseconds inside. Series nobody has observed anything in are left out. */
export class TalliedHistogram {
  readonly #options: TalliedHistogramOptions;
  readonly #tallies: DurationTally[] = [];

  constructor(options: TalliedHistogramOptions) {
    this.#options = options;
    const { name, help } = options;
    const metric = { name, help, get: async () => ({ name, help, type: "histogram", values: this.#values() }) };
    // What a registry asks of a metric is its name and `get`; the declared type names the classes that come with it.
    options.registry.registerMetric(metric as unknown as Metric & Histogram);
  }

  holder(labels: Labels): DurationTally {
    const tally = new DurationTally(labels, this.#options.boundsSeconds);
    this.#tallies.push(tally);
    return tally;
  }

  #values(): readonly { metricName: string; labels: Labels; value: number }[] {
    const { name, boundsSeconds } = this.#options;
    return this.#tallies.flatMap((tally) => {
      const { labels } = tally;
      const { upTo, sumSeconds } = tally.read();
      const count = upTo.at(-1) ?? 0;
      if (count === 0) return [];
      return [
        ...upTo.map((value, place) => ({
          metricName: `${name}_bucket`,
          labels: { ...labels, le: String(boundsSeconds[place] ?? "+Inf") },
          value,
        })),
        { metricName: `${name}_sum`, labels, value: sumSeconds },
        { metricName: `${name}_count`, labels, value: count },
      ];
    });
  }
}
