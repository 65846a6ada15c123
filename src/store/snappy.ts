/** Unpacks a Snappy block: needed for the index of a table, which says where its other blocks are. Throws on wrong bytes. */
import { ByteReader } from "./byte-reader.ts";

/** Far above any index: a wrong length must not ask for the whole memory. */
const unpackedBytesMax = 64 * 1024 * 1024;

export function unsnap(packed: Uint8Array): Uint8Array {
  const reader = new ByteReader(packed);
  const length = reader.varint();
  if (length > unpackedBytesMax) throw new RangeError("A block is too large");
  const out = new Uint8Array(length);
  let at = 0;
  while (!reader.isAtEnd) {
    const tag = reader.byte();
    if ((tag & 3) === 0) {
      const literal = reader.take(literalLength(tag, reader));
      out.set(literal, at);
      at += literal.length;
    } else {
      at = copyBack(out, at, tag, reader);
    }
  }
  if (at !== length) throw new RangeError("A block has another length than it says");
  return out;
}

function literalLength(tag: number, reader: ByteReader): number {
  const short = tag >>> 2;
  return 1 + (short < 60 ? short : littleEndian(reader, short - 59));
}

/** Copies may overlap what they write: that is how runs are packed. */
function copyBack(out: Uint8Array, at: number, tag: number, reader: ByteReader): number {
  const kind = tag & 3;
  const length = kind === 1 ? 4 + ((tag >>> 2) & 7) : 1 + (tag >>> 2);
  const distance = kind === 1 ? (tag >>> 5) * 256 + reader.byte() : littleEndian(reader, kind === 2 ? 2 : 4);
  if (distance === 0 || distance > at || at + length > out.length)
    throw new RangeError("A copy points outside its block");
  for (let place = at; place < at + length; place += 1) out[place] = out[place - distance]!;
  return at + length;
}

function littleEndian(reader: ByteReader, count: number): number {
  let value = 0;
  for (let place = 0; place < count; place += 1) value += reader.byte() * 256 ** place;
  return value;
}
