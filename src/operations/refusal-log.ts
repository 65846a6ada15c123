/**
 * What the log says of callers that are refused: who and why, alike over all faces. Whoever is refused can come again a thousand times a
 * second, so the log given to the faces bounds what is written above `debug`:
 *
 * 1. The first refusal of a caller for a reason is a line at `warn`. While it goes on, a line each minute says how often.
 * 2. Of callers, so many are told apart in a minute; the others are told of together.
 * 3. Each refusal that has no line at `warn` has one at `debug`.
 */
import { catalogue } from "../errors/catalogue.ts";
import type { Failure } from "../errors/failure.ts";
import { refusalsTellMs, refusedCallersToldMax } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log, LogFields, LogLevel } from "../ports/log.ts";

export interface Refusal {
  readonly failure: Failure;
  readonly requestId: string;
  /** Name of its key, or its address: as its requests are counted. */
  readonly caller: string;
  /** `POST /processes`, `troupe.v1.ProcessService/CreateProcess` */
  readonly request: string;
  /** In a client's certificate that is the name of no key. */
  readonly certificateName?: string | undefined;
}

const event = "request-refused";

/** Who may not, or not so often. What else a caller is refused for is between it and the one it asks. */
const toldStatuses: readonly number[] = [401, 403, 429];

export function logRefusal(log: Log, { failure, caller, ...fields }: Refusal): void {
  const { kind, message, details } = failure;
  if (!toldStatuses.includes(catalogue[kind].rest)) return;
  const limit = details.exhaustion?.route;
  log.warn(event, `"${caller}" was refused: ${message}`, { ...fields, caller, code: kind, limit });
}

/** A caller refused for one reason, who was told of in this minute or the one before. */
interface Refused {
  readonly caller: unknown;
  readonly code: unknown;
  /** Since the last line. */
  more: number;
  lastMessage: string;
}

/** Passes on all but what is too much of refusals. */
export class RefusalLog implements Log {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #refused = new Map<string, Refused>();
  /** Refusals of callers for whom there was no room. */
  #others = 0;
  #cancelTelling: (() => void) | undefined;

  constructor(log: Log, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  writes(level: LogLevel): boolean {
    return this.#log.writes?.(level) ?? true;
  }

  debug(...line: Parameters<Log["debug"]>): void {
    this.#log.debug(...line);
  }

  info(...line: Parameters<Log["info"]>): void {
    this.#log.info(...line);
  }

  warn(name: string, message: string, fields: LogFields = {}): void {
    const isTold = name !== event || this.#isFirst(message, fields);
    this.#log[isTold ? "warn" : "debug"](name, message, fields);
  }

  error(...line: Parameters<Log["error"]>): void {
    this.#log.error(...line);
  }

  /** Tells what was not told yet. */
  close(): void {
    this.#cancelTelling?.();
    this.#tell();
    this.#refused.clear();
  }

  #isFirst(message: string, { caller, code }: LogFields): boolean {
    const key = `${code} ${caller}`;
    const known = this.#refused.get(key);
    if (known !== undefined) {
      known.more += 1;
      known.lastMessage = message;
      return false;
    }
    this.#cancelTelling ??= this.#clock.after(refusalsTellMs, () => this.#goOn());
    if (this.#refused.size >= refusedCallersToldMax) {
      this.#others += 1;
      return false;
    }
    this.#refused.set(key, { caller, code, more: 0, lastMessage: message });
    return true;
  }

  #goOn(): void {
    this.#cancelTelling = undefined;
    for (const [key, { more }] of this.#refused) if (more === 0) this.#refused.delete(key);
    this.#tell();
    if (this.#refused.size > 0) this.#cancelTelling = this.#clock.after(refusalsTellMs, () => this.#goOn());
  }

  #tell(): void {
    for (const refused of this.#refused.values()) {
      const { caller, code, more, lastMessage } = refused;
      if (more === 0) continue;
      refused.more = 0;
      this.#log.warn(event, `${more} times more, the last: ${lastMessage}`, { caller, code, more });
    }
    if (this.#others === 0) return;
    const text = `${this.#others} refusals of others: ${refusedCallersToldMax} are told apart in a minute`;
    this.#log.warn(event, text, { more: this.#others });
    this.#others = 0;
  }
}
