/** What operators look at when something is wrong (decisions, section 11): rows without a route, served by the control plane alone. */
import type { Log, LogLevel } from "../ports/log.ts";
import type { System } from "../runtime/system.ts";
import { actorDiagnostics, type Masking } from "./diagnostics-actors.ts";
import { deadLetterDiagnostics } from "./diagnostics-dead-letters.ts";
import { type ExecutorDiagnosticsParts, executorDiagnostics } from "./diagnostics-executors.ts";
import { logLevelDiagnostics } from "./diagnostics-log-level.ts";
import { type NodeDiagnosticsParts, nodeDiagnostics } from "./diagnostics-node.ts";
import type { RpcOperation } from "./operation.ts";

export interface DiagnosticsParts
  extends Omit<NodeDiagnosticsParts, "actors" | "deadLetters" | "runs" | "logLevel">,
    Omit<ExecutorDiagnosticsParts, "mask"> {
  readonly system: System;
  readonly mask: Masking;
  readonly log: Log;
  /** Where lines are written, and which of them. */
  readonly threshold: { level: LogLevel };
  /** SERVICE_LOG_LEVEL. */
  readonly configuredLevel: LogLevel;
}

/** The node's age counts from this call. */
export function diagnosticsOperations(parts: DiagnosticsParts): readonly RpcOperation[] {
  const { system, mask, clock, log, threshold, configuredLevel } = parts;
  return [
    nodeDiagnostics({
      ...parts,
      actors: () => system.census(),
      deadLetters: system.deadLetters,
      runs: parts.slots,
      logLevel: () => threshold.level,
    }),
    ...actorDiagnostics({ system, mask, clock, log }),
    executorDiagnostics({ ...parts, mask: mask.sentence }),
    deadLetterDiagnostics(system.deadLetters),
    ...logLevelDiagnostics({ threshold, configured: configuredLevel, clock, log }),
  ] as readonly RpcOperation[];
}
