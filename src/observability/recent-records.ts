/** The newest records in memory, in order: bounded by number and by size, the oldest leave first. */
import type { LogRecord } from "../ports/log-records.ts";

export class RecentRecords {
  readonly #countMax: number;
  readonly #charactersMax: number;
  /** Those before `#first` have left; they are cut off now and then. */
  #records: LogRecord[] = [];
  /** Of each in `#records`. */
  #sizes: number[] = [];
  #first = 0;
  #characters = 0;
  #left = 0;

  constructor(countMax: number, charactersMax: number) {
    this.#countMax = countMax;
    this.#charactersMax = charactersMax;
  }

  get last(): LogRecord | undefined {
    return this.#records.at(-1);
  }

  /** All kept records from this seq on are here; what is below left, or never was. */
  get lowest(): number {
    return this.#left === 0 ? (this.#records[this.#first]?.seq ?? Number.MAX_SAFE_INTEGER) : this.#left + 1;
  }

  /** The answer: those that left. The one added stays, however large. */
  add(record: LogRecord): readonly LogRecord[] {
    const size = charactersOf(record);
    this.#records.push(record);
    this.#sizes.push(size);
    this.#characters += size;
    const left: LogRecord[] = [];
    while (this.#isOver()) left.push(this.#leave());
    if (this.#first > this.#countMax) this.#cutOff();
    return left;
  }

  /** Oldest first. */
  above(seq: number, limit: number): readonly LogRecord[] {
    const start = this.#placeAbove(seq);
    return this.#records.slice(start, start + limit);
  }

  /** Newest first. */
  below(seq: number, limit: number): readonly LogRecord[] {
    const end = this.#placeAbove(seq - 1);
    return this.#records.slice(Math.max(this.#first, end - limit), end).reverse();
  }

  /** Adds to every seq. */
  shift(by: number): void {
    this.#cutOff();
    this.#records = this.#records.map((record) => ({ ...record, seq: record.seq + by }));
    if (this.#left > 0) this.#left += by;
  }

  #isOver(): boolean {
    const count = this.#records.length - this.#first;
    return count > this.#countMax || (this.#characters > this.#charactersMax && count > 1);
  }

  #leave(): LogRecord {
    const oldest = this.#records[this.#first] as LogRecord;
    this.#characters -= this.#sizes[this.#first] as number;
    this.#first += 1;
    this.#left = oldest.seq;
    return oldest;
  }

  #cutOff(): void {
    this.#records = this.#records.slice(this.#first);
    this.#sizes = this.#sizes.slice(this.#first);
    this.#first = 0;
  }

  #placeAbove(seq: number): number {
    let low = this.#first;
    let high = this.#records.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#records[middle] as LogRecord).seq > seq) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** Roughly. */
function charactersOf({ message, error = "", fields = {} }: LogRecord): number {
  let characters = 300 + message.length + error.length;
  for (const name in fields) {
    const value = fields[name];
    if (typeof value === "string") characters += value.length;
    else if (typeof value === "object") characters += JSON.stringify(value).length;
  }
  return characters;
}
