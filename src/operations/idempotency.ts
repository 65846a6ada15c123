/**
 * Idempotency-Key: who does not know whether a creation was heard sends it again under the same key and gets the first answer, for a day
 * and across restarts. Keys are the caller's own, and those of one operation.
 *
 * 1. Only successes are kept. A creation that was refused may be tried again under its key.
 * 2. While the first is under way, others wait for it; if it fails, the next of them is the first.
 * 3. The same key with another body is a conflict.
 * 4. A server that dies between a creation and the note of it has told nobody yet. Processes carry the key in their own record, so the
 *    retry finds the process; of what has an id of the caller's choice the retry is told that it exists. Nothing is created twice.
 */
import { hash } from "node:crypto";
import { Failure } from "../errors/failure.ts";
import {
  callDeadlineMs,
  idempotencyKeepMs,
  idempotencyNotesMax,
  idempotencyPageMax,
  idempotencySweepMs,
} from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { Store } from "../ports/store.ts";
import { authorize, type Call, callOperation } from "./call.ts";
import type { Idempotency, Operation } from "./operation.ts";

export interface Replayable<Output> {
  readonly output: Output;
  /** The answer was given before. */
  readonly replayed: boolean;
}

interface Note {
  readonly body: string;
  readonly output: unknown;
  readonly at: number;
}

interface UnderWay {
  readonly body: string;
  /** Resolves when it has ended, well or not. */
  readonly ended: Promise<void>;
}

const notePrefix = "idempotency/note/";
/** Oldest first: when a note was made, then its name. */
const agePrefix = "idempotency/age/";

export interface IdempotencyOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
}

export class IdempotentCalls {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #underWay = new Map<string, UnderWay>();
  #cancelSweep: (() => void) | undefined;
  #counted: Promise<void> | undefined;
  #notes = 0;
  #closed = false;

  constructor({ store, clock, log }: IdempotencyOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#sweepAfter(idempotencySweepMs);
  }

  close(): void {
    this.#closed = true;
    this.#cancelSweep?.();
  }

  /** `callOperation` for a row that is `idempotent`, under `key` as sent. Rejects with Failure: invalid_request, conflict, or the row's. */
  async call<Input, Output>(
    row: Operation<Input, Output>,
    raw: unknown,
    call: Call,
    key: string,
  ): Promise<Replayable<Output>> {
    authorize(row, call.caller);
    if (!wellFormedKey.test(key)) {
      throw new Failure("invalid_request", "Idempotency-Key must be 1 to 255 printable ASCII characters");
    }
    const idempotency: Idempotency = {
      name: hash("sha256", JSON.stringify([call.caller.name, row.name, key])),
      body: hash("sha256", JSON.stringify(raw) ?? ""),
    };
    const { name, body } = idempotency;
    for (;;) {
      const first = this.#underWay.get(name);
      if (first === undefined) break;
      requireSame(first.body, body);
      await this.#ended(first, call);
    }
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    this.#underWay.set(name, { body, ended });
    try {
      const known = await this.#find(row, idempotency);
      if (known !== undefined) return { output: known, replayed: true };
      call.idempotency = idempotency;
      const output = await callOperation(row, raw, call);
      await this.#note(name, { body, output, at: this.#clock.now() });
      return { output, replayed: false };
    } finally {
      this.#underWay.delete(name);
      end();
    }
  }

  async #find<Input, Output>(row: Operation<Input, Output>, { name, body }: Idempotency): Promise<Output | undefined> {
    const stored = await this.#store.load(notePrefix + name);
    if (stored !== undefined) {
      const note = JSON.parse(stored.value) as Note;
      if (note.at > this.#clock.now() - idempotencyKeepMs) {
        requireSame(note.body, body);
        return note.output as Output;
      }
    }
    const made = await row.idempotent?.find?.(name, this.#clock.now() - idempotencyKeepMs);
    if (made === undefined) return undefined;
    requireSame(made.body, body);
    return made.output;
  }

