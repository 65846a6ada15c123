/** The kinds whose records a store can hold, as the machine sees them, and what one record of theirs says about the entries around it. */
import { moduleKind } from "../actors/module.ts";
import { processKind } from "../actors/process.ts";
import { registryKind } from "../actors/registry.ts";
import { serviceKind } from "../actors/service.ts";
import { planCommit } from "../runtime/commit-plan.ts";
import type { Address, AnyKind } from "../runtime/kind.ts";
import { decodeRecord } from "../runtime/record.ts";
import { decodeRecord as decodeRevision } from "../store/record-text.ts";

export const storedKinds: ReadonlyMap<string, AnyKind> = new Map(
  [processKind, serviceKind, moduleKind, registryKind].map((kind) => [kind.name, kind as unknown as AnyKind]),
);

export type ReadRecord =
  | {
      readonly state: unknown;
      /** Index entries and wakes that must be beside it, with their values: what a first commit of this state would write. */
      readonly wants: ReadonlyMap<string, string>;
      readonly problem?: undefined;
    }
  /** A sentence without a full stop. */
  | { readonly problem: string };

export function readRecord(kind: AnyKind, address: Address, text: string): ReadRecord {
  const revised = decodeRevision(text);
  if (revised === undefined) return { problem: "It is no record: it has no revision" };
  try {
    const { state } = decodeRecord(kind, revised.value);
    const step = { state };
    const plan = planCommit({ kind, address, epoch: 0, revision: 0, before: null, step, commands: [], extra: [] });
    return { state, wants: new Map(plan.writes.map(({ key, value }) => [key, value ?? ""])) };
  } catch (error) {
    return { problem: error instanceof Error ? withoutContent(error.message) : "It cannot be read" };
  }
}

/** What follows the colon may quote what was found. */
function withoutContent(message: string): string {
  return message.split(":", 1)[0] ?? "";
}
