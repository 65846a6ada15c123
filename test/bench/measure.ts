/**
 * How every benchmark measures: all ways in each round, one after the other, so that whatever else the machine does hits all
 * of them; then medians. Two ways are compared by the median of their ratios, round by round.
 *
 * A figure is a rate, a latency or CPU time. Nothing here passes or fails: a missed target is printed, not thrown.
 */
import { cpus, loadavg } from "node:os";

export type Sample<Figure extends string> = Readonly<Record<Figure, number>>;
export type Ways<Way extends string, Figure extends string> = Readonly<Record<Way, () => Promise<Sample<Figure>>>>;

export interface Ratio {
  readonly median: number;
  /** First and third quartile of the rounds: far apart means that the machine was busy. */
  readonly quartiles: readonly [number, number];
}

export interface Rounds<Way extends string, Figure extends string> {
  median(way: Way, figure: Figure): number;
  /** Rounds that count. */
  readonly rounds: number;
  /** `way` divided by `peer`. */
  ratio(way: Way, peer: Way, figure: Figure): Ratio;
}

export interface RoundsOptions {
  readonly rounds: number;
  /** Run first and forgotten: compilers and caches settle. */
  readonly warmUps?: number;
  /** On a busy machine no further round is begun after this, once there are `roundsMin`. */
  readonly secondsMax?: number;
}

const roundsMin = 5;

export async function inRounds<Way extends string, Figure extends string>(
  ways: Ways<Way, Figure>,
  { rounds, warmUps = 1, secondsMax = 40 }: RoundsOptions,
): Promise<Rounds<Way, Figure>> {
  const names = Object.keys(ways) as Way[];
  const samples = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Way, Sample<Figure>[]>;
  const end = performance.now() + secondsMax * 1_000;
  let counted = 0;
  for (let round = -warmUps; round < rounds; round += 1) {
    if (round >= roundsMin && performance.now() > end) break;
    counted = Math.max(0, round + 1);
    // Another one starts each round: nobody always runs after the same neighbour.
    const first = (round + warmUps) % names.length;
    for (const name of [...names.slice(first), ...names.slice(0, first)]) {
      const sample = await ways[name]();
      if (round >= 0) samples[name].push(sample);
    }
  }
  return {
    rounds: counted,
    median: (way, figure) =>
      quantile(
        samples[way].map((sample) => sample[figure]),
        0.5,
      ),
    ratio(way, peer, figure) {
      const ratios = samples[way].map((sample, round) => sample[figure] / samples[peer][round]![figure]);
      return { median: quantile(ratios, 0.5), quartiles: [quantile(ratios, 0.25), quantile(ratios, 0.75)] };
    },
  };
}

export function quartilesText({ quartiles: [low, high] }: Ratio): string {
  return `${low.toFixed(2)}..${high.toFixed(2)}`;
}

/** NaN of nothing. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export interface Target {
  readonly what: string;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly measured: number;
}

/** The numbers are worth nothing without it. `load` is the mean of the last minute, with what the benchmark itself made of it. */
export function machine(): { node: string; cores: number; model: string | undefined; load: number } {
  const [core, ...more] = cpus();
  return { node: process.version, cores: more.length + 1, model: core?.model, load: loadavg()[0] ?? 0 };
}

/** One JSON line for programs, then a table for people. */
export function report(
  bench: string,
  about: string,
  rows: readonly Readonly<Record<string, string | number>>[],
  targets: readonly Target[],
): void {
  const judged = targets.map((target) => ({ ...target, measured: short(target.measured), met: isMet(target) }));
  const rounded = rows.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name, short(value)])),
  );
  const { node, cores, model, load } = machine();
  console.log(JSON.stringify({ bench, node, cores, model, load, rows: rounded, targets: judged }));
  console.log(`\n${about}\nNode ${node}, ${cores} x ${model}, load ${load.toFixed(1)}\n`);
  for (const line of table(rounded)) console.log(`  ${line}`);
  // A benchmark itself keeps up to three processes busy.
  if (load > cores + 3) console.log("  Others were at work: rates and latencies say little, read the CPU columns");
  for (const { what, atLeast, atMost, measured, met } of judged) {
    const bound = atLeast === undefined ? `at most ${atMost}` : `at least ${atLeast}`;
    console.log(`  ${met ? "met   " : "MISSED"} ${what}: ${measured}, target ${bound}`);
  }
}

function isMet({ atLeast = Number.NEGATIVE_INFINITY, atMost = Number.POSITIVE_INFINITY, measured }: Target): boolean {
  return measured >= atLeast && measured <= atMost;
}

/** Three digits that count. */
function short<Value extends string | number>(value: Value): Value | number {
  return typeof value === "number" && Number.isFinite(value) ? Number(value.toPrecision(value < 1_000 ? 3 : 4)) : value;
}

function table(rows: readonly Readonly<Record<string, string | number>>[]): string[] {
  const columns = Object.keys(rows[0] ?? {});
  const lines = [columns, ...rows.map((row) => columns.map((column) => String(row[column] ?? "")))];
  const widths = columns.map((_, position) => Math.max(...lines.map((line) => line[position]!.length)));
  return lines.map((line) =>
    line
      .map((cell, position) => (position === 0 ? cell.padEnd(widths[position]!) : cell.padStart(widths[position]!)))
      .join("  "),
  );
}
