/** A log that counts the records it writes by level; those that the log below does not write now are passed on uncounted. */
import type { Log, LogFields, LogLevel } from "../ports/log.ts";
import type { Metrics } from "./metrics.ts";

export function countLog(log: Log, { logRecords }: Metrics): Log {
  const writes = (level: LogLevel): boolean => log.writes?.(level) ?? true;
  const counting = (level: LogLevel): Log[LogLevel] => {
    const tally = logRecords.holder({ level });
    return (event: string, message: string, fields?: LogFields) => {
      if (writes(level)) tally.count += 1;
      log[level](event, message, fields);
    };
  };
  return { writes, debug: counting("debug"), info: counting("info"), warn: counting("warn"), error: counting("error") };
}
