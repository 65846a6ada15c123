/** Nesting of JSON text, without building it. */
export function jsonDepth(json: string): number {
  let depth = 0;
  let deepest = 0;
  let quoted = false;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (quoted) {
      if (code === backslash) at += 1;
      else if (code === quote) quoted = false;
    } else if (code === quote) quoted = true;
    else if (code === openBrace || code === openBracket) {
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if (code === closeBrace || code === closeBracket) depth -= 1;
  }
  return deepest;
}

const quote = 0x22;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;
