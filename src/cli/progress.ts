/** Says that long work goes on, on stderr: one line that changes on a terminal, a line now and then elsewhere. */
import type { CliIo } from "./cli-io.ts";
import { harmlessLine } from "./harmless.ts";

/** Shorter work needs no words. */
const firstMs = 500;
const terminalEveryMs = 250;
/** Where lines stay, as in a build's log. */
const elsewhereEveryMs = 10_000;
const clearLine = "\r\u001b[K";

export class Progress {
  readonly #stderr: CliIo["stderr"];
  readonly #what: string;
  readonly #since = performance.now();
  readonly #timer: NodeJS.Timeout;
  #detail = "";
  #isShown = false;

  constructor(stderr: CliIo["stderr"], what: string) {
    this.#stderr = stderr;
    this.#what = what;
    this.#timer = setInterval(() => this.#tell(), stderr.isTTY === true ? terminalEveryMs : elsewhereEveryMs);
    this.#timer.unref();
  }

  /** How far it is: `12.3 MiB`. */
  detail(text: string): void {
    this.#detail = `, ${text}`;
  }

  end(): void {
    clearInterval(this.#timer);
    if (this.#isShown && this.#stderr.isTTY === true) this.#stderr.write(clearLine);
  }

  #tell(): void {
    const ms = performance.now() - this.#since;
    if (ms < firstMs) return;
    this.#isShown = true;
    const text = `${harmlessLine(this.#what)} … ${Math.round(ms / 1_000)} s${this.#detail}`;
    this.#stderr.write(this.#stderr.isTTY === true ? `${clearLine}${text}` : `${text}\n`);
  }
}
