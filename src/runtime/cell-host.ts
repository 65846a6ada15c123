/** What a cell needs of the system around it. */
import type { Clock } from "../ports/clock.ts";
import type { Commit, Outcome, Store, Write } from "../ports/store.ts";
import type { Tracing } from "../ports/tracing.ts";
import type { Cell } from "./cell.ts";
import type { DeadLetterReason } from "./dead-letters.ts";
import type { Deadlines } from "./deadlines.ts";
import type { Envelope } from "./envelope.ts";
import type { Address, AnyKind } from "./kind.ts";

/** Of the cells of one kind, since the start. */
export interface KindTally {
  turns: number;
  crashes: number;
  restarts: number;
}

export interface CellHost {
  readonly clock: Clock;
  readonly store: Store;
  readonly deadlines: Deadlines;
  /** Absent: nobody collects traces. */
  readonly tracing: Tracing | undefined;
  /** Called when a waiting caller has its answer. */
  readonly forgetDeadline: (envelope: Envelope) => void;
  random(): number;
  portsOf(kind: AnyKind): unknown;
  commit(commit: Commit): Promise<Outcome>;
  blob(address: Address, name: string): Promise<string | undefined>;
  /** Writes that remove every blob of an actor that ends. */
  dropBlobs(address: Address): Promise<readonly Write[]>;
  /** The write that remembers the highest key handed out; empty for kinds whose keys are given by callers. */
  sequenceWrite(kind: AnyKind): readonly Write[];
  /** After each durable step. The state is the same object where a step stored something beside it only. */
  committed(address: Address, before: unknown, after: unknown): void;
  report(address: Address, message: unknown): void;
  deadLetter(address: Address, reason: DeadLetterReason, message: unknown): void;
  crashed(address: Address, error: unknown): void;
  parked(address: Address, reason: string): void;
  /** It crashed or was parked before, or lost touch with the store, and takes messages again. */
  restarted(address: Address, state: unknown): void;
  left(cell: Cell): void;
}
