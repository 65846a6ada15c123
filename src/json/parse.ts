/**
 * Text or bytes to a JSON value, once, with the rule of `safety.ts` applied. A byte order mark at the start is skipped; bytes
 * that are not UTF-8 are refused, never replaced; of keys that occur twice the last one counts, as in every browser.
 */
import { Failure } from "../errors/failure.ts";
import { jsonDepthMax } from "../limits.ts";
import { requireSafeJson, tooDeep } from "./safety.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * @param what names the text in the error, such as `The body`.
 * @throws Failure invalid_request. The message never repeats any of the text: it may hold secrets.
 */
export function parseJson(source: string | Uint8Array, what = "The body"): unknown {
  const text = withoutMark(typeof source === "string" ? source : decode(source, what));
  if (nestsTooDeep(text)) throw new Failure("invalid_request", tooDeep(what));
  const value = read(text, what);
  requireSafeJson(value, what);
  return value;
}

function decode(bytes: Uint8Array, what: string): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new Failure("invalid_request", `${what} is not valid UTF-8`);
  }
}

function withoutMark(text: string): string {
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}

/** Looked at before parsing, so that a megabyte of brackets costs a few steps and not a tree. */
function nestsTooDeep(text: string): boolean {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (inString) {
      if (unit === 0x5c) at += 1;
      else if (unit === 0x22) inString = false;
    } else if (unit === 0x22) {
      inString = true;
    } else if (unit === 0x5b || unit === 0x7b) {
      depth += 1;
      if (depth > jsonDepthMax) return true;
    } else if (unit === 0x5d || unit === 0x7d) {
      depth -= 1;
    }
  }
  return false;
}

function read(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // The engine's message quotes the text; only the position may leave.
    const position = /at position (\d+)/.exec(error instanceof Error ? error.message : "")?.[1];
    throw new Failure(
      "invalid_request",
      `${what} is not valid JSON${position === undefined ? "" : ` at position ${position}`}`,
    );
  }
}
