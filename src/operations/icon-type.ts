/**
 * What an icon is, by its bytes: neither the name of a file nor the type a registry gives it can be trusted. SVG has no magic
 * number, so it is text whose first element is `svg`, behind what XML allows in front of it.
 */
export const iconMediaTypes = ["image/png", "image/webp", "image/svg+xml"] as const;

export type IconMediaType = (typeof iconMediaTypes)[number];

export function iconMediaType(bytes: Uint8Array): IconMediaType | undefined {
  if (hasAt(bytes, 0, pngSignature)) return "image/png";
  if (hasAt(bytes, 0, riff) && hasAt(bytes, webpOffset, webp)) return "image/webp";
  return isSvg(bytes) ? "image/svg+xml" : undefined;
}

const pngSignature = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
/** A RIFF file: "RIFF", four bytes of length, then the kind of content. */
const riff = [0x52, 0x49, 0x46, 0x46];
const webpOffset = 8;
const webp = [0x57, 0x45, 0x42, 0x50];

function hasAt(bytes: Uint8Array, offset: number, wanted: readonly number[]): boolean {
  return wanted.every((byte, at) => bytes[offset + at] === byte);
}

function isSvg(bytes: Uint8Array): boolean {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return false;
  }
  const root = rootAt(text);
  return /^<svg[\s/>]/.test(text.slice(root, root + "<svg ".length));
}

/** What may stand before the root element, each with its end. A document type must not bring declarations of its own (`[`). */
const before = [
  { start: "<?", end: "?>" },
  { start: "<!--", end: "-->" },
  { start: "<!DOCTYPE svg", end: ">" },
] as const;

/** Where the first element starts; the end of the text when there is none. Each step goes forward, so it takes linear time. */
function rootAt(text: string): number {
  let at = 0;
  for (;;) {
    while (/\s/.test(text.charAt(at))) at++;
    const piece = before.find(({ start }) => text.startsWith(start, at));
    if (piece === undefined) return at;
    const end = text.indexOf(piece.end, at + piece.start.length);
    if (end === -1) return text.length;
    if (piece.end === ">" && text.slice(at, end).includes("[")) return text.length;
    at = end + piece.end.length;
  }
}
