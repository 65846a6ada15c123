/**
 * Log lines: one JSON object a line with timestamp, seq, level, event and message. An error is written with its causes; nothing
 * else of the server writes to stdout. The same line is a record for whoever keeps records; there, what has no name of its own in
 * every record is under `fields`.
 */
import { inspect } from "node:util";
import type { Clock } from "../ports/clock.ts";
import type { Log, LogFields, LogLevel, LogSubject } from "../ports/log.ts";
import type { LogRecord } from "../ports/log-records.ts";
import { mask, maskText, namesSecret, toLoggable } from "./masking.ts";

/** Takes the records, and numbers them. */
export interface RecordKeeper {
  nextSeq(): number;
  append(record: LogRecord): void;
}

export interface JsonLogOptions {
  readonly clock: Clock;
  readonly level: LogLevel;
  readonly write: (line: string) => void;
  /** Absent: nobody keeps them, and they are numbered from 1. */
  readonly records?: RecordKeeper | undefined;
}

const order: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/** Characters kept of one text: a runaway message must not fill the disk of whoever collects the lines. */
const textCharactersMax = 8_192;
/** Characters kept of all fields of a line together. */
const fieldCharactersMax = 16_384;

export class JsonLog implements Log {
  level: LogLevel;
  readonly #clock: Clock;
  readonly #write: (line: string) => void;
  readonly #records: RecordKeeper;

  constructor({ level, clock, write, records = new Counter() }: JsonLogOptions) {
    this.level = level;
    this.#clock = clock;
    this.#write = write;
    this.#records = records;
  }

  writes(level: LogLevel): boolean {
    return order.indexOf(level) >= order.indexOf(this.level);
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
    if (!this.writes(level)) return;
    const timestamp = new Date(this.#clock.now()).toISOString();
    const { known, others } = sorted(fields);
    const head = { timestamp, seq: this.#records.nextSeq(), level, event, message: presentable(message) };
    const error = fields.error === undefined ? {} : { error: presentable(describe(fields.error)) };
    // The second head: no field takes the place of what every line has.
    this.#write(`${JSON.stringify({ ...head, ...known, ...others, ...head, ...error })}\n`);
    const rest = Object.keys(others).length === 0 ? {} : { fields: others };
    this.#records.append({ ...head, ...known, ...error, ...rest });
  }
}

/** For a log whose records nobody keeps. */
class Counter implements RecordKeeper {
  #seq = 0;

  nextSeq(): number {
    this.#seq += 1;
    return this.#seq;
  }

  append(): void {}
}

/** Names that every reader knows, and what they hold. */
const knownFields: Readonly<Record<keyof LogSubject, "string" | "number">> = {
  requestId: "string",
  processId: "number",
  serviceId: "string",
  moduleId: "string",
  registryId: "string",
  toolId: "string",
  durationMs: "number",
};

function sorted(fields: LogFields): { readonly known: LogSubject; readonly others: Record<string, unknown> } {
  const known: Record<string, unknown> = {};
  const others: Record<string, unknown> = {};
  const allowance = { characters: fieldCharactersMax };
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || name === "error") continue;
    const loggable = namesSecret(name) ? mask : toLoggable(value, allowance);
    if (loggable === undefined) continue;
    const isKnown = Object.hasOwn(knownFields, name) && typeof loggable === knownFields[name as keyof LogSubject];
    (isKnown ? known : others)[name] = loggable;
  }
  return { known, others };
}

function describe(error: unknown): string {
  if (error instanceof Error) return inspect(error, { depth: 3, breakLength: Number.POSITIVE_INFINITY });
  return typeof error === "string" ? error : inspect(error, { depth: 3 });
}

/** Well-formed, because not every reader takes half a character. */
function presentable(text: string): string {
  const kept = text.length <= textCharactersMax ? text : `${text.slice(0, textCharactersMax)}…`;
  return maskText(kept.toWellFormed());
}
