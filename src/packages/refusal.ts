/** How this folder says no: archives are foreign, so whatever is quoted of them is cut and made harmless for logs and terminals. */
import { Failure } from "../errors/failure.ts";
import { foreignQuoteCharactersMax } from "../limits.ts";

/** The package is at fault; trying again with the same bytes will not help. */
export function refuse(message: string, cause?: unknown): never {
  throw new Failure("invalid_request", message, { cause });
}

export function refuseSize(message: string): never {
  throw new Failure("too_large", message);
}

/** Characters that a terminal obeys or that turn the direction of text, apart from those below space. */
const misleading = /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** In quotes, with everything escaped that is not meant to be seen, and lone surrogates. */
export function quoted(text: string): string {
  const cut = text.length > foreignQuoteCharactersMax ? `${text.slice(0, foreignQuoteCharactersMax)}…` : text;
  // JSON itself escapes only what is below space.
  return JSON.stringify(cut).replace(misleading, escaped);
}

export function isPlain(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    if (text.charCodeAt(at) < 0x20) return false;
  }
  return text.search(misleading) < 0;
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
