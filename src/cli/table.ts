/** Tables for people: aligned by the first page of what is listed, cut to the terminal's width, one line for each item. */

import { fit, harmlessLine, widthOf } from "./harmless.ts";
import type { Item } from "./item.ts";

export interface Column {
  readonly title: string;
  /** Name of a field, or what to show of the item. */
  readonly of: string | ((item: Item) => unknown);
  readonly align?: "right";
}

const gap = "  ";
/** No column is cut below this. */
const columnMin = 8;

export class Table {
  readonly #columns: readonly Column[];
  /** Of the terminal; undefined: nothing is cut. */
  readonly #width: number | undefined;
  #widths: readonly number[] | undefined;

  constructor(columns: readonly Column[], width: number | undefined) {
    this.#columns = columns;
    this.#width = width;
  }

  /** Lines for a page of items, the title line before the first page. `bold` paints the title line. */
  lines(items: readonly Item[], bold: (text: string) => string): readonly string[] {
    const rows = items.map((item) => this.#columns.map((column) => cellOf(column, item)));
    const isFirst = this.#widths === undefined;
    const titles = this.#columns.map(({ title }) => title);
    this.#widths ??= shrunk(widest([titles, ...rows]), this.#width);
    const lines = rows.map((row) => this.#line(row));
    return isFirst ? [bold(this.#line(titles)), ...lines] : lines;
  }

  #line(cells: readonly string[]): string {
    const widths = this.#widths ?? [];
    const padded = cells.map((cell, at) => {
      const width = widths[at] ?? 0;
      const shown = this.#width === undefined ? cell : fit(cell, width);
      const space = " ".repeat(Math.max(0, width - widthOf(shown)));
      return this.#columns[at]?.align === "right" ? space + shown : shown + space;
    });
    const line = padded.join(gap).trimEnd();
    return this.#width === undefined ? line : fit(line, this.#width);
  }
}

function cellOf({ of }: Column, item: Item): string {
  return textOf(typeof of === "function" ? of(item) : item[of]);
}

/** As a cell or a line shows it: nothing for what is not there. */
export function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return harmlessLine(typeof value === "object" ? JSON.stringify(value) : String(value));
}

function widest(rows: readonly (readonly string[])[]): number[] {
  const widths: number[] = [];
  for (const row of rows) for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, widthOf(cell));
  return widths;
}

/** The widest columns give first, so that short ones stay whole. */
function shrunk(widths: readonly number[], width: number | undefined): readonly number[] {
  if (width === undefined) return widths;
  const result = [...widths];
  let excess = result.reduce((sum, column) => sum + column, 0) + gap.length * (result.length - 1) - width;
  while (excess > 0) {
    const most = Math.max(...result);
    if (most <= columnMin) break;
    const second = Math.max(columnMin, ...result.filter((column) => column < most));
    const at = result.lastIndexOf(most);
    const less = Math.min(excess, Math.max(1, most - second));
    result[at] = most - less;
    excess -= less;
  }
  return result;
}
