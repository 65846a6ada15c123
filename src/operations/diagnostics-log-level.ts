/** Which log records are written: asked, and changed at once until the server ends. */
import { z } from "zod";
import type { Clock } from "../ports/clock.ts";
import type { Log, LogLevel } from "../ports/log.ts";
import { logLevels } from "./log-search.ts";
import type { RpcOperation } from "./operation.ts";
import { instant, isoTime } from "./shapes.ts";

const level = z.enum(logLevels);

const status = z.object({
  level,
  configuredLevel: level,
  setBy: z.string().optional(),
  setAt: instant.optional(),
});

const getOutput = z.object({ logLevel: status });
const setInput = z.object({ level });
const setOutput = z.object({ logLevel: status, message: z.string() });

export interface LogLevelParts {
  /** Where lines are written, and which of them. */
  readonly threshold: { level: LogLevel };
  /** SERVICE_LOG_LEVEL. */
  readonly configured: LogLevel;
  readonly clock: Clock;
  readonly log: Log;
}

export function logLevelDiagnostics({ threshold, configured, clock, log }: LogLevelParts): readonly RpcOperation[] {
  let setBy: { readonly setBy: string; readonly setAt: string } | undefined;
  const now = (): z.infer<typeof status> => ({ level: threshold.level, configuredLevel: configured, ...setBy });
  const get: RpcOperation<object, z.infer<typeof getOutput>> = {
    name: "getLogLevel",
    summary: "Which log records are written",
    rpcService: "DiagnosticsService",
    role: "operator",
    input: z.object({}),
    output: getOutput,
    run: async () => ({ logLevel: now() }),
  };
  const set: RpcOperation<z.infer<typeof setInput>, z.infer<typeof setOutput>> = {
    name: "setLogLevel",
    summary: "Change which log records are written, until the server ends",
    rpcService: "DiagnosticsService",
    role: "operator",
    input: setInput,
    output: setOutput,
    run: async ({ level: asked }, { caller, requestId }) => {
      const before = threshold.level;
      const tell = (): void =>
        log.warn("log-level-set", `The log level was "${before}" and is "${asked}" now, as "${caller.name}" asked`, {
          requestId,
        });
      // Under whichever level writes more of it.
      if (logLevels.indexOf(asked) > logLevels.indexOf(before)) tell();
      threshold.level = asked;
      setBy = { setBy: caller.name, setAt: isoTime(Math.round(clock.now())) };
      if (logLevels.indexOf(asked) <= logLevels.indexOf(before)) tell();
      const message = `The log level is "${asked}" from now on, until the server ends: the next start begins with "${configured}"`;
      return { logLevel: now(), message };
    },
  };
  return [get, set];
}
