/**
 * What may be a key, and which keys a prefix selects. UTF-8 bytes sort as code points do, not as UTF-16 units do, so order
 * is never judged with `<`.
 */
import type { Commit, Range } from "../ports/store.ts";
import type { KeyRange } from "./database.ts";
import { metaKeys } from "./meta.ts";

/** Throws on a commit that no caller should make: a crash of the caller, never a failing store. */
export function checkCommit(commit: Commit): void {
  const { record, writes } = commit;
  checkKey(record.key);
  checkValue(record.value);
  if (!Number.isSafeInteger(record.expect) || record.expect < 0) throw new TypeError("A revision is an integer from 0");
  for (const { key, value } of writes) {
    checkKey(key);
    checkValue(value);
    if (key === record.key) throw new TypeError(`A write of the commit to "${key}" goes to its own record`);
  }
}

/** Undefined where nothing can be selected. */
export function keyRange(range: Range): KeyRange | undefined {
  const { prefix, after, limit } = range;
  if (!Number.isSafeInteger(limit) || limit < 0) throw new TypeError("The limit of a range is an integer from 0");
  if (limit === 0) return undefined;
  const lt = prefixEnd(prefix);
  const end = lt === undefined ? {} : { lt };
  if (after === undefined || compareKeys(after, prefix) < 0) return { gte: prefix, ...end, limit };
  if (lt !== undefined && compareKeys(after, lt) >= 0) return undefined;
  return { gt: after, ...end, limit };
}

function compareKeys(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** The least text above all that begin with `prefix`; undefined where there is none. */
export function prefixEnd(prefix: string): string | undefined {
  for (let end = prefix.length; end > 0; ) {
    const low = prefix.charCodeAt(end - 1);
    const start = low >= 0xdc00 && low <= 0xdfff ? end - 2 : end - 1;
    const last = prefix.codePointAt(start) ?? 0;
    // Surrogates are no characters: what follows U+D7FF is U+E000.
    if (last !== 0x10ffff) return prefix.slice(0, start) + String.fromCodePoint(last === 0xd7ff ? 0xe000 : last + 1);
    end = start;
  }
  return undefined;
}

function checkKey(key: string): void {
  // A lone surrogate becomes U+FFFD on disk: two keys would be one.
  if (typeof key !== "string" || key === "" || !key.isWellFormed()) throw new TypeError("A key is text and not empty");
  if (metaKeys.has(key)) throw new TypeError(`The key "${key}" belongs to the store`);
}

function checkValue(value: string | null): void {
  if (value !== null && typeof value !== "string") throw new TypeError("A value is text or null");
}
