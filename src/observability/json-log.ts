/**
 * Log lines: one JSON object a line with timestamp, seq, level, event and message. An error is written with its causes; nothing
 * else of the server writes to stdout.
 */
import { inspect } from "node:util";
import type { Clock } from "../ports/clock.ts";
import type { Log, LogFields, LogLevel } from "../ports/log.ts";

export interface JsonLogOptions {
  readonly clock: Clock;
  readonly level: LogLevel;
  readonly write: (line: string) => void;
}

const order: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/** Characters kept of one field: a runaway message must not fill the disk of whoever collects the lines. */
const fieldCharactersMax = 8_192;

export class JsonLog implements Log {
  level: LogLevel;
  readonly #clock: Clock;
  readonly #write: (line: string) => void;
  #seq = 0;

  constructor(options: JsonLogOptions) {
    this.level = options.level;
    this.#clock = options.clock;
    this.#write = options.write;
  }

  debug(event: string, message: string, fields?: LogFields): void {
    this.#line("debug", event, message, fields);
  }

  info(event: string, message: string, fields?: LogFields): void {
    this.#line("info", event, message, fields);
  }

  warn(event: string, message: string, fields?: LogFields): void {
    this.#line("warn", event, message, fields);
  }

  error(event: string, message: string, fields?: LogFields): void {
    this.#line("error", event, message, fields);
  }

  #line(level: LogLevel, event: string, message: string, fields: LogFields = {}): void {
    if (order.indexOf(level) < order.indexOf(this.level)) return;
    const timestamp = new Date(this.#clock.now()).toISOString();
    const { error, ...others } = fields;
    const record = {
      timestamp,
      seq: ++this.#seq,
      level,
      event,
      message: cut(message),
      ...others,
      ...(error === undefined ? {} : { error: cut(describe(error)) }),
    };
    this.#write(`${JSON.stringify(record)}\n`);
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? inspect(error, { depth: 3, breakLength: Number.POSITIVE_INFINITY }) : String(error);
}

function cut(text: string): string {
  return text.length <= fieldCharactersMax ? text : `${text.slice(0, fieldCharactersMax)}…`;
}
