/**
 * Cursors: unpadded base64url of `{"v":1,"k":[…]}`, where k is the position of the last item seen. They carry a position, never
 * filters, and are checked strictly in this order: length, canonical encoding, JSON, shape, version, arity and key types.
 */
import { Failure } from "../errors/failure.ts";
import { cursorCharactersMax } from "../limits.ts";

export type CursorKey = string | number;
export type CursorShape = readonly ("string" | "number")[];

const cursorVersion = 1;

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly nextCursor: string | null;
  readonly hasMore: boolean;
}

export function encodeCursor(key: readonly CursorKey[]): string {
  return Buffer.from(JSON.stringify({ v: cursorVersion, k: key })).toString("base64url");
}

export function decodeCursor(text: string, shape: CursorShape): readonly CursorKey[] {
  if (text.length > cursorCharactersMax) throw invalid(`is longer than ${cursorCharactersMax} characters`);
  const bytes = Buffer.from(text, "base64url");
  if (text === "" || bytes.toString("base64url") !== text) throw invalid("is not in the form it was given out in");
  const envelope = parse(bytes);
  if (envelope.v !== cursorVersion) {
    throw new Failure(
      "cursor_expired",
      "The cursor comes from another pagination version: start again from the first page",
    );
  }
  const { k } = envelope;
  if (k.length !== shape.length || k.some((part, position) => typeof part !== shape[position])) {
    throw invalid("belongs to another list");
  }
  return k;
}

function parse(bytes: Buffer): { readonly v: number; readonly k: readonly CursorKey[] } {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw invalid("does not hold JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalid("does not hold an object");
  const { v, k, ...others } = value as Record<string, unknown>;
  const isKey = Array.isArray(k) && k.every((part) => typeof part === "string" || typeof part === "number");
  if (typeof v !== "number" || !isKey || Object.keys(others).length > 0)
    throw invalid("does not have the shape of a cursor");
  return { v, k: k as CursorKey[] };
}

function invalid(why: string): Failure {
  return new Failure("invalid_cursor", `The cursor ${why}: start again from the first page`, {
    fields: [{ field: "cursor", description: why }],
  });
}

/** The page that a walk has filled; `keyOf` is the position its cursor carries. */
export function toPage<Row, Item>(
  { kept, last }: Walked<Row>,
  toItem: (row: Row) => Item,
  keyOf: (row: Row) => readonly CursorKey[],
): Page<Item> {
  return {
    items: kept.map(toItem),
    nextCursor: last === undefined ? null : encodeCursor(keyOf(last)),
    hasMore: last !== undefined,
  };
}

/** Rows read to fill one page when a filter leaves many out; then a short page with a cursor is answered. */
const rowsReadMax = 5_000;

export interface Walk<Row> {
  /** The next rows after a position, in order; `next` is undefined at the end. */
  readonly read: (
    after: string | undefined,
    limit: number,
  ) => Promise<{ items: readonly Row[]; next: string | undefined }>;
  readonly sortOf: (row: Row) => string;
  readonly keep: (row: Row) => boolean;
}

export interface Walked<Row> {
  readonly kept: readonly Row[];
  /** Where the next page goes on; undefined at the end. */
  readonly last: Row | undefined;
}

/** Walks until the page is full, the rows end, or enough were read. */
export async function walk<Row>(
  { read, sortOf, keep }: Walk<Row>,
  after: string | undefined,
  limit: number,
): Promise<Walked<Row>> {
  const kept: Row[] = [];
  let position = after;
  let rowsRead = 0;
  for (;;) {
    // One more than asked tells whether there is a next page without a second look.
    const { items, next } = await read(position, limit + 1);
    for (const row of items) {
      if (!keep(row)) continue;
      if (kept.length === limit) return { kept, last: kept.at(-1) };
      kept.push(row);
    }
    rowsRead += limit + 1;
    if (next === undefined) return { kept, last: undefined };
    const lastRead = items.at(-1);
    if (rowsRead >= rowsReadMax && lastRead !== undefined && sortOf(lastRead) === next) return { kept, last: lastRead };
    position = next;
  }
}
