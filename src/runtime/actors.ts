/** The actors of one kind, typed: what operations hold. */
import type { AskOptions } from "./envelope.ts";
import { indexPrefix } from "./keys.ts";
import type { AnyKind } from "./kind.ts";
import type { Sequence } from "./sequence.ts";
import type { Seen, System } from "./system.ts";

export interface Listed<State> {
  readonly key: string;
  /** Position for the next page: the entry's `sort`. */
  readonly sort: string;
  readonly state: State;
  readonly pid: number | null;
}

export interface Stretch<State> {
  /** May be shorter than asked: records deleted meanwhile are left out. */
  readonly items: readonly Listed<State>[];
  readonly next: string | undefined;
}

export class Actors<State, Message> {
  readonly #system: System;
  readonly #kind: AnyKind;
  readonly #sequence: Sequence | undefined;

  constructor(system: System, kind: AnyKind, sequence: Sequence | undefined) {
    this.#system = system;
    this.#kind = kind;
    this.#sequence = sequence;
  }

  nextKey(): number {
    if (this.#sequence === undefined) throw new Error(`Keys of kind "${this.#kind.name}" are given by callers`);
    return this.#sequence.next();
  }

  ask(key: string, message: Message, options?: AskOptions): Promise<unknown> {
    return this.#system.ask(this.#address(key), message, options);
  }

  tell(key: string, message: Message): void {
    this.#system.tell(this.#address(key), message);
  }

  query(key: string): Promise<Seen<State>> {
    return this.#system.query(this.#address(key)) as Promise<Seen<State>>;
  }

  watch(key: string, watcher: (state: State | null) => void): () => void {
    return this.#system.watch(this.#address(key), watcher as (state: unknown) => void);
  }

  /** A large value beside the record; undefined when there is none. */
  blob(key: string, name: string): Promise<string | undefined> {
    return this.#system.blob(this.#address(key), name);
  }

  /** The ephemeral number of the actor in memory; null when it is not. */
  pid(key: string): number | null {
    return this.#system.pid(this.#address(key));
  }

  /** One stretch of an index after position `after`, in its order. `next` is undefined at the end of the index. */
  async list(index: string, after: string | undefined, limit: number): Promise<Stretch<State>> {
    const prefix = indexPrefix(this.#kind.name, index);
    const entries = await this.#system.store.range({
      prefix,
      after: after === undefined ? undefined : prefix + after,
      limit,
    });
    const keyed = entries.map((entry) => ({ sort: entry.key.slice(prefix.length), key: entry.value }));
    const seen = await this.#system.queryMany(
      this.#kind.name,
      keyed.map(({ key }) => key),
    );
    const byKey = new Map(seen.map((actor) => [actor.key, actor]));
    const items = keyed.flatMap(({ key, sort }) => {
      const actor = byKey.get(key);
      return actor === undefined ? [] : [{ key, sort, state: actor.state as State, pid: actor.pid }];
    });
    return { items, next: entries.length < limit ? undefined : keyed.at(-1)?.sort };
  }

  #address(key: string): { kind: string; key: string } {
    return { kind: this.#kind.name, key };
  }
}
