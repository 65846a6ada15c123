/**
 * The actor system: finds or wakes the cell of an address, hands it messages, and keeps the bounds that span actors
 * (resident actors, deadlines, dead letters, wakes). It knows kinds only through their interface.
 */
import { Failure } from "../errors/failure.ts";
import { passivateIdleMs, residentActorsMax } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { ActorCensus } from "../ports/metrics.ts";
import type { Commit, Outcome, Store, Write } from "../ports/store.ts";
import type { Tracing } from "../ports/tracing.ts";
import { Actors } from "./actors.ts";
import { Cell, type CellPhase } from "./cell.ts";
import type { CellHost, KindTally } from "./cell-host.ts";
import { type DeadLetterReason, DeadLetters } from "./dead-letters.ts";
import { Deadlines } from "./deadlines.ts";
import { type AskOptions, type Envelope, refuseCycle } from "./envelope.ts";
import { blobKey, blobPrefix, indexPrefix, owedIndex, sequenceKey } from "./keys.ts";
import { type Address, type AnyKind, addressText, type Kind } from "./kind.ts";
import { Sequence } from "./sequence.ts";
import { StoredStates } from "./stored-states.ts";
import { Wakes } from "./wakes.ts";

export interface SystemOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly tracing?: Tracing | undefined;
  /** In [0, 1), for backoff jitter. */
  readonly random?: () => number;
  readonly residentMax?: number;
  readonly idleMs?: number;
}

/** What an actor looks like from outside, now. `pid` is null when it is not in memory. */
export interface Seen<State> {
  readonly state: State | null;
  readonly pid: number | null;
}

/** One actor in memory, for diagnostics. */
export interface ActorInspection {
  readonly address: Address;
  readonly pid: number;
  readonly phase: CellPhase;
  readonly mailboxDepth: number;
  readonly restarts: number;
  readonly lastError: string | undefined;
  /** Epoch milliseconds. */
  readonly lastErrorAt: number | undefined;
}

interface Registered {
  readonly kind: AnyKind;
  readonly ports: unknown;
  readonly sequence: Sequence | undefined;
  /** By key, least recently woken first: passivation walks from the front. */
  readonly cells: Map<string, Cell>;
  readonly tally: KindTally;
}

export type Watcher = (state: unknown) => void;

/** Hears of all actors, in the middle of their turns: it must be quick, must not throw, and calls nobody back. */
export interface ActorObserver {
  /** After each durable step; null: there was, or is, no such actor. */
  stepped(address: Address, before: unknown, after: unknown): void;
  crashed(address: Address): void;
  parked(address: Address): void;
  /** After a crash or parking, with its state from the record. */
  restarted(address: Address, state: unknown): void;
}

const sweepEveryMs = 10_000;
const recoverAtOnce = 256;
const blobsRemovedMax = 10_000;
/** Cells looked at beyond those wanted, so that one new actor never walks over all of them. */
const passivationLooksMax = 64;
const noOptions: AskOptions = {};

export class System implements CellHost {
  readonly store: Store;
  readonly clock: Clock;
  readonly deadlines: Deadlines;
  readonly deadLetters = new DeadLetters();
  readonly tracing: Tracing | undefined;
  readonly random: () => number;
  readonly #log: Log;
  readonly #residentMax: number;
  readonly #idleMs: number;
  readonly #kinds = new Map<string, Registered>();
  readonly #watchers = new Map<string, Set<Watcher>>();
  readonly #stored: StoredStates;
  #observer: ActorObserver | undefined;
  readonly #wakes: Wakes;
  #lastPid = 0;
  #accepting = true;
  #cancelSweep: (() => void) | undefined;

