/** Messages that reached no actor, for operators. */
import { z } from "zod";
import type { DeadLetter, DeadLetterReason, DeadLetters } from "../runtime/dead-letters.ts";
import type { RpcOperation } from "./operation.ts";
import { instant, isoTime, pageLimit } from "./shapes.ts";

const reasons = {
  unknown_kind: "unknownKind",
  parked: "parked",
  expired: "expired",
  overloaded: "overloaded",
  crashed: "crashed",
  wake_spent: "wakeSpent",
  stopped: "stopped",
} as const satisfies Record<DeadLetterReason, string>;

const reason = z.enum(Object.values(reasons));

export const deadLetterShape = z.object({
  at: instant,
  kind: z.string(),
  id: z.string(),
  reason,
  messageType: z.string(),
});

const listInput = z.object({ limit: pageLimit });

const listOutput = z.object({
  counts: z.array(z.object({ kind: z.string(), reason, count: z.int() })),
  newest: z.array(deadLetterShape),
});

export function deadLetterDiagnostics(
  deadLetters: Pick<DeadLetters, "list" | "countsByKind">,
): RpcOperation<z.infer<typeof listInput>, z.infer<typeof listOutput>> {
  return {
    name: "listDeadLetters",
    summary: "Messages that reached no actor: counts since the start, and the newest",
    rpcService: "DiagnosticsService",
    role: "operator",
    input: listInput,
    output: listOutput,
    run: async ({ limit }) => ({
      counts: [...deadLetters.countsByKind()]
        .sort((a, b) => b.count - a.count)
        .map(({ kind, reason: why, count }) => ({ kind, reason: reasons[why], count })),
      newest: deadLetters.list().slice(-limit).reverse().map(deadLetterOf),
    }),
  };
}

export function deadLetterOf({ at, address, reason: why, messageType }: DeadLetter): z.infer<typeof deadLetterShape> {
  return { at: isoTime(Math.round(at)), kind: address.kind, id: address.key, reason: reasons[why], messageType };
}
