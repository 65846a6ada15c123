/** What a run has given so far, bounded in bytes of UTF-8 and in depth. */
import { runOutputDepthMax } from "../limits.ts";
import { nestsDeeper } from "./runner/frames.ts";

export class TextBound {
  #bytesLeft: number;

  constructor(bytesMax: number) {
    this.#bytesLeft = bytesMax;
  }

  /** The part that still fits, cut between characters; `isFull` when something had to go. */
  take(text: string): { readonly kept: string; readonly isFull: boolean } {
    const whole = text.toWellFormed();
    const bytes = Buffer.from(whole);
    if (bytes.length <= this.#bytesLeft) {
      this.#bytesLeft -= bytes.length;
      return { kept: whole, isFull: false };
    }
    let end = this.#bytesLeft;
    // Not into the middle of a character: bytes after its first begin with 10.
    while (end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end -= 1;
    this.#bytesLeft = 0;
    return { kept: bytes.toString("utf8", 0, end), isFull: true };
  }
}

export class OutputEntries {
  readonly #bytesMax: number;
  readonly #json = new Map<string, string>();
  #bytes = 2;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Later keys win. False when the whole would be too large or too deep; then the rest of the entries is left out. */
  merge(entries: readonly (readonly [key: string, json: string])[]): boolean {
    for (const [key, json] of entries) {
      const former = this.#json.get(key);
      const bytes = this.#bytes + sizeOf(key, json) - (former === undefined ? 0 : sizeOf(key, former));
      if (bytes > this.#bytesMax || nestsDeeper(json, runOutputDepthMax - 1)) return false;
      this.#json.set(key, json);
      this.#bytes = bytes;
    }
    return true;
  }

  /** JSON text of an object whatever the entries hold: one that is no JSON (a lying module) makes it `{}`. */
  toJson(): string {
    const text = `{${[...this.#json].map(([key, json]) => `${JSON.stringify(key)}:${json}`).join(",")}}`.toWellFormed();
    try {
      JSON.parse(text);
      return text;
    } catch {
      return "{}";
    }
  }
}

function sizeOf(key: string, json: string): number {
  return Buffer.byteLength(JSON.stringify(key)) + Buffer.byteLength(json) + 2;
}
