/**
 * Follows one process: what its run did so far, then what it does, until the run is over and told.
 *
 * Every event has a number that means the same event for ever, also after a restart: the run times a million, and within the run 0 for
 * `queued`, then what was recorded in order, and at the very end the output and `idle`.
 *
 * 1. A follower is a position. It asks for the next event when its reader has taken the last one, so a slow one holds nobody up.
 * 2. It keeps no events of a run that has ended but the stretch it tells: those are beside the record, and parsed in what all followers share.
 * 3. Numbers only grow. A follower whose run was replaced before it was told to the end starts over with a snapshot.
 */
import type { ProcessMessage, ProcessState } from "../actors/process.ts";
import { Failure } from "../errors/failure.ts";
import { recordedStretchCharactersMax } from "../limits.ts";
import type { Launcher, Recording, RunEvent, RunIdentity } from "../ports/launcher.ts";
import type { Actors } from "../runtime/actors.ts";
import type { EndedRecordings } from "./ended-recordings.ts";

export interface Followed {
  readonly processes: Actors<ProcessState, ProcessMessage>;
  readonly launcher: Launcher;
  readonly recordings: EndedRecordings;
}

export type ProcessHappening =
  | { readonly kind: "snapshot"; readonly process: ProcessState }
  | { readonly kind: "state"; readonly state: "queued" }
  | { readonly kind: "state"; readonly state: "idle"; readonly process: ProcessState }
  | { readonly kind: "output"; readonly output: Readonly<Record<string, unknown>> }
  | RunEvent;

export type NumberedHappening = ProcessHappening & { readonly sequence: number };

const eventsPerRun = 1_000_000;
/** Within a run. Those between are as many as were recorded. */
const queuedNumber = 0;
const outputNumber = eventsPerRun - 2;
const idleNumber = eventsPerRun - 1;
const nothingTold = -1;

export interface Follow {
  readonly id: number;
  /** Number of the last event the follower has. One that is not known starts over with a snapshot, as none does. */
  readonly after: number | undefined;
  readonly signal: AbortSignal;
}

/** null: the follower has everything. Rejects with Failure not_found. */
export async function followProcess(
  followed: Followed,
  { id, after, signal }: Follow,
): Promise<AsyncIterable<NumberedHappening> | null> {
  const follower = new ProcessFollower(followed, id, signal);
  try {
    const state = await follower.begin();
    if (state === null) throw new Failure("not_found", `There is no process ${id}`);
    if (hasEnded(state, state.run) && after === numbered(state.run, idleNumber)) {
      follower.leave();
      return null;
    }
    return follower.tell(after);
  } catch (error) {
    follower.leave();
    throw error;
  }
}

class ProcessFollower {
  readonly #processes: Followed["processes"];
  readonly #launcher: Launcher;
  readonly #recordings: EndedRecordings;
  readonly #id: number;
  readonly #signal: AbortSignal;
  readonly #unwatch: () => void;
  readonly #leave = (): void => this.leave();
  /** undefined until it was looked up; null once deleted. */
  #latest: ProcessState | null | undefined;
  #run = 0;
  /** Number within the run of the last event its reader has taken. */
  #told = nothingTold;
  /** The state the run ended with, once that is durable. */
  #ended: ProcessState | undefined;
  #recording: Recording | undefined;
  #wake: (() => void) | undefined;

