/** The standard error of an MCP server in our log: a few lines a second, cut to size, without the secrets it was given. */
import { StringDecoder } from "node:string_decoder";
import { mcpLogLineCharactersMax, mcpLogLinesPerSecondMax } from "../../limits.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Log } from "../../ports/log.ts";
import { type StdioAddress, shownServer } from "./server-address.ts";
import { lookedAtCharactersMax, type Target } from "./settings.ts";

export interface StderrLogOptions {
  readonly address: StdioAddress;
  readonly target: Target;
  readonly clock: Clock;
  readonly log: Log;
}

export class StderrLog {
  readonly #options: StderrLogOptions;
  /** A secret may be written in two pieces, and in the middle of a character. */
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";
  #lastLine = "";
  #second = 0;
  #lines = 0;
  #dropped = 0;

  constructor(options: StderrLogOptions) {
    this.#options = options;
  }

  /** Not masked. */
  get lastLine(): string {
    return this.#rest.trim() === "" ? this.#lastLine : this.#rest;
  }

  push(chunk: Buffer): void {
    const lines = (this.#rest + this.#decoder.write(chunk)).split("\n");
    this.#rest = kept(lines.pop() ?? "");
    for (const line of lines) {
      if (line.trim() === "") continue;
      this.#lastLine = kept(line);
      this.#write(line);
    }
  }

  #write(line: string): void {
    const { address, target, clock, log } = this.#options;
    const second = Math.floor(clock.monotonic() / 1_000);
    if (second !== this.#second) {
      if (this.#dropped > 0) log.warn("mcp-stderr-dropped", `${shownServer(address)}: ${this.#dropped} lines left out`);
      this.#second = second;
      this.#lines = 0;
      this.#dropped = 0;
    }
    this.#lines += 1;
    if (this.#lines > mcpLogLinesPerSecondMax) this.#dropped += 1;
    else log.info("mcp-stderr", `${shownServer(address)}: ${target.quote(line, mcpLogLineCharactersMax)}`);
  }
}

/**
 * Of a line without end only the beginning. One character more than is looked at: so whoever masks knows that it was cut, and that a
 * secret may have been cut with it.
 */
function kept(line: string): string {
  return line.slice(0, lookedAtCharactersMax + 1);
}
