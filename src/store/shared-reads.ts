/**
 * Reads that come while another is under way go together in the next: each read of LevelDB costs a hop through the thread pool,
 * whatever its size. One at a time keeps the pool free for writes.
 */
import { readKeysTogetherMax } from "../limits.ts";

type GetMany = (keys: string[]) => Promise<(string | undefined)[]>;

interface Waiting {
  readonly keys: readonly string[];
  readonly resolve: (values: (string | undefined)[]) => void;
  readonly reject: (error: unknown) => void;
}

export class SharedReads {
  readonly #getMany: GetMany;
  #waiting: Waiting[] = [];
  #busy = false;

  constructor(getMany: GetMany) {
    this.#getMany = getMany;
  }

  read(keys: readonly string[]): Promise<(string | undefined)[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ keys, resolve, reject });
      if (!this.#busy) void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    this.#busy = true;
    while (this.#waiting.length > 0) await this.#readTogether(this.#next());
    this.#busy = false;
  }

  #next(): Waiting[] {
    let keys = 0;
    let count = 0;
    for (const waiting of this.#waiting) {
      keys += waiting.keys.length;
      if (count > 0 && keys > readKeysTogetherMax) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  async #readTogether(together: readonly Waiting[]): Promise<void> {
    try {
      const values = await this.#getMany(together.flatMap(({ keys }) => keys));
      let start = 0;
      for (const { keys, resolve } of together) {
        resolve(values.slice(start, start + keys.length));
        start += keys.length;
      }
    } catch (error) {
      for (const { reject } of together) reject(error);
    }
  }
}