  constructor({ processes, launcher, recordings }: Followed, id: number, signal: AbortSignal) {
    this.#processes = processes;
    this.#launcher = launcher;
    this.#recordings = recordings;
    this.#id = id;
    this.#signal = signal;
    this.#unwatch = processes.watch(String(id), (state) => this.#changed(state));
    signal.addEventListener("abort", this.#leave, { once: true });
  }

  /** It watches before it looks, so that no step is missed. */
  async begin(): Promise<ProcessState | null> {
    const { state } = await this.#processes.query(String(this.#id));
    if (this.#latest === undefined) this.#latest = state;
    return this.#latest;
  }

  leave(): void {
    this.#unwatch();
    this.#signal.removeEventListener("abort", this.#leave);
    this.#wake?.();
  }

  async *tell(after: number | undefined): AsyncGenerator<NumberedHappening, void, undefined> {
    let position = toldBefore(this.#latest, after);
    try {
      for (;;) {
        const state = this.#latest ?? null;
        if (state === null) return;
        const { run } = state;
        this.#run = run;
        this.#ended = hasEnded(state, run) ? state : undefined;
        this.#recording = undefined;
        this.#told = position ?? nothingTold;
        if (position === undefined) yield { kind: "snapshot", process: state, sequence: firstOf(run) - 1 };
        const isTold: boolean = yield* this.#tellRun();
        const next: number | undefined = this.#latest?.run;
        if (isTold && run > 0 && next === run) return;
        position = isTold && next === run + 1 ? nothingTold : undefined;
      }
    } finally {
      this.leave();
    }
  }

  /** False: the run was replaced, or the position is not one of this run; then it is to be told from the start. */
  async *#tellRun(): AsyncGenerator<NumberedHappening, boolean, undefined> {
    if (this.#run === 0) {
      while (this.#latest?.run === 0) await this.#next();
      return true;
    }
    if (this.#told === nothingTold) {
      yield this.#numbered(queuedNumber, { kind: "state", state: "queued" });
      this.#told = queuedNumber;
    }
    for (;;) {
      this.#signal.throwIfAborted();
      if (this.#ended !== undefined) return yield* this.#tellEnd(this.#ended);
      if (this.#latest?.run !== this.#run) return false;
      this.#recording ??= this.#launcher.recording(this.#identity());
      const known = this.#recording?.events.length;
      if (this.#told > (known ?? (this.#latest.state === "queued" ? queuedNumber : outputNumber))) return false;
      const event = this.#recording?.events[this.#told];
      if (event === undefined) await this.#next();
      else {
        yield this.#numbered(this.#told + 1, event);
        this.#told++;
      }
    }
  }

  async *#tellEnd(ended: ProcessState): AsyncGenerator<NumberedHappening, boolean, undefined> {
    // Held only by one who had everything: the next run may have cleared what is beside the record.
    let output = this.#recording?.output;
    while (output === undefined && this.#told < outputNumber) {
      const part = await this.#stored(ended);
      if (part === undefined) return false;
      for (const event of part.events) {
        yield this.#numbered(this.#told + 1, event);
        this.#told++;
      }
      if (!part.isLast) continue;
      output = await this.#processes.blob(String(this.#id), "output");
      this.#signal.throwIfAborted();
      if (this.#latest?.run !== this.#run) return false;
      break;
    }
    if (output !== undefined && this.#told < outputNumber) {
      yield this.#numbered(outputNumber, { kind: "output", output: JSON.parse(output) });
    }
    yield this.#numbered(idleNumber, { kind: "state", state: "idle", process: ended });
    return true;
  }

  /** What comes after the position, some of it at a time; undefined when the run was replaced or has no such position. */
  async #stored(ended: ProcessState): Promise<{ events: readonly RunEvent[]; isLast: boolean } | undefined> {
    const run = this.#identity();
    const kept = this.#recordings.get(run);
    const text = kept === undefined ? await this.#processes.blob(String(this.#id), "events") : undefined;
    this.#signal.throwIfAborted();
    // From here on the text is known to be of this run: the next one shows itself before it writes its own.
    if (this.#latest?.run !== this.#run) return undefined;
    const all = kept ?? (text === undefined ? eventsOfRecord(ended) : this.#recordings.parse(run, text));
    // What an interrupted run did went with the server; the follower may have seen it.
    if (this.#told > all.length && ended.reason !== "interrupted") return undefined;
    const events = stretch(all, this.#told);
    return { events, isLast: this.#told + events.length >= all.length };
  }

  #numbered(number: number, happening: ProcessHappening): NumberedHappening {
    return { ...happening, sequence: numbered(this.#run, number) };
  }

  #changed(state: ProcessState | null): void {
    this.#latest = state;
    if (state !== null && hasEnded(state, this.#run)) {
      this.#ended = state;
      // Invariant 2: one whose reader is behind would keep a whole recording for as long as it likes.
      if (this.#told !== this.#recording?.events.length) this.#recording = undefined;
    }
    this.#wake?.();
  }

  /** Rejects when the follower has gone, or must go. */
  async #next(): Promise<void> {
    this.#signal.throwIfAborted();
    await new Promise<void>((resolve) => {
      const forget = this.#launcher.onRecorded(this.#identity(), () => this.#wake?.());
      this.#wake = () => {
        this.#wake = undefined;
        forget();
        resolve();
      };
    });
    this.#signal.throwIfAborted();
  }

  #identity(): RunIdentity {
    return { processId: this.#id, run: this.#run };
  }
}

function hasEnded(state: ProcessState, run: number): boolean {
  return state.run === run && state.state === "idle" && state.exitState !== null;
}

function numbered(run: number, number: number): number {
  return run * eventsPerRun + number;
}

/** Before its first run a process is where that run begins. */
function firstOf(run: number): number {
  return numbered(Math.max(run, 1), 0);
}

/** Number within the latest run; undefined when it cannot be one of it. */
function toldBefore(state: ProcessState | null | undefined, after: number | undefined): number | undefined {
  if (state === null || state === undefined || after === undefined) return undefined;
  const number = after - firstOf(state.run);
  if (number === nothingTold) return nothingTold;
  return state.run > 0 && number >= queuedNumber && number <= outputNumber ? number : undefined;
}

/** Of a run that ended without a recording. */
function eventsOfRecord({ reason }: ProcessState): readonly RunEvent[] {
  return reason === "interrupted" ? [{ kind: "state", state: "running" }] : [];
}

function stretch(events: readonly RunEvent[], start: number): readonly RunEvent[] {
  let end = start;
  for (let characters = 0; end < events.length && characters < recordedStretchCharactersMax; end++) {
    const event = events[end];
    characters += event !== undefined && "text" in event ? event.text.length : eventCharacters;
  }
  return events.slice(start, end);
}

/** Roughly, of an event without text. */
const eventCharacters = 128;
