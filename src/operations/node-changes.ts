/**
 * The changes of the node: one ring that hears of every actor, from the first watcher on. Before, nothing is kept and nothing done.
 *
 * Nothing of what callers configured is in a change, but for processes: those are small, and told as whole snapshots.
 */
import type { ModuleState } from "../actors/module.ts";
import type { ProcessState } from "../actors/process.ts";
import type { ServiceState } from "../actors/service.ts";
import type { Address } from "../runtime/kind.ts";
import type { System } from "../runtime/system.ts";
import { ChangeNumbers, type ChangeNumbersParts } from "./change-numbers.ts";
import { ChangeRing } from "./change-ring.ts";

export const subjectKinds = ["registry", "service", "module", "process"] as const;
export type SubjectKind = (typeof subjectKinds)[number];

export const changeKinds = [
  "added",
  "changed",
  "removed",
  "enabled",
  "disabled",
  "failed",
  "crashed",
  "parked",
  "restarted",
] as const;
export type ChangeKind = (typeof changeKinds)[number];

export interface NodeChange {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly subject: SubjectKind;
  readonly id: string;
  readonly what: ChangeKind;
  /** The name of the state it is in then, where it has one. */
  readonly state: string | undefined;
  /** False: there is no such thing any more, or never was. */
  readonly exists: boolean;
  /** Of a durable step of a process; null: there was, or is, none. */
  readonly process?: { readonly before: ProcessState | null; readonly after: ProcessState | null };
}

export const parkedState = "parked";

export interface NodeChangesParts extends ChangeNumbersParts {
  readonly system: Pick<System, "observe">;
}

export class NodeChanges {
  readonly #parts: NodeChangesParts;
  #ring: Promise<ChangeRing<NodeChange>> | undefined;

  constructor(parts: NodeChangesParts) {
    this.#parts = parts;
  }

  /** Rejects with Failure unavailable; then the next call tries again. */
  ring(): Promise<ChangeRing<NodeChange>> {
    this.#ring ??= this.#begin().catch((error: unknown) => {
      this.#ring = undefined;
      throw error;
    });
    return this.#ring;
  }

  async #begin(): Promise<ChangeRing<NodeChange>> {
    const { clock, system } = this.#parts;
    const numbers = await ChangeNumbers.open(this.#parts);
    const ring = new ChangeRing<NodeChange>({ clock, first: numbers.first });
    const add = ({ kind, key }: Address, more: Omit<NodeChange, "at" | "subject" | "id">): void => {
      const change = { at: clock.now(), subject: subjectOf(kind), id: key, ...more };
      numbers.used(ring.add(change, charactersOf(change)));
    };
    system.observe({
      stepped(address, before, after) {
        if (before !== after) add(address, stepOf(subjectOf(address.kind), before, after));
      },
      crashed: (address) => add(address, { what: "crashed", state: undefined, exists: true }),
      parked: (address) => add(address, { what: "parked", state: parkedState, exists: true }),
      restarted: (address, state) =>
        add(address, { what: "restarted", state: stateName(subjectOf(address.kind), state), exists: state !== null }),
    });
    return ring;
  }
}

/** The node has no actors of other kinds; one that is added gets a name in event.proto as well. */
function subjectOf(kind: string): SubjectKind {
  return kind as SubjectKind;
}

/** Undefined: things of this kind have no states, or this one is gone. */
export function stateName(subject: SubjectKind, state: unknown): string | undefined {
  if (state === null) return undefined;
  switch (subject) {
    case "registry":
      return undefined;
    case "process":
      return (state as ProcessState).state;
    case "service": {
      const { stale, enabled } = state as ServiceState;
      return stale !== null ? "stale" : enabledName(enabled);
    }
    case "module": {
      const { failed, missing, enabled } = state as ModuleState;
      if (failed !== null) return "failed";
      return missing !== null ? "missing" : enabledName(enabled);
    }
  }
}

function enabledName(enabled: boolean): "enabled" | "disabled" {
  return enabled ? "enabled" : "disabled";
}

const failedStates: ReadonlySet<string | undefined> = new Set(["stale", "failed", "missing"]);

function stepOf(subject: SubjectKind, before: unknown, after: unknown): Omit<NodeChange, "at" | "subject" | "id"> {
  const state = stateName(subject, after);
  const exists = after !== null;
  if (subject !== "process") {
    return { what: whatBecame(before, after, stateName(subject, before), state), state, exists };
  }
  const process = { before: before as ProcessState | null, after: after as ProcessState | null };
  return { what: whatRan(process), state, exists, process };
}

function whatBecame(before: unknown, after: unknown, was: string | undefined, is: string | undefined): ChangeKind {
  if (before === null) return "added";
  if (after === null) return "removed";
  if (was === is) return "changed";
  if (failedStates.has(is)) return "failed";
  return is as "enabled" | "disabled";
}

function whatRan({ before, after }: NonNullable<NodeChange["process"]>): ChangeKind {
  if (before === null) return "added";
  if (after === null) return "removed";
  const hasEnded = before.state !== "idle" && after.state === "idle";
  return hasEnded && (after.exitState === "failed" || after.exitState === "timeout") ? "failed" : "changed";
}

/** Roughly. */
function charactersOf({ id, process }: NodeChange): number {
  return 100 + id.length + processCharacters(process?.before) + processCharacters(process?.after);
}

export function processCharacters(process: Pick<ProcessState, "error" | "ref"> | null | undefined): number {
  return process == null ? 0 : 300 + (process.error?.length ?? 0) + (process.ref?.length ?? 0);
}
