/**
 * RFC 6901 JSON Pointers, strictly: `""` is the whole document, `"/"` is the key `""`, `~0` is `~`, `~1` is `/`, and any
 * other use of `~` or a missing first slash makes the text no pointer at all.
 */

/** The tokens, unescaped; undefined when the text is not a JSON Pointer. */
export function parsePointer(text: string): readonly string[] | undefined {
  if (text === "") return [];
  if (!text.startsWith("/") || /~(?![01])/.test(text)) return undefined;
  return text.slice(1).split("/").map(unescapeToken);
}

export function formatPointer(tokens: readonly string[]): string {
  return tokens.map((token) => `/${escapeToken(token)}`).join("");
}

/**
 * RFC 6901 section 4: `0`, or digits without a leading zero. Undefined for everything else, also for `-`, which names the
 * place after the last element.
 */
export function arrayIndex(token: string): number | undefined {
  if (!/^(?:0|[1-9][0-9]*)$/.test(token)) return undefined;
  const index = Number(token);
  return Number.isSafeInteger(index) ? index : undefined;
}

function escapeToken(token: string): string {
  return token.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** `~1` before `~0`, or `~01` would become `/` instead of `~1`. */
function unescapeToken(token: string): string {
  return token.replaceAll("~1", "/").replaceAll("~0", "~");
}
