/**
 * A target's answer headers without the credentials that were sent to it. A redirect commonly repeats the query it was asked with,
 * and the key in that query with it; whoever may call a tool need not know the operator's key.
 */

/** Shorter ones would match by accident, and are no secrets. */
const charactersMin = 4;
const mask = "***";

export function withoutCredentials(
  headers: Readonly<Record<string, string>>,
  secrets: Readonly<Record<string, unknown>>,
): Record<string, string> {
  const spellings = [...new Set(Object.values(secrets).flatMap(secretTexts).flatMap(spellingsOf))]
    .filter((spelling) => spelling.length >= charactersMin)
    // The longest first: one spelling may begin with another.
    .sort((a, b) => b.length - a.length);
  if (spellings.length === 0) return headers;
  // Percent escapes are spelled in either case.
  const pattern = new RegExp(spellings.map(escaped).join("|"), "gi");
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.replace(pattern, mask)]));
}

/** A user name is no secret; it is one together with its password, as basic sends them. */
function secretTexts(secret: unknown): readonly string[] {
  if (typeof secret === "string") return [secret];
  if (typeof secret !== "object" || secret === null) return [];
  const { username, password } = secret as { username?: unknown; password?: unknown };
  return typeof password === "string" ? [password, `${username}:${password}`] : [];
}

function spellingsOf(text: string): readonly string[] {
  const wellFormed = text.toWellFormed();
  const base64 = Buffer.from(text).toString("base64");
  const inQuery = new URL("http://x");
  inQuery.search = wellFormed;
  const once = encodeURIComponent(wellFormed);
  // As queries are written by those who escape whatever they may.
  const strict = once.replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
  return [
    text,
    // As header values arrive: bytes beyond ASCII one by one.
    Buffer.from(text).toString("latin1"),
    once,
    encodeURIComponent(once),
    strict,
    encodeURIComponent(strict),
    encodeURI(wellFormed),
    new URLSearchParams({ k: wellFormed }).toString().slice(2),
    inQuery.search.slice(1),
    base64,
    base64.replace(/=+$/, ""),
    Buffer.from(text).toString("base64url"),
    encodeURIComponent(base64),
  ];
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}
