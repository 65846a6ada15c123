/** Reads LevelDB's manifest: the list of changes that, applied in order, says which tables and logs make up the database. */
import { ByteReader } from "./byte-reader.ts";

export interface ManifestContent {
  /** Logs from this number on are not in tables yet. 0: the database was never fully created. */
  readonly logNumber: number;
  /** Number → size in bytes. */
  readonly tables: ReadonlyMap<number, number>;
}

const tags = {
  comparator: 1,
  logNumber: 2,
  nextFileNumber: 3,
  lastSequence: 4,
  compactPointer: 5,
  deletedFile: 6,
  newFile: 7,
  previousLogNumber: 9,
} as const;

/** Throws where the records are no manifest. */
export function readManifest(records: readonly Uint8Array[]): ManifestContent {
  let logNumber = 0;
  const seen = new Set<number>();
  const tables = new Map<number, number>();
  for (const record of records) {
    const reader = new ByteReader(record);
    while (!reader.isAtEnd) {
      const tag = reader.varint();
      seen.add(tag);
      switch (tag) {
        case tags.comparator:
          reader.prefixed();
          break;
        case tags.logNumber:
          logNumber = reader.varint();
          break;
        case tags.nextFileNumber:
        case tags.lastSequence:
        case tags.previousLogNumber:
          reader.varint();
          break;
        case tags.compactPointer:
          reader.varint();
          reader.prefixed();
          break;
        case tags.deletedFile:
          reader.varint();
          tables.delete(reader.varint());
          break;
        case tags.newFile: {
          reader.varint();
          const number = reader.varint();
          tables.set(number, reader.varint());
          reader.prefixed();
          reader.prefixed();
          break;
        }
        default:
          throw new RangeError("The manifest has an unknown field");
      }
    }
  }
  const isComplete = [tags.comparator, tags.logNumber, tags.nextFileNumber, tags.lastSequence].every((tag) =>
    seen.has(tag),
  );
  if (!isComplete) throw new RangeError("The manifest lacks a field");
  return { logNumber, tables };
}
