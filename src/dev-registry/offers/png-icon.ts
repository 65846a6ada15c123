/** A square of one colour as PNG; the colour is the name's own, so entries can be told apart in a list. */
import { createHash } from "node:crypto";
import { crc32, deflateSync } from "node:zlib";

const sidePixels = 32;
const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

export function pngIcon(name: string): Buffer {
  const colour = createHash("sha256").update(name).digest().subarray(0, 3);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(sidePixels, 0);
  header.writeUInt32BE(sidePixels, 4);
  // Eight bits a channel, red green blue; compression, filter and interlace have one usual value each, 0.
  header.set([8, 2], 8);
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(sidePixels * 3, colour)]);
  const pixels = deflateSync(Buffer.concat(Array.from({ length: sidePixels }, () => row)));
  return Buffer.concat([signature, chunk("IHDR", header), chunk("IDAT", pixels), chunk("IEND", Buffer.alloc(0))]);
}

/** Length of the data, name, data, checksum of name and data. */
function chunk(name: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const numbers = Buffer.alloc(8);
  numbers.writeUInt32BE(data.length, 0);
  numbers.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([numbers.subarray(0, 4), body, numbers.subarray(4)]);
}
