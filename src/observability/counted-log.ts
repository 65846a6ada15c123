/** A log that counts the records it writes by level; those below the threshold are passed on uncounted, and not written. */
import type { Log, LogFields, LogLevel } from "../ports/log.ts";
import type { Metrics } from "./metrics.ts";

const levels: readonly LogLevel[] = ["debug", "info", "warn", "error"];

export function countLog(log: Log, threshold: LogLevel, { logRecords }: Metrics): Log {
  const counting = (level: LogLevel): Log[LogLevel] => {
    if (levels.indexOf(level) < levels.indexOf(threshold))
      return (event, message, fields) => log[level](event, message, fields);
    const tally = logRecords.holder({ level });
    return (event: string, message: string, fields?: LogFields) => {
      tally.count += 1;
      log[level](event, message, fields);
    };
  };
  const writes = (level: LogLevel): boolean => log.writes?.(level) ?? true;
  return { writes, debug: counting("debug"), info: counting("info"), warn: counting("warn"), error: counting("error") };
}
