/**
 * The bytes of a backup. They are the same as messages of MaintenanceService.Backup, one after another, and as a file:
 *
 *   TROUPE BACKUP 1\n                                     format 1
 *   H <length> <JSON of BackupHeader>
 *   P <length> <JSON {id, hash, files}>                   a package; that many F follow
 *   F <length> <length of path> <path> <content>          a file of it: `seal.json`, or below `package/`
 *   E <length> <length of key> <key> <value>              an entry of the store, in key order
 *   T <length> <entries> <packages> <files> <bytes> <SHA-256 of all bytes before it>
 *
 * Kinds are one byte, lengths four and counts eight, big-endian. P before E. T has a fixed size and says how long the whole is: what was
 * cut off anywhere, or is followed by something, does not end in it.
 *
 * What is not in it: the secrets key (values are sealed, and a backup must not open them), log records, and the store's own marks, which
 * are in the header.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { backupChunkBytesMax } from "../limits.ts";
import type { BackupCounts, BackupHeader } from "../ports/maintenance.ts";
import type { RawEntry } from "../ports/snapshot.ts";

export const backupFormat = 1;
export const magicWord = "TROUPE BACKUP ";
export const magic = Buffer.from(`${magicWord}${backupFormat}\n`);

const kinds = { header: "H", package: "P", file: "F", entry: "E", trailer: "T" } as const;
export type FrameKind = keyof typeof kinds;
export const frameHeadBytes = 5;
const digestBytes = 32;
const trailerContentBytes = 4 * 8 + digestBytes;
export const trailerBytes = frameHeadBytes + trailerContentBytes;

const packageSchema = z.object({ id: z.string(), hash: z.string(), files: z.int().nonnegative() });
export type PackedPackage = z.infer<typeof packageSchema>;

const headerSchema: z.ZodType<BackupHeader> = z.object({
  serverVersion: z.string(),
  storeFormat: z.int().positive(),
  epoch: z.int().positive(),
  takenAt: z.iso.datetime(),
  secretsKeyIds: z.array(z.string()),
  packages: z.int().nonnegative(),
  packagesLeftOut: z.array(z.object({ id: z.string(), hash: z.string(), reason: z.string() })),
});

export function frameHead(kind: FrameKind, bytes: number): Buffer {
  const head = Buffer.alloc(frameHeadBytes);
  head.write(kinds[kind], "latin1");
  head.writeUInt32BE(bytes, 1);
  return head;
}

/** Undefined: no frame begins so. */
export function readFrameHead(head: Buffer): { readonly kind: FrameKind; readonly bytes: number } | undefined {
  const kind = (Object.keys(kinds) as FrameKind[]).find((name) => kinds[name] === String.fromCharCode(head[0] ?? 0));
  return kind === undefined ? undefined : { kind, bytes: head.readUInt32BE(1) };
}

export function headerFrame(header: BackupHeader): Buffer {
  return jsonFrame("header", header);
}

export function packageFrame(packed: PackedPackage): Buffer {
  return jsonFrame("package", packed);
}

/** What comes before the content of a file. */
export function fileFrameStart(path: string, contentBytes: number): Buffer {
  const name = named(Buffer.from(path));
  return Buffer.concat([frameHead("file", name.length + contentBytes), name]);
}

export function entryFrames(entries: readonly RawEntry[]): Buffer {
  return Buffer.concat(
    entries.flatMap(([key, value]) => [frameHead("entry", 4 + key.length + value.length), named(key), value]),
  );
}

/** Undefined where it is not what such a frame holds. */
export function readHeader(content: Buffer): BackupHeader | undefined {
  return parsed(content, headerSchema);
}

export function readPackage(content: Buffer): PackedPackage | undefined {
  return parsed(content, packageSchema);
}

/** The two parts of an entry or a file; undefined where its length is wrong. */
export function readNamed(content: Buffer): readonly [name: Buffer, rest: Buffer] | undefined {
  if (content.length < 4) return undefined;
  const end = 4 + content.readUInt32BE(0);
  return end > content.length ? undefined : [content.subarray(4, end), content.subarray(end)];
}

export interface Trailer {
  readonly counts: BackupCounts;
  readonly sha256: string;
}

/** Undefined where these bytes are no trailer. */
export function readTrailer(bytes: Buffer): Trailer | undefined {
  const head = readFrameHead(bytes);
  if (bytes.length !== trailerBytes || head?.kind !== "trailer" || head.bytes !== trailerContentBytes) return undefined;
  const [entries, packages, files, total] = [0, 1, 2, 3].map((place) =>
    Number(bytes.readBigUInt64BE(frameHeadBytes + place * 8)),
  ) as [number, number, number, number];
  return {
    counts: { entries, packages, files, bytes: total },
    sha256: bytes.toString("hex", trailerBytes - digestBytes),
  };
}

/**
 * The pieces in chunks of `backupChunkBytesMax` (the last one shorter), with the trailer at the end. `counts` is added to by whoever makes
 * the pieces, and complete once this is.
 */
export async function* sealedChunks(
  pieces: AsyncIterable<Buffer>,
  counts: { -readonly [Name in keyof BackupCounts]: BackupCounts[Name] },
): AsyncGenerator<Buffer, void, undefined> {
  const digest = createHash("sha256");
  let held: Buffer[] = [];
  let heldBytes = 0;
  const hold = (piece: Buffer): number => {
    const part = piece.subarray(0, backupChunkBytesMax - heldBytes);
    held.push(part);
    heldBytes += part.length;
    return part.length;
  };
  for await (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      const taken = hold(piece.subarray(at));
      digest.update(piece.subarray(at, at + taken));
      at += taken;
      if (heldBytes < backupChunkBytesMax) continue;
      yield Buffer.concat(held, heldBytes);
      [held, heldBytes] = [[], 0];
    }
    counts.bytes += piece.length;
  }
  counts.bytes += trailerBytes;
  for (let trailer = trailerOf(counts, digest); trailer.length > 0; ) {
    trailer = trailer.subarray(hold(trailer));
    yield Buffer.concat(held, heldBytes);
    [held, heldBytes] = [[], 0];
  }
}

function trailerOf({ entries, packages, files, bytes }: BackupCounts, digest: ReturnType<typeof createHash>): Buffer {
  const trailer = Buffer.alloc(trailerBytes);
  frameHead("trailer", trailerContentBytes).copy(trailer);
  [entries, packages, files, bytes].forEach((count, place) => {
    trailer.writeBigUInt64BE(BigInt(count), frameHeadBytes + place * 8);
  });
  digest.update(trailer.subarray(0, -digestBytes));
  digest.digest().copy(trailer, trailerBytes - digestBytes);
  return trailer;
}

/** Of the trailer, what its own SHA-256 covers. */
export const trailerBytesDigested = trailerBytes - digestBytes;

function jsonFrame(kind: FrameKind, value: unknown): Buffer {
  const content = Buffer.from(JSON.stringify(value));
  return Buffer.concat([frameHead(kind, content.length), content]);
}

function named(name: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(name.length);
  return Buffer.concat([length, name]);
}

function parsed<Value>(content: Buffer, schema: z.ZodType<Value>): Value | undefined {
  try {
    return schema.safeParse(JSON.parse(content.toString())).data;
  } catch {
    return undefined;
  }
}
