/**
 * Proves a LevelDB table: every block against the checksum written with it. LevelDB checks none of them when it reads, so a
 * flipped bit would be served, or hide a record.
 */

import { ByteReader } from "./byte-reader.ts";
import { crc32c, unmask } from "./crc32c.ts";
import { unsnap } from "./snappy.ts";

const footerBytes = 48;
const trailerBytes = 5;
const magic = Buffer.from("57fb808b247547db", "hex");
const compression = { none: 0, snappy: 1 } as const;

interface Handle {
  readonly offset: number;
  readonly size: number;
}

export function isTableWhole(bytes: Buffer): boolean {
  try {
    const footer = new ByteReader(bytes.subarray(bytes.length - footerBytes));
    const metaIndex = readHandle(footer);
    const index = readHandle(footer);
    if (bytes.length < footerBytes || !bytes.subarray(-magic.length).equals(magic)) return false;
    const inner = [...handlesIn(bytes, metaIndex), ...handlesIn(bytes, index)];
    return inner.every((handle) => isBlockWhole(bytes, handle));
  } catch {
    // Reading runs out of bytes only where they are not what was written.
    return false;
  }
}

function handlesIn(bytes: Buffer, handle: Handle): readonly Handle[] {
  if (!isBlockWhole(bytes, handle)) throw new RangeError("A block differs from its checksum");
  const raw = bytes.subarray(handle.offset, handle.offset + handle.size);
  const block = bytes[handle.offset + handle.size] === compression.snappy ? unsnap(raw) : raw;
  const restarts = new DataView(block.buffer, block.byteOffset, block.byteLength).getUint32(block.length - 4, true);
  const reader = new ByteReader(block.subarray(0, block.length - 4 - restarts * 4));
  const handles: Handle[] = [];
  while (!reader.isAtEnd) {
    reader.varint();
    const keyBytes = reader.varint();
    const valueBytes = reader.varint();
    reader.take(keyBytes);
    handles.push(readHandle(new ByteReader(reader.take(valueBytes))));
  }
  return handles;
}

function isBlockWhole(bytes: Buffer, { offset, size }: Handle): boolean {
  const end = offset + size;
  if (end + trailerBytes > bytes.length) return false;
  return unmask(bytes.readUInt32LE(end + 1)) === crc32c(bytes, offset, end + 1);
}

function readHandle(reader: ByteReader): Handle {
  return { offset: reader.varint(), size: reader.varint() };
}
