/**
 * Reads LevelDB's log format (write-ahead logs and manifests): blocks of 32 KiB holding records, each with checksum, length and
 * type. LevelDB itself skips what it cannot read, silently; here a tail that was never finished is told from damage.
 */
import { crc32c, unmask } from "./crc32c.ts";

const blockBytes = 32 * 1024;
const headerBytes = 7;
const pageBytes = 4096;
const recordTypes = { full: 1, first: 2, middle: 3, last: 4 } as const;

export interface LogContent {
  readonly records: readonly Buffer[];
  /** whole: ends with a whole record. torn: its last write was cut off, as by a power cut. damaged: what was whole is not. */
  readonly state: "whole" | "torn" | "damaged";
}

export function readLog(bytes: Buffer): LogContent {
  const records: Buffer[] = [];
  let parts: Buffer[] | undefined;
  let at = 0;
  while (at < bytes.length) {
    if (blockBytes - (at % blockBytes) < headerBytes) {
      at += blockBytes - (at % blockBytes);
      continue;
    }
    const piece = pieceAt(bytes, at);
    if (piece === undefined) return { records, state: isTornTail(bytes, at) ? "torn" : "damaged" };
    const begins = piece.type === recordTypes.full || piece.type === recordTypes.first;
    if (begins === (parts !== undefined)) return { records, state: "damaged" };
    parts = [...(parts ?? []), piece.payload];
    if (piece.type === recordTypes.full || piece.type === recordTypes.last) {
      records.push(Buffer.concat(parts));
      parts = undefined;
    }
    at = piece.end;
  }
  return { records, state: parts === undefined ? "whole" : "torn" };
}

interface Piece {
  readonly type: number;
  readonly payload: Buffer;
  readonly end: number;
}

function pieceAt(bytes: Buffer, at: number): Piece | undefined {
  const limit = Math.min(bytes.length, at - (at % blockBytes) + blockBytes);
  if (at + headerBytes > limit) return undefined;
  const end = at + headerBytes + bytes.readUInt16LE(at + 4);
  if (end > limit) return undefined;
  const type = bytes[at + 6]!;
  if (type < recordTypes.full || type > recordTypes.last) return undefined;
  if (!isWhole(bytes, at, end)) return undefined;
  return { type, payload: bytes.subarray(at + headerBytes, end), end };
}

/** The checksum covers type and payload, not the length. */
function isWhole(bytes: Buffer, at: number, end: number): boolean {
  return unmask(bytes.readUInt32LE(at)) === crc32c(bytes, at + 6, end);
}

/**
 * Nothing readable may follow a torn tail, and it must look cut off: shorter than it says, or ending in pages that were never
 * written. A record of full length with a wrong checksum was whole once.
 */
function isTornTail(bytes: Buffer, at: number): boolean {
  for (let next = at + 1; next + headerBytes < bytes.length; next += 1) {
    if (pieceAt(bytes, next) !== undefined) return false;
  }
  if (at + headerBytes > bytes.length) return true;
  const isLengthDamaged = isWhole(bytes, at, Math.min(bytes.length, at - (at % blockBytes) + blockBytes));
  if (isLengthDamaged) return false;
  const isShort = at + headerBytes + bytes.readUInt16LE(at + 4) > bytes.length;
  return isShort || endsInUnwrittenPages(bytes, at);
}

function endsInUnwrittenPages(bytes: Buffer, at: number): boolean {
  const lastPage = bytes.length - 1 - ((bytes.length - 1) % pageBytes);
  return bytes.subarray(Math.max(lastPage, at)).every((byte) => byte === 0);
}
