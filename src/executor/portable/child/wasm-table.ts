/**
 * Adds an export of the function table to a WebAssembly binary. The engine's build keeps its table private, and a callback
 * can be given to it only through that table.
 */
const exportSection = 7;
const tableKind = 1;

export function exportTable(binary: Uint8Array, name: string): Uint8Array<ArrayBuffer> {
  let at = 8;
  while (at < binary.length) {
    const id = binary[at] as number;
    const size = readNumber(binary, at + 1);
    const end = size.next + size.value;
    if (id === exportSection) {
      const count = readNumber(binary, size.next);
      const encoded = new TextEncoder().encode(name);
      const body = Buffer.concat([
        Buffer.from(writeNumber(count.value + 1)),
        binary.subarray(count.next, end),
        Buffer.from([...writeNumber(encoded.length), ...encoded, tableKind, 0]),
      ]);
      const section = Buffer.from([exportSection, ...writeNumber(body.length)]);
      return new Uint8Array(Buffer.concat([binary.subarray(0, at), section, body, binary.subarray(end)]));
    }
    at = end;
  }
  throw new Error("The engine's binary has no export section");
}

/** LEB128, unsigned. */
function readNumber(bytes: Uint8Array, from: number): { value: number; next: number } {
  let value = 0;
  let at = from;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++] as number;
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return { value, next: at };
  }
}

function writeNumber(value: number): number[] {
  const bytes: number[] = [];
  let left = value;
  do {
    const more = left > 0x7f;
    bytes.push((left & 0x7f) | (more ? 0x80 : 0));
    left = Math.floor(left / 128);
  } while (left > 0);
  return bytes;
}
