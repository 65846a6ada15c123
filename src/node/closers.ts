/** What was opened, closed in the opposite order, each even if another fails. */
export class Closers {
  readonly #closers: (() => unknown)[] = [];

  add(close: () => unknown): void {
    this.#closers.push(close);
  }

  async close(): Promise<void> {
    for (const close of this.#closers.reverse()) {
      try {
        await close();
      } catch {
        // The next one must still be closed; whatever failed here cannot be used any more either way.
      }
    }
  }
}
