/**
 * Where a command writes: results on stdout, everything else on stderr. Waits when a reader is slow; styles and cuts only on a terminal.
 */
import { once } from "node:events";
import type { Writable } from "node:stream";
import { styleText } from "node:util";
import type { CliIo } from "./cli-io.ts";
import { harmlessJson, harmlessText, widthOf } from "./harmless.ts";
import type { Item } from "./item.ts";
import { type Column, Table, textOf } from "./table.ts";

export type Style = "bold" | "red" | "yellow" | "green" | "dim";

const widthDefault = 80;

export class Output {
  readonly isJson: boolean;
  readonly #io: CliIo;
  /** Aborted when nobody reads any more, or by Ctrl-C. */
  readonly #ended: AbortSignal;

  constructor(io: CliIo, isJson: boolean, ended: AbortSignal) {
    this.isJson = isJson;
    this.#io = io;
    this.#ended = ended;
  }

  get isTerminal(): boolean {
    return this.#io.stdout.isTTY === true;
  }

  /** Of the terminal; undefined: nothing is cut. */
  get columns(): number | undefined {
    // A terminal that does not know its width says 0.
    return this.isTerminal ? this.#io.stdout.columns || widthDefault : undefined;
  }

  /** Plain unless stdout is a terminal that wants colours. */
  style(style: Style, text: string): string {
    const { NO_COLOR, TERM } = this.#io.environment;
    if (!this.isTerminal || (NO_COLOR !== undefined && NO_COLOR !== "") || TERM === "dumb") return text;
    return styleText(style, text, { validateStream: false });
  }

  /** A line of ours; parts of others have been made harmless. */
  line(text: string): Promise<void> {
    return this.#write(this.#io.stdout, `${text}\n`);
  }

  /** What a program printed or a tool says: as it is into files and pipes, harmless on a terminal. */
  text(text: string): Promise<void> {
    return this.#write(this.#io.stdout, this.isTerminal ? harmlessText(text) : text);
  }

  /** The same on stderr. */
  async errorText(text: string): Promise<void> {
    await this.#write(this.#io.stderr, this.#io.stderr.isTTY === true ? harmlessText(text) : text);
  }

  /** What is neither result nor error, for people: on stderr. */
  note(text: string): Promise<void> {
    return this.#write(this.#io.stderr, `${harmlessText(text)}\n`);
  }

  /** One document, over several lines. */
  json(value: unknown): Promise<void> {
    return this.line(harmlessJson(JSON.stringify(value ?? null, null, 2)));
  }

  /** One line of a stream. */
  jsonLine(value: unknown): Promise<void> {
    return this.line(harmlessJson(JSON.stringify(value)));
  }

  /** The document for programs, a sentence for people. */
  outcome(value: Item, sentence: string): Promise<void> {
    return this.isJson ? this.json(value) : this.text(`${sentence}\n`);
  }

  /** One thing: a document for programs, a line for each field for people, in the style it is given. */
  async show(
    item: Item,
    hidden: readonly string[] = [],
    styles: Readonly<Record<string, Style | undefined>> = {},
  ): Promise<void> {
    if (this.isJson) return this.json(item);
    const fields = Object.entries(item).filter(([name, value]) => value !== undefined && !hidden.includes(name));
    const width = Math.max(0, ...fields.map(([name]) => widthOf(wordsOf(name))));
    for (const [name, value] of fields) {
      const style = styles[name];
      const text = style === undefined ? textOf(value) : this.style(style, textOf(value));
      await this.line(`${wordsOf(name).padEnd(width)}  ${text}`);
    }
  }

  /** Pages as they come: a table for people, one array for programs, an item on each of its lines. */
  async list(
    columns: readonly Column[],
    pages: AsyncIterable<readonly Item[]> | Iterable<readonly Item[]>,
  ): Promise<void> {
    const table = new Table(columns, this.columns);
    let count = 0;
    for await (const items of pages) {
      if (items.length === 0) continue;
      const lines = this.isJson
        ? items.map((item, at) => `${count + at === 0 ? "[\n" : ",\n"}  ${harmlessJson(JSON.stringify(item))}`)
        : table.lines(items, (title) => this.style("bold", title)).map((line) => `${line}\n`);
      await this.#write(this.#io.stdout, lines.join(""));
      count += items.length;
    }
    if (this.isJson) await this.line(count === 0 ? "[]" : "\n]");
    else if (count === 0) await this.note("Nothing to list");
  }

  async #write(stream: Writable, text: string): Promise<void> {
    this.#ended.throwIfAborted();
    if (text === "" || stream.write(text)) return;
    await once(stream, "drain", { signal: this.#ended });
  }
}

/** `exitState` → `exit state`. */
function wordsOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