  constructor(options: SystemOptions) {
    this.store = options.store;
    this.clock = options.clock;
    this.#log = options.log;
    this.tracing = options.tracing;
    this.random = options.random ?? Math.random;
    this.#residentMax = options.residentMax ?? residentActorsMax;
    this.#idleMs = options.idleMs ?? passivateIdleMs;
    this.deadlines = new Deadlines(options.clock);
    this.#stored = new StoredStates(options.store, options.log, (address) => this.kindOf(address));
    this.#wakes = new Wakes({
      clock: options.clock,
      store: options.store,
      wake: async (wake) => {
        const known = this.#kinds.get(wake.address.kind);
        if (known?.kind.woken === undefined) this.deadLetter(wake.address, "unknown_kind", { type: wake.name });
        else await this.ask(wake.address, known.kind.woken(wake.name));
      },
      spent: (wake) => this.deadLetter(wake.address, "wake_spent", { type: wake.name }),
      failed: (error) => this.#log.warn("wake-failed", "A due wake was not taken and will be tried again", { error }),
    });
  }

  /** Must be called before `start`. */
  register<State, Message, Effect, Ports>(
    kind: Kind<State, Message, Effect, Ports>,
    ports: Ports,
  ): Actors<State, Message> {
    const any = kind as unknown as AnyKind;
    const sequence = kind.sequenced === true ? new Sequence() : undefined;
    this.#kinds.set(kind.name, {
      kind: any,
      ports,
      sequence,
      cells: new Map(),
      tally: { turns: 0, crashes: 0, restarts: 0 },
    });
    return new Actors<State, Message>(this, any, sequence);
  }

  /** Loads only what is running or due: start-up time does not grow with the number of records. */
  async start(): Promise<void> {
    for (const { kind, sequence } of this.#kinds.values()) {
      if (sequence === undefined) continue;
      const [stored] = await this.store.read([sequenceKey(kind.name)]);
      sequence.continueFrom(stored === undefined ? 0 : Number(stored));
    }
    for (const { kind } of this.#kinds.values()) await this.#recover(kind);
    await this.#wakes.start();
    this.#sweepLater();
  }

  /** Refuses new messages, lets turns and effects end until `deadline` (monotonic), then lets go of every cell. */
  async stop(deadline: number): Promise<void> {
    this.#accepting = false;
    this.#wakes.stop();
    this.#cancelSweep?.();
    const quiet = Promise.all([...this.#allCells()].map((cell) => cell.quiet()));
    let cancel: (() => void) | undefined;
    const limit = new Promise<void>((resolve) => {
      cancel = this.clock.after(Math.max(0, deadline - this.clock.monotonic()), resolve);
    });
    await Promise.race([quiet, limit]);
    cancel?.();
    for (const cell of [...this.#allCells()]) cell.leave();
    this.deadlines.stop();
  }

  ask(address: Address, message: unknown, options: AskOptions = noOptions): Promise<unknown> {
    try {
      if (options.chain !== undefined) refuseCycle(address, options.chain);
      return this.#cellFor(address).ask(message, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  tell(address: Address, message: unknown): void {
    this.#cellFor(address).tell(message, false);
  }

  async blob(address: Address, name: string): Promise<string | undefined> {
    const [text] = await this.store.read([blobKey(address, name)]);
    return text;
  }

  /** What an effect learns after the stop has nobody to tell; the next start decides from the stored state what became of it. */
  report(address: Address, message: unknown): void {
    const { cells } = this.#known(address);
    if (!this.#accepting && !cells.has(address.key)) this.deadLetter(address, "stopped", message);
    else this.#cellFor(address, true).tell(message, true);
  }

  /** The last committed state, without waiting for a turn and without bringing the actor into memory. */
  async query(address: Address): Promise<Seen<unknown>> {
    const cell = this.#resident(address);
    if (cell !== undefined && isCommitted(cell)) return { state: cell.state, pid: cell.pid };
    const state = await this.#stored.one(address);
    return { state, pid: cell?.pid ?? null };
  }

  /** States of many actors, in the order asked; those that are gone or unreadable are left out. */
  async queryMany(kind: string, keys: readonly string[]): Promise<readonly (Seen<unknown> & { key: string })[]> {
    const resident = this.#kinds.get(kind)?.cells;
    const cells = keys.map((key) => resident?.get(key));
    const missing = keys.filter((_, position) => !isCommitted(cells[position]));
    const loaded = await this.#stored.many(missing.map((key) => ({ kind, key })));
    const stored = new Map(missing.map((key, position) => [key, loaded[position]]));
    return keys.flatMap((key, position): (Seen<unknown> & { key: string })[] => {
      const cell = cells[position];
      if (cell !== undefined && isCommitted(cell)) {
        return cell.state === null ? [] : [{ key, state: cell.state, pid: cell.pid }];
      }
      const state = stored.get(key);
      return state === undefined ? [] : [{ key, state, pid: cell?.pid ?? null }];
    });
  }

  pid(address: Address): number | null {
    return this.#resident(address)?.pid ?? null;
  }

  /** Calls `watcher` after each durable step of the actor; the answer stops it. */
  watch(address: Address, watcher: Watcher): () => void {
    const name = addressText(address);
    const watchers = this.#watchers.get(name) ?? new Set();
    this.#watchers.set(name, watchers.add(watcher));
    return () => {
      watchers.delete(watcher);
      if (watchers.size === 0 && this.#watchers.get(name) === watchers) this.#watchers.delete(name);
    };
  }

  /** One at most; from here on, for good. */
  observe(observer: ActorObserver): void {
    if (this.#observer !== undefined) throw new Error("The actors have an observer already");
    this.#observer = observer;
  }

  /** Un-parks an actor. False when it is not in memory. */
  restart(address: Address): boolean {
    const cell = this.#resident(address);
    cell?.restart();
    return cell !== undefined;
  }

  /** The supervision tree, flat: root → kind → actor is in the address. */
  *inspect(): Iterable<ActorInspection> {
    for (const cell of this.#allCells()) yield inspectionOf(cell);
  }

  /** Undefined when it is not in memory. */
  inspectOne(address: Address): ActorInspection | undefined {
    const cell = this.#resident(address);
    return cell === undefined ? undefined : inspectionOf(cell);
  }

  get residentCount(): number {
    let count = 0;
    for (const { cells } of this.#kinds.values()) count += cells.size;
    return count;
  }

  /** A walk over the resident actors that allocates nothing for each: for whoever asks every few seconds. */
  census(): readonly ActorCensus[] {
    return [...this.#kinds].map(([kind, { cells, tally }]) => {
      let parked = 0;
      let mailboxDepthMax = 0;
      for (const cell of cells.values()) {
        if (cell.phase === "parked") parked += 1;
        if (cell.mailboxDepth > mailboxDepthMax) mailboxDepthMax = cell.mailboxDepth;
      }
      return { kind, resident: cells.size, parked, mailboxDepthMax, ...tally };
    });
  }

  kindOf(address: Address): AnyKind {
    return this.#known(address).kind;
  }

  portsOf(kind: AnyKind): unknown {
    return this.#kinds.get(kind.name)?.ports;
  }

  async commit(commit: Commit): Promise<Outcome> {
    const [outcome = "unknown"] = await this.store.commit([commit]);
    if (outcome === "ok") this.#wakes.noticed(commit.writes);
    return outcome;
  }

  async dropBlobs(address: Address): Promise<readonly Write[]> {
    const entries = await this.store.range({ prefix: blobPrefix(address), limit: blobsRemovedMax });
    return entries.map(({ key }) => ({ key, value: null }));
  }

  sequenceWrite(kind: AnyKind): readonly Write[] {
    const sequence = this.#kinds.get(kind.name)?.sequence;
    // The highest key handed out so far, not this actor's: commits may land in another order than keys were handed out.
    return sequence === undefined ? [] : [{ key: sequenceKey(kind.name), value: String(sequence.last) }];
  }

  committed(address: Address, before: unknown, after: unknown): void {
    this.#observer?.stepped(address, before, after);
    if (this.#watchers.size === 0) return;
    for (const watcher of this.#watchers.get(addressText(address)) ?? []) watcher(after);
  }

  deadLetter(address: Address, reason: DeadLetterReason, message: unknown): void {
    this.deadLetters.add(this.clock.now(), address, reason, message);
  }

  crashed(address: Address, error: unknown): void {
    this.#log.error("actor-crashed", "An actor crashed and restarts from its record", {
      actor: addressText(address),
      error,
    });
    this.#observer?.crashed(address);
  }

  parked(address: Address, reason: string): void {
    this.#log.error("actor-parked", `An actor is parked until an operator restarts it: ${reason}`, {
      actor: addressText(address),
    });
    this.#observer?.parked(address);
  }

  restarted(address: Address, state: unknown): void {
    this.#observer?.restarted(address, state);
  }

  left(cell: Cell): void {
    const cells = this.#kinds.get(cell.address.kind)?.cells;
    if (cells?.get(cell.address.key) === cell) cells.delete(cell.address.key);
  }

  #resident(address: Address): Cell | undefined {
    return this.#kinds.get(address.kind)?.cells.get(address.key);
  }

  *#allCells(): Iterable<Cell> {
    for (const { cells } of this.#kinds.values()) yield* cells.values();
  }

  #known(address: Address): Registered {
    const known = this.#kinds.get(address.kind);
    if (known === undefined) throw new Error(`No actor kind is called "${address.kind}"`);
    return known;
  }

  readonly forgetDeadline = (envelope: Envelope): void => {
    if (envelope.tick !== 0) this.deadlines.remove(envelope);
  };

  #cellFor(address: Address, whileStopping = false): Cell {
    const known = this.#known(address);
    const resident = known.cells.get(address.key);
    if (!this.#accepting && !(whileStopping && resident !== undefined)) {
      throw new Failure("unavailable", "The server is shutting down", { retryAfterSeconds: 1 });
    }
    if (resident !== undefined) return resident;
    const cell = new Cell(this, known.kind, known.tally, address, ++this.#lastPid);
    known.cells.set(address.key, cell);
    const tooMany = this.residentCount - this.#residentMax;
    if (tooMany > 0) this.#passivate(known.cells, tooMany);
    return cell;
  }

  async #recover(kind: AnyKind): Promise<void> {
    const prefix = indexPrefix(kind.name, owedIndex);
    let after: string | undefined;
    for (;;) {
      const entries = await this.store.range({ prefix, after, limit: recoverAtOnce });
      const keys = entries.map(({ key }) => decodeURIComponent(key.slice(prefix.length)));
      // Waking a cell performs what it owes; quiet means that the reports of that are durable as well.
      await Promise.all(keys.map((key) => this.#cellFor({ kind: kind.name, key }).quiet()));
      after = entries.at(-1)?.key;
      if (entries.length < recoverAtOnce) return;
    }
  }

  #sweepLater(): void {
    this.#cancelSweep = this.clock.after(sweepEveryMs, () => {
      for (const cell of [...this.#allCells()]) {
        cell.sweepsUnused = cell.used ? 0 : cell.sweepsUnused + 1;
        cell.used = false;
        if (cell.idle && cell.sweepsUnused * sweepEveryMs >= this.#idleMs) cell.leave();
      }
      this.#sweepLater();
    });
  }

  /** From the front, like a clock hand: one used since the hand passed gets another round. */
  #passivate(cells: Map<string, Cell>, count: number): void {
    let looked = 0;
    for (const [key, cell] of cells) {
      if (count <= 0 || looked++ > count + passivationLooksMax) return;
      if (cell.idle && !cell.used) {
        cell.leave();
        count--;
      } else {
        cell.used = false;
        cells.delete(key);
        cells.set(key, cell);
      }
    }
  }
}

function inspectionOf(cell: Cell): ActorInspection {
  const { address, pid, phase, mailboxDepth, restarts, lastError, lastErrorAt } = cell;
  return { address, pid, phase, mailboxDepth, restarts, lastError, lastErrorAt };
}

function isCommitted(cell: Cell | undefined): boolean {
  return cell !== undefined && (cell.phase === "ready" || cell.phase === "turning");
}
