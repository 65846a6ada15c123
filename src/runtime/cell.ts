/**
 * One resident actor: its committed state, its mailbox, and its turns.
 *
 * 1. One turn at a time, through its commit; no re-entrancy.
 * 2. Decide, persist, answer, act: nothing leaves before the step is durable.
 * 3. `state` is always the last committed state; queries read it without waiting for a turn.
 * 4. A refusal answers and leaves the state alone. A crash answers `internal`, drops the message, and restarts from disk.
 * 5. Every caller gets exactly one answer, a refusal, or its deadline.
 * 6. A report of an effect is never lost: when the store does not take it, it is decided again until the store does.
 * 7. A cell with a turn, messages, waiting callers, running effects or owed work stays in memory.
 */
import { type Failure, isFailure } from "../errors/failure.ts";
import { callDeadlineMs, commandIdsKeptMax, mailboxMessagesMax } from "../limits.ts";
import type { Outcome, StoredRecord, Write } from "../ports/store.ts";
import * as failures from "./cell-failures.ts";
import type { CellHost, KindTally } from "./cell-host.ts";
import { planCommit } from "./commit-plan.ts";
import { type AskOptions, Envelope } from "./envelope.ts";
import { recordKey } from "./keys.ts";
import type { Address, AnyKind, Self, Step } from "./kind.ts";
import { type AnsweredCommand, decodeRecord } from "./record.ts";
import { backoff, judgeCrash } from "./supervision.ts";
import { Tickets } from "./tickets.ts";
import { traceTurn } from "./traced-turn.ts";

export type CellPhase = "loading" | "ready" | "turning" | "restarting" | "parked" | "gone";

/** Below every revision: its record was not looked at yet. */
const neverLoaded = -1;
/** Tries of one message whose commit found another revision than expected, before it is given up. */
const conflictsMax = 3;

export class Cell {
  readonly address: Address;
  readonly kind: AnyKind;
  /** Ephemeral: a positive number, new with each activation, never reused within the boot. */
  readonly pid: number;
  phase: CellPhase = "loading";
  state: unknown = null;
  /** Set by every message, cleared by whoever looks for actors to let go: a flag costs less than a time. */
  used = true;
  /** Sweeps that found it unused, one after another. */
  sweepsUnused = 0;
  restarts = 0;
  lastError: string | undefined;
  /** Epoch milliseconds; set with `lastError`. */
  lastErrorAt: number | undefined;
  readonly #host: CellHost;
  readonly #tally: KindTally;
  #revision = neverLoaded;
  #commands: readonly AnsweredCommand[] = [];
  #queue: Envelope[] = [];
  readonly #tickets = new Tickets();
  #crashes: readonly number[] = [];
  #loadFailures = 0;
  #effectsRunning = 0;
  /** An effect crashed while a turn was being persisted: the turn ends first, then the cell restarts. */
  #crashedInTurn: unknown;
  #owes = false;
  #whenQuiet: (() => void)[] | undefined;

  constructor(host: CellHost, kind: AnyKind, tally: KindTally, address: Address, pid: number) {
    this.#host = host;
    this.#tally = tally;
    this.kind = kind;
    this.address = address;
    this.pid = pid;
    void this.#load();
  }

  get mailboxDepth(): number {
    return this.#queue.length;
  }

  /** Invariant 7. */
  get idle(): boolean {
    return (
      this.phase === "ready" &&
      this.#queue.length === 0 &&
      this.#effectsRunning === 0 &&
      !this.#owes &&
      !this.#tickets.areOpen
    );
  }