  async #ended(first: UnderWay, call: Call): Promise<void> {
    const { promise: over, reject } = Promise.withResolvers<never>();
    const { signal } = call;
    const left = (): void => reject(signal.reason);
    if (signal.aborted) left();
    signal.addEventListener("abort", left, { once: true });
    const waitMs = Math.min(call.deadline - this.#clock.monotonic(), callDeadlineMs);
    const cancel = this.#clock.after(Math.max(0, Math.ceil(waitMs)), () =>
      reject(new Failure("timeout", "Another request with this Idempotency-Key is still under way")),
    );
    try {
      await Promise.race([first.ended, over]);
    } finally {
      cancel();
      signal.removeEventListener("abort", left);
    }
  }

  /** What was created stays created when its note cannot be written: the caller hears of its success all the same. */
  async #note(name: string, note: Note): Promise<void> {
    const key = notePrefix + name;
    try {
      const expect = (await this.#store.load(key))?.revision ?? 0;
      await this.#store.commit([
        {
          record: { key, expect, value: JSON.stringify(note) },
          writes: [{ key: ageKey(note.at, name), value: "" }],
          epoch: this.#store.epoch,
        },
      ]);
      this.#notes++;
    } catch (error) {
      this.#log.warn("idempotency-note-lost", "A repeated request may be answered as a new one", { error });
    }
  }

  /** Counted once, page by page; from then on with each note. */
  async #count(): Promise<void> {
    for (let after: string | undefined; !this.#closed; ) {
      const page = await this.#store.range({ prefix: agePrefix, after, limit: idempotencyPageMax });
      this.#notes += page.length;
      after = page.at(-1)?.key;
      if (page.length < idempotencyPageMax) return;
    }
  }

  #sweepAfter(ms: number): void {
    if (this.#closed) return;
    this.#cancelSweep = this.#clock.after(ms, () => void this.#sweep());
  }

  async #sweep(): Promise<void> {
    let more = false;
    try {
      this.#counted ??= this.#count();
      await this.#counted;
      more = await this.#forgetOldest();
    } catch (error) {
      const message = "Old idempotency keys could not be forgotten; the next sweep tries again";
      this.#log.warn("idempotency-sweep-failed", message, { error });
    }
    this.#sweepAfter(more ? 0 : idempotencySweepMs);
  }

  /** One page, oldest first: what is over, and what is too much. True: there may be more. */
  async #forgetOldest(): Promise<boolean> {
    const over = this.#clock.now() - idempotencyKeepMs;
    const surplus = this.#notes - idempotencyNotesMax;
    const page = await this.#store.range({ prefix: agePrefix, limit: idempotencyPageMax });
    const old = page.map(({ key }) => agedKey(key)).filter(({ at }, place) => at <= over || place < surplus);
    if (old.length === 0) return false;
    const records = await this.#store.loadMany(old.map(({ name }) => notePrefix + name));
    await this.#store.commit(
      old.map(({ key, at, name }, place) => {
        const { revision = 0, value = null } = records[place] ?? {};
        // Noted again since under the same name: only the old entry of the index goes.
        const isOld = value !== null && (JSON.parse(value) as Note).at === at;
        return {
          record: { key: notePrefix + name, expect: revision, value: isOld ? null : value },
          writes: [{ key, value: null }],
          epoch: this.#store.epoch,
        };
      }),
    );
    this.#notes -= old.length;
    return old.length === idempotencyPageMax;
  }
}

function ageKey(at: number, name: string): string {
  return `${agePrefix}${String(at).padStart(15, "0")}/${name}`;
}

function agedKey(key: string): { key: string; at: number; name: string } {
  const [at = "", name = ""] = key.slice(agePrefix.length).split("/");
  return { key, at: Number(at), name };
}

const wellFormedKey = /^[\x20-\x7e]{1,255}$/;

function requireSame(first: string, body: string): void {
  if (first !== body) {
    throw new Failure("conflict", "This Idempotency-Key was used with another body: use a new key for another request");
  }
}
