/**
 * Looks for secrets in what a server said and left behind, in the spellings in which secrets slip through: as they are, escaped,
 * encoded at any alignment, as UTF-16. Each canary holds a random core without characters that any spelling would change, so a
 * quotation of a part is found as well.
 */
import { randomBytes } from "node:crypto";
import { inspect } from "node:util";

export interface Canary {
  readonly name: string;
  readonly text: string;
}

export interface Place {
  readonly name: string;
  readonly bytes: Buffer;
}

/** `rest`: characters that escapes change. */
export function canary(name: string, rest = ""): Canary {
  return { name, text: `${rest}cnr${randomBytes(12).toString("hex")}${rest}` };
}

/** Name of the spelling to the bytes to look for. */
export function spellings(secret: string | Buffer): Map<string, Buffer> {
  const bytes = Buffer.from(secret as string);
  const found = new Map<string, Buffer>([
    ["plain", bytes],
    ["hex", Buffer.from(bytes.toString("hex"))],
    ["HEX", Buffer.from(bytes.toString("hex").toUpperCase())],
    ["percent-encoded throughout", Buffer.from(bytes.toString("hex").replaceAll(/../g, "%$&"))],
  ]);
  for (const alignment of [0, 1, 2]) {
    const encoded = Buffer.concat([Buffer.alloc(alignment), bytes])
      .toString("base64")
      .replace(/=+$/, "");
    // Characters at the ends also depend on the neighbours.
    const own = encoded.slice(Math.ceil((alignment * 8) / 6), Math.floor(((alignment + bytes.length) * 8) / 6));
    found.set(`base64 at ${alignment}`, Buffer.from(own));
    found.set(`base64url at ${alignment}`, Buffer.from(own.replaceAll("+", "-").replaceAll("/", "_")));
  }
  if (typeof secret !== "string") return found;
  const json = JSON.stringify(secret).slice(1, -1);
  const texts: Record<string, string> = {
    "JSON-escaped": json,
    "JSON-escaped twice": JSON.stringify(json).slice(1, -1),
    "JSON with \\u": [...secret].map((each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`).join(""),
    inspected: inspect(secret).slice(1, -1),
    "percent-encoded": encodeURIComponent(secret),
    "percent-encoded, small letters": encodeURIComponent(secret).replaceAll(/%../g, (code) => code.toLowerCase()),
    "in a URL": encodeURI(secret),
    "form-encoded": new URLSearchParams({ "": secret }).toString().slice(1),
    "small letters": secret.toLowerCase(),
  };
  for (const [name, text] of Object.entries(texts)) found.set(name, Buffer.from(text));
  const little = Buffer.from(secret, "utf16le");
  found.set("UTF-16LE", little);
  found.set("UTF-16BE", Buffer.from(little).swap16());
  return found;
}

/** A line for each hit: what, in which spelling, where, and the text before it. */
export function search(places: readonly Place[], canaries: readonly Canary[]): string[] {
  const needles = canaries.flatMap(({ name, text }) =>
    [text, ...(/cnr[0-9a-f]{24}/.exec(text) ?? [])].flatMap((secret) =>
      [...spellings(secret)].map(([spelling, bytes]) => ({ name, spelling, bytes })),
    ),
  );
  const hits = new Set<string>();
  for (const place of places) {
    for (const { name, spelling, bytes } of needles) {
      const at = place.bytes.indexOf(bytes);
      if (at < 0) continue;
      const before = place.bytes.subarray(Math.max(0, at - 120), at).toString("latin1");
      hits.add(`${name}, ${spelling}, in ${place.name}, after ${JSON.stringify(before)}`);
    }
  }
  return [...hits];
}
