/** WatchProcesses: the processes that match, then every change of one that does, or did. */
import { z } from "zod";
import { lifecycleStates, type ProcessMessage, type ProcessState, processSort } from "../actors/process.ts";
import { snapshotCharactersMax, snapshotProcessesMax } from "../limits.ts";
import type { Actors } from "../runtime/actors.ts";
import { followChanges, type SnapshotReason, snapshotReasons } from "./change-follower.ts";
import { type NodeChange, type NodeChanges, processCharacters } from "./node-changes.ts";
import type { RpcStream } from "./operation.ts";
import { walk } from "./page.ts";
import { indexFor, snapshotShape, toSnapshot } from "./processes.ts";
import { label } from "./shapes.ts";

const input = z.object({
  ref: label.optional(),
  state: z.enum(lifecycleStates).optional(),
  fromSequence: z.int().nonnegative().optional(),
});

const item = z.object({
  sequence: z.int(),
  kind: z.enum(["snapshot", "added", "changed", "removed"]),
  snapshot: z
    .object({ reason: z.enum(snapshotReasons), items: z.array(snapshotShape), hasMore: z.boolean() })
    .optional(),
  process: snapshotShape.optional(),
  reason: z.string().nullable().optional(),
});

type Input = z.infer<typeof input>;
type Item = z.infer<typeof item>;

export interface ProcessChangesParts {
  readonly changes: NodeChanges;
  readonly processes: Actors<ProcessState, ProcessMessage>;
}

/** Newest first, by their place in the list. */
interface Rows {
  readonly bySort: Map<string, ProcessState>;
  hasMore: boolean;
}

export function processChangeStreams({ changes, processes }: ProcessChangesParts): readonly RpcStream[] {
  const watch: RpcStream<Input, Item> = {
    name: "watchProcesses",
    summary: "Follow the processes that match: those there are, then every change of one",
    rpcService: "ProcessService",
    role: "agent",
    input,
    output: item,
    failures: ["unavailable"],
    async open({ ref, state, fromSequence }, { signal }) {
      const ring = await changes.ring();
      const matches = (process: ProcessState | null): process is ProcessState =>
        process !== null &&
        (ref === undefined || process.ref === ref) &&
        (state === undefined || process.state === state);
      const shown = (process: ProcessState) => toSnapshot(process, processes.pid(String(process.id)));
      return followChanges<NodeChange, Rows, Item>({
        ring,
        after: fromSequence,
        signal,
        read: async () => {
          const { kept, last } = await walk(
            {
              read: (position, most) => processes.list(indexFor(ref, state, undefined), position, most),
              sortOf: ({ sort }) => sort,
              keep: (row) => matches(row.state),
            },
            undefined,
            snapshotProcessesMax,
          );
          return { bySort: new Map(kept.map((row) => [sortOf(row.state), row.state])), hasMore: last !== undefined };
        },
        apply(rows, { process }) {
          if (process === undefined) return;
          if (process.before !== null) rows.bySort.delete(sortOf(process.before));
          if (matches(process.after)) rows.bySort.set(sortOf(process.after), process.after);
        },
        snapshot: (rows, reason, sequence) => snapshotOf(rows, reason, sequence, shown),
        item: ({ process }, sequence) => {
          if (process === undefined) return undefined;
          const { before, after } = process;
          if (!matches(before) && !matches(after)) return undefined;
          const last = after ?? (before as ProcessState);
          const kind = after === null ? "removed" : before === null ? "added" : "changed";
          return { sequence, kind, process: shown(last), reason: last.reason };
        },
      });
    },
  };
  return [watch];
}

/** As many as one message may hold. */
function snapshotOf(
  rows: Rows,
  reason: SnapshotReason,
  sequence: number,
  shown: (process: ProcessState) => z.infer<typeof snapshotShape>,
): Item {
  const sorted = [...rows.bySort].sort(([one], [other]) => (one < other ? -1 : 1));
  const items: z.infer<typeof snapshotShape>[] = [];
  let characters = 0;
  for (const [, process] of sorted.slice(0, snapshotProcessesMax)) {
    characters += processCharacters(process);
    if (characters > snapshotCharactersMax && items.length > 0) break;
    items.push(shown(process));
  }
  return {
    sequence,
    kind: "snapshot",
    snapshot: { reason, items, hasMore: rows.hasMore || items.length < sorted.length },
  };
}

function sortOf({ createdAt, id }: ProcessState): string {
  return processSort(createdAt, id);
}
