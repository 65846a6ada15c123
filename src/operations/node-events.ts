/** WatchEvents: what there is on the node, then what happens to it. Ids and names of states, never more of what was configured. */
import { z } from "zod";
import type { ModuleMessage, ModuleState } from "../actors/module.ts";
import { lifecycleStates, type ProcessMessage, type ProcessState } from "../actors/process.ts";
import type { RegistryMessage, RegistryState } from "../actors/registry.ts";
import type { ServiceMessage, ServiceState } from "../actors/service.ts";
import { snapshotSubjectsMax } from "../limits.ts";
import type { Actors } from "../runtime/actors.ts";
import type { System } from "../runtime/system.ts";
import { followChanges, snapshotReasons } from "./change-follower.ts";
import {
  changeKinds,
  type NodeChange,
  type NodeChanges,
  parkedState,
  type SubjectKind,
  stateName,
  subjectKinds,
} from "./node-changes.ts";
import type { RpcStream } from "./operation.ts";
import { instant, isoTime } from "./shapes.ts";

const input = z.object({
  // A kind that is named again says nothing new, and is looked at once.
  kinds: z
    .array(z.enum(subjectKinds))
    .transform((kinds) => [...new Set(kinds)])
    .default([]),
  fromSequence: z.int().nonnegative().optional(),
});

const subject = z.object({ kind: z.enum(subjectKinds), id: z.string(), state: z.string().optional() });

const item = z.object({
  sequence: z.int(),
  snapshot: z.object({ reason: z.enum(snapshotReasons), items: z.array(subject), hasMore: z.boolean() }).optional(),
  event: subject.extend({ type: z.enum(changeKinds), time: instant }).optional(),
});

type Input = z.infer<typeof input>;
type Item = z.infer<typeof item>;
type Subject = z.infer<typeof subject>;

export interface NodeEventsParts {
  readonly changes: NodeChanges;
  readonly system: Pick<System, "inspect">;
  readonly registries: Actors<RegistryState, RegistryMessage>;
  readonly services: Actors<ServiceState, ServiceMessage>;
  readonly modules: Actors<ModuleState, ModuleMessage>;
  readonly processes: Actors<ProcessState, ProcessMessage>;
}

/** By kind and id; one more than are told at most, and what was added since. */
type Rows = Map<string, Subject>;

export function nodeEventStreams(parts: NodeEventsParts): readonly RpcStream[] {
  const watch: RpcStream<Input, Item> = {
    name: "watchEvents",
    summary: "Follow the node: what there is, then what happens to it",
    rpcService: "EventService",
    role: "agent",
    input,
    output: item,
    failures: ["unavailable"],
    async open({ kinds, fromSequence }, { signal }) {
      const ring = await parts.changes.ring();
      const isAsked = (kind: SubjectKind): boolean => kinds.length === 0 || kinds.includes(kind);
      return followChanges<NodeChange, Rows, Item>({
        ring,
        after: fromSequence,
        signal,
        read: () => readSubjects(parts, subjectKinds.filter(isAsked)),
        apply(rows, change) {
          if (isAsked(change.subject)) applyChange(rows, change);
        },
        snapshot: (rows, reason, sequence) => {
          const items = [...rows.values()].slice(0, snapshotSubjectsMax);
          return { sequence, snapshot: { reason, items, hasMore: items.length < rows.size } };
        },
        item: ({ at, subject: kind, id, what, state }, sequence) =>
          isAsked(kind) ? { sequence, event: { time: isoTime(at), type: what, kind, id, state } } : undefined,
      });
    },
  };
  return [watch];
}

const readAtOnce = 100;

async function readSubjects(parts: NodeEventsParts, kinds: readonly SubjectKind[]): Promise<Rows> {
  const rows: Rows = new Map();
  for (const kind of kinds) {
    const actors = {
      registry: parts.registries,
      service: parts.services,
      module: parts.modules,
      process: parts.processes,
    };
    for (const index of kind === "process" ? atWork : ["all"]) await readIndex(rows, kind, actors[kind], index);
  }
  for (const { address, phase } of parts.system.inspect()) {
    const kind = address.kind as SubjectKind;
    if (phase === "parked" && kinds.includes(kind)) keep(rows, { kind, id: address.key, state: parkedState });
  }
  return rows;
}

const atWork = lifecycleStates.filter((state) => state !== "idle").map((state) => `state/${state}`);

async function readIndex(
  rows: Rows,
  kind: SubjectKind,
  actors: Pick<Actors<unknown, never>, "list">,
  index: string,
): Promise<void> {
  let after: string | undefined;
  do {
    if (rows.size > snapshotSubjectsMax) return;
    const { items, next } = await actors.list(index, after, readAtOnce);
    for (const { key, state } of items) keepStep(rows, kind, key, state);
    after = next;
  } while (after !== undefined);
}

function applyChange(rows: Rows, { subject: kind, id, what, state, exists }: NodeChange): void {
  if (what === "crashed") return;
  if (!exists || (kind === "process" && state === "idle")) rows.delete(nameOf(kind, id));
  else keep(rows, { kind, id, state });
}

function keepStep(rows: Rows, kind: SubjectKind, id: string, state: unknown): void {
  const name = stateName(kind, state);
  if (kind !== "process" || name !== "idle") keep(rows, { kind, id, state: name });
}

function keep(rows: Rows, subject: Subject): void {
  rows.set(nameOf(subject.kind, subject.id), subject);
}

function nameOf(kind: SubjectKind, id: string): string {
  return `${kind}/${id}`;
}