  /** Resolves once nothing is queued, turning or being performed; also when parked. */
  quiet(): Promise<void> {
    if (this.#isQuiet()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenQuiet = [...(this.#whenQuiet ?? []), resolve];
    });
  }

  /** An idle cell decides in the caller's stack; what changes nothing is answered without further ado. */
  ask(message: unknown, options: AskOptions): Promise<unknown> {
    this.used = true;
    const { commandId } = options;
    let step: Step<unknown, unknown> | undefined;
    if (this.phase === "ready" && this.#queue.length === 0 && commandId === undefined) {
      this.#tally.turns += 1;
      try {
        step = this.kind.decide(this.state, message, this.#host.clock.now());
      } catch (error) {
        const refusal = isFailure(error) ? error : failures.crashed(error);
        if (!isFailure(error)) this.#crash(error, message);
        this.#drain();
        return Promise.reject(refusal);
      }
      if (step.state === this.state && isOnlyAnswer(step)) {
        if (this.state === null) this.#drain();
        return Promise.resolve(step.reply);
      }
    }
    return new Promise((resolve, reject) => {
      const deadline = options.deadline ?? this.#host.clock.monotonic() + callDeadlineMs;
      const envelope = new Envelope(message, deadline, commandId, resolve, reject, this.#host.forgetDeadline);
      envelope.place = this.#host.tracing?.current();
      if (step === undefined) this.#accept(envelope, false);
      else {
        this.#take(envelope, step);
        this.#drain();
      }
    });
  }

  /** Nobody waits. An effect's own report is never dropped: there are only as many as effects were decided. */
  tell(message: unknown, ownReport: boolean): void {
    this.used = true;
    const envelope = new Envelope(message, Number.POSITIVE_INFINITY);
    envelope.isReport = ownReport;
    envelope.place = this.#host.tracing?.current();
    this.#accept(envelope, ownReport);
  }

  #accept(envelope: Envelope, ownReport: boolean): void {
    if (this.phase === "parked") {
      this.#host.deadLetter(this.address, "parked", envelope.message);
      envelope.refuse(failures.parked(this.address));
    } else if (this.phase === "gone") {
      this.#host.deadLetter(this.address, "stopped", envelope.message);
      envelope.refuse(failures.leaving(this.address));
    } else if (!ownReport && this.#queue.length >= mailboxMessagesMax) {
      this.#host.deadLetter(this.address, "overloaded", envelope.message);
      envelope.refuse(failures.mailboxFull(this.address, this.#host.clock.now()));
    } else {
      this.#queue.push(envelope);
      if (this.phase === "ready") this.#drain();
      else this.#awaitDeadline(envelope);
    }
  }

  /** An operator's restart: forgets the crashes that led to parking. */
  restart(): void {
    if (this.phase !== "parked") return;
    this.#crashes = [];
    this.lastError = undefined;
    this.lastErrorAt = undefined;
    this.#restartAfter(0);
  }

  /** Leaves memory. Only when idle, or at shutdown, or because the actor is no longer ours. */
  leave(): void {
    this.phase = "gone";
    this.#refuseWaiting(failures.leaving(this.address), "stopped");
    this.#host.left(this);
    this.#settleQuiet();
  }

  #isQuiet(): boolean {
    if (this.phase === "parked" || this.phase === "gone") return true;
    return this.phase === "ready" && this.#queue.length === 0 && this.#effectsRunning === 0;
  }

  #settleQuiet(): void {
    if (this.#whenQuiet === undefined || !this.#isQuiet()) return;
    const waiting = this.#whenQuiet;
    this.#whenQuiet = undefined;
    for (const resolve of waiting) resolve();
  }

  async #load(): Promise<void> {
    const [before, known, restarts] = [this.state, this.#revision, this.phase === "restarting"];
    this.phase = "loading";
    let stored: StoredRecord | undefined;
    try {
      stored = await this.#host.store.load(recordKey(this.address));
    } catch (error) {
      this.#noteError(error);
      if (this.#hasLeft()) return;
      // The store does not answer: that is the store's health, not this actor's fault, so it is not counted as a crash.
      if (isFailure(error)) this.#restartAfter(backoff(++this.#loadFailures, this.#host.random()));
      // It answered with what is no record, and will answer the same again.
      else this.#park(error);
      return;
    }
    if (this.#hasLeft()) return;
    this.#loadFailures = 0;
    try {
      const decoded = stored === undefined ? { state: null, commands: [] } : decodeRecord(this.kind, stored.value);
      this.#adopt(decoded.state, decoded.commands, stored?.revision ?? 0);
    } catch (error) {
      this.#park(error);
      return;
    }
    this.phase = "ready";
    // A commit that nobody heard of again was made all the same.
    if (known !== neverLoaded && known !== this.#revision) this.#host.committed(this.address, before, this.state);
    if (restarts) this.#host.restarted(this.address, this.state);
    this.#performOwed();
    this.#drain();
  }

  #hasLeft(): boolean {
    return this.phase === "gone";
  }

  #adopt(state: unknown, commands: readonly AnsweredCommand[], revision: number): void {
    this.state = state;
    this.#commands = commands;
    this.#revision = revision;
    this.#owes = state !== null && this.kind.owed(state).length > 0;
  }

  #drain(): void {
    while (this.phase === "ready") {
      const envelope = this.#queue.shift();
      if (envelope === undefined) break;
      if (envelope.settled || envelope.deadline <= this.#host.clock.monotonic()) {
        this.#host.deadLetter(this.address, "expired", envelope.message);
        envelope.expire();
        continue;
      }
      this.#turn(envelope);
    }
    this.#settleQuiet();
    if (this.state === null && this.idle) this.leave();
  }

  #turn(envelope: Envelope): void {
    const answered = this.#answered(envelope.commandId);
    if (answered !== undefined) {
      envelope.reply(answered[1]);
      return;
    }
    let step: Step<unknown, unknown>;
    this.#tally.turns += 1;
    try {
      step = this.kind.decide(this.state, envelope.message, this.#host.clock.now());
    } catch (error) {
      envelope.refuse(isFailure(error) ? error : failures.crashed(error));
      if (!isFailure(error)) this.#crash(error, envelope.message);
      return;
    }
    this.#take(envelope, step);
  }

  #take(envelope: Envelope, step: Step<unknown, unknown>): void {
    if (step.state === this.state && step.blobs === undefined) {
      this.#answerAndAct(envelope, step);
      return;
    }
    this.phase = "turning";
    this.#awaitDeadline(envelope);
    const { tracing } = this.#host;
    if (tracing === undefined) void this.#persist(envelope, step);
    else void traceTurn(tracing, this.address, envelope, () => this.#persist(envelope, step));
  }

  /** Answers with what went wrong, for the trace. */
  async #persist(envelope: Envelope, step: Step<unknown, unknown>): Promise<string | undefined> {
    let outcome: Outcome;
    let commands = this.#commands;
    try {
      const ends = step.state === null;
      if (envelope.commandId !== undefined && step.defer === undefined && !ends) {
        commands = [...commands, [envelope.commandId, step.reply] as const].slice(-commandIdsKeptMax);
      }
      const blobsToDrop: readonly Write[] = ends ? await this.#host.dropBlobs(this.address) : [];
      const sequence = this.#revision === 0 ? this.#host.sequenceWrite(this.kind) : [];
      const commit = planCommit({
        kind: this.kind,
        address: this.address,
        epoch: this.#host.store.epoch,
        revision: this.#revision,
        before: this.state,
        step,
        commands,
        extra: [...blobsToDrop, ...sequence],
      });
      outcome = await this.#host.commit(commit);
    } catch (error) {
      if (this.#hasLeft()) {
        envelope.refuse(isFailure(error) ? error : failures.crashed(error));
        return "stopped";
      }
      // A Failure of the store (full queue, failing): nothing was written.
      if (isFailure(error) && envelope.isReport) {
        this.#reportAgain(envelope);
        return error.kind;
      }
      this.phase = "ready";
      envelope.refuse(isFailure(error) ? error : failures.crashed(error));
      if (!isFailure(error)) this.#crash(error, envelope.message);
      this.#endTurn();
      return isFailure(error) ? error.kind : "internal";
    }
    if (outcome === "ok") {
      const before = this.state;
      this.#adopt(step.state, commands, step.state === null ? 0 : this.#revision + 1);
      if (!this.#hasLeft()) this.phase = "ready";
      this.#host.committed(this.address, before, this.state);
      this.#answerAndAct(envelope, step);
      this.#endTurn();
      return undefined;
    }
    this.#refusedByStore(outcome, envelope);
    return outcome;
  }

  #endTurn(): void {
    const crash = this.#crashedInTurn;
    this.#crashedInTurn = undefined;
    if (crash !== undefined && this.phase === "ready") this.#restartOrPark(crash);
    this.#drain();
  }

  #refusedByStore(outcome: Outcome, envelope: Envelope): void {
    if (outcome === "conflict" && envelope.conflicts++ < conflictsMax) {
      // Still the owner, another revision: usually our own earlier write of unknown outcome. Read it, then decide again.
      this.#queue.unshift(envelope);
      void this.#load();
      return;
    }
    if (outcome === "fenced") {
      envelope.refuse(failures.ownedElsewhere(this.address));
      this.leave();
      return;
    }
    if (envelope.isReport) {
      this.#reportAgain(envelope);
      return;
    }
    envelope.refuse(failures.unconfirmed());
    this.#restartAfter(backoff(1, this.#host.random()));
  }

  /** What an effect learned would be lost with its report: it is decided again on what the disk says then. */
  #reportAgain(envelope: Envelope): void {
    this.#queue.unshift(envelope);
    this.#restartAfter(backoff(++envelope.conflicts, this.#host.random()));
  }

  #answerAndAct(envelope: Envelope, step: Step<unknown, unknown>): void {
    if (step.defer === undefined) envelope.reply(step.reply);
    else this.#defer(step.defer, envelope);
    for (const settlement of step.settle ?? []) this.#tickets.settle(settlement);
    if (step.state === null) this.#tickets.refuseAll(failures.ended(this.address));
    for (const effect of step.effects ?? []) void this.#perform(effect);
    if (step.passivate === true && this.idle) this.leave();
  }

  #defer(ticket: string, envelope: Envelope): void {
    if (!envelope.expectsAnswer) return;
    this.#awaitDeadline(envelope);
    this.#tickets.defer(ticket, envelope);
  }

  async #perform(effect: unknown): Promise<void> {
    this.#effectsRunning++;
    const self: Self<unknown> = {
      key: this.address.key,
      tell: (message) => this.#report(message),
      blob: (name) => this.#host.blob(this.address, name),
    };
    try {
      const report = await this.kind.perform(effect, self, this.#host.portsOf(this.kind));
      this.#effectsRunning--;
      if (report !== undefined) this.#report(report);
    } catch (error) {
      this.#effectsRunning--;
      if (!this.#hasLeft()) this.#crash(error, undefined);
    }
    this.#settleQuiet();
  }

  /** Through the host: the actor may have left memory since, and is then brought back. */
  #report(message: unknown): void {
    this.#host.report(this.address, message);
  }

  #performOwed(): void {
    if (this.state === null) return;
    for (const effect of this.kind.owed(this.state)) void this.#perform(effect);
  }

  /** `message`: the one that was being handled, and is dropped; undefined when an effect crashed. */
  #crash(error: unknown, message: unknown): void {
    this.#tally.crashes += 1;
    this.#host.crashed(this.address, error);
    this.#noteError(error);
    if (message !== undefined) this.#host.deadLetter(this.address, "crashed", message);
    if (this.phase === "turning") this.#crashedInTurn = error;
    else if (this.phase === "ready") this.#restartOrPark(error);
  }

  #restartOrPark(error: unknown): void {
    const verdict = judgeCrash(this.#crashes, this.#host.clock.monotonic(), this.#host.random());
    this.#crashes = verdict.crashes;
    if (verdict.kind === "park") this.#park(error);
    else this.#restartAfter(verdict.afterMs);
  }

  #restartAfter(delayMs: number): void {
    this.phase = "restarting";
    this.restarts++;
    this.#tally.restarts += 1;
    this.#tickets.refuseAll(failures.restarted(this.address));
    this.#host.clock.after(delayMs, () => {
      if (this.phase === "restarting") void this.#load();
    });
  }

  #park(error: unknown): void {
    this.phase = "parked";
    this.#noteError(error);
    this.#host.parked(this.address, failures.messageOf(error));
    this.#refuseWaiting(failures.parked(this.address), "parked");
    this.#settleQuiet();
  }

  #noteError(error: unknown): void {
    this.lastError = failures.messageOf(error);
    this.lastErrorAt = this.#host.clock.now();
  }

  #refuseWaiting(failure: Failure, reason: "parked" | "stopped"): void {
    this.#tickets.refuseAll(failure);
    const waiting = this.#queue;
    this.#queue = [];
    for (const envelope of waiting) {
      this.#host.deadLetter(this.address, reason, envelope.message);
      envelope.refuse(failure);
    }
  }

  #answered(commandId: string | undefined): AnsweredCommand | undefined {
    return commandId === undefined ? undefined : this.#commands.find(([id]) => id === commandId);
  }

  #awaitDeadline(envelope: Envelope): void {
    if (envelope.expectsAnswer && envelope.tick === 0) this.#host.deadlines.add(envelope);
  }
}

function isOnlyAnswer({ blobs, defer, settle, effects, passivate }: Step<unknown, unknown>): boolean {
  return (
    blobs === undefined &&
    defer === undefined &&
    settle === undefined &&
    effects === undefined &&
    passivate === undefined
  );
}
