/**
 * How a record is written: `<revision> <value>`. A record that is not there has revision 0, so a create expects 0, and a
 * record deleted and created again starts over at 1.
 */
import type { StoredRecord } from "../ports/store.ts";

export function encodeRecord(record: StoredRecord): string {
  return `${record.revision} ${record.value}`;
}

/** Undefined where the text is no record: damage, or an entry read as one. */
export function decodeRecord(text: string): StoredRecord | undefined {
  const space = text.indexOf(" ");
  const digits = space === -1 ? "" : text.slice(0, space);
  if (!/^[1-9][0-9]{0,15}$/.test(digits)) return undefined;
  return { revision: Number(digits), value: text.slice(space + 1) };
}
