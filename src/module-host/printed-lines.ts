/**
 * What a module prints becomes lines of the log: long ones cut, no more than so many a second, and the rest counted in one line. The same
 * bound holds for what it logs through its context.
 */
import { moduleLogLineCharactersMax, moduleLogLinesPerSecondMax } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log, LogLevel } from "../ports/log.ts";
import { Pace } from "./pace.ts";

export class ModuleLines {
  readonly #moduleId: string;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #mask: (text: string) => string;
  readonly #pace: Pace;
  #dropped = 0;

  constructor(moduleId: string, log: Log, clock: Clock, mask: (text: string) => string) {
    this.#moduleId = moduleId;
    this.#log = log;
    this.#clock = clock;
    this.#mask = mask;
    this.#pace = new Pace(clock, moduleLogLinesPerSecondMax);
  }

  line(level: LogLevel, event: "module-log" | "module-printed", text: string): void {
    if (!this.#pace.take(1)) {
      if (this.#dropped === 0) this.#clock.after(this.#pace.msToNext, () => this.#tellDropped());
      this.#dropped += 1;
      return;
    }
    const cut = text.length > moduleLogLineCharactersMax ? `${text.slice(0, moduleLogLineCharactersMax)}…` : text;
    this.#log[level](event, this.#mask(cut).toWellFormed(), { moduleId: this.#moduleId });
  }

  #tellDropped(): void {
    const dropped = this.#dropped;
    this.#dropped = 0;
    this.#log.warn("module-log-dropped", `Module "${this.#moduleId}" wrote ${dropped} more lines, which were dropped`, {
      moduleId: this.#moduleId,
    });
  }
}

/** Cuts a stream of bytes into lines; of a long line only the beginning is kept. */
export class LineSplitter {
  readonly #each: (line: string) => void;
  #kept: Buffer[] = [];
  #keptBytes = 0;

  constructor(each: (line: string) => void) {
    this.#each = each;
  }

  push(chunk: Buffer): void {
    let at = 0;
    for (let end = chunk.indexOf(newline, at); end >= 0; end = chunk.indexOf(newline, at)) {
      this.#keep(chunk.subarray(at, end));
      this.flush();
      at = end + 1;
    }
    this.#keep(chunk.subarray(at));
  }

  flush(): void {
    if (this.#keptBytes === 0) return;
    const line = Buffer.concat(this.#kept).toString("utf8");
    this.#kept = [];
    this.#keptBytes = 0;
    this.#each(line);
  }

  #keep(piece: Buffer): void {
    const room = lineBytesKept - this.#keptBytes;
    if (piece.length === 0 || room <= 0) return;
    this.#kept.push(piece.subarray(0, room));
    this.#keptBytes += Math.min(room, piece.length);
  }
}

const newline = 0x0a;
/** A character has at most four bytes in UTF-8; one more shows that the line was longer. */
const lineBytesKept = 4 * moduleLogLineCharactersMax + 1;
