/** A store whose commits can be held back, or answered with another outcome, before or after they landed. */
import type { Commit, Outcome, Range, Store, StoreHealth } from "../../src/ports/store.ts";

export type Verdict = "pass" | "land-then-unknown" | "unknown" | "conflict" | "fenced" | { readonly reject: unknown };

export class GatedStore implements Store {
  readonly inner: Store;
  /** Asked for each commit call; may wait. */
  gate: () => Verdict | Promise<Verdict> = () => "pass";
  commits = 0;
  loads: string[] = [];

  constructor(inner: Store) {
    this.inner = inner;
  }

  get epoch(): number {
    return this.inner.epoch;
  }

  load(key: string): ReturnType<Store["load"]> {
    this.loads.push(key);
    return this.inner.load(key);
  }

  read(keys: readonly string[]): ReturnType<Store["read"]> {
    return this.inner.read(keys);
  }

  loadMany(keys: readonly string[]): ReturnType<Store["loadMany"]> {
    return this.inner.loadMany(keys);
  }

  async commit(commits: readonly Commit[]): Promise<readonly Outcome[]> {
    this.commits++;
    const verdict = await this.gate();
    if (typeof verdict === "object") throw verdict.reject;
    if (verdict === "pass") return this.inner.commit(commits);
    if (verdict === "land-then-unknown") await this.inner.commit(commits);
    return commits.map(() => (verdict === "land-then-unknown" ? "unknown" : verdict));
  }

  range(range: Range): ReturnType<Store["range"]> {
    return this.inner.range(range);
  }

  health(): StoreHealth {
    return this.inner.health();
  }

  onHealth(listener: (health: StoreHealth) => void): () => void {
    return this.inner.onHealth(listener);
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}
