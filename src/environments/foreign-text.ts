/**
 * Names and descriptions come from foreign documents and end up in text an agent reads. Here they are made harmless as
 * data: one line, bounded, nothing invisible, and no sequence that could end the comment, code fence, template literal or
 * quote they are placed in.
 */

/** Control characters (line breaks among them), both directions of text override, zero-width and tag characters. */
const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]+/gu;

/**
 * One line of at most `charactersMax` characters (UTF-16 units, the last one "…" when cut) that may stand in a comment, a
 * table cell or a paragraph. Anything but a string gives "".
 */
export function foreignLine(text: unknown, charactersMax: number): string {
  if (typeof text !== "string") return "";
  // Replacing can lengthen the text, so it is cut again after; the first cut only spares work on huge texts.
  const line = text
    .slice(0, charactersMax * 2)
    .toWellFormed()
    .replace(invisible, " ")
    .replace(/\s+/g, " ")
    .replaceAll("`", "'")
    .replaceAll("*/", "* /")
    .replaceAll("${", "$ {")
    .trim();
  return cut(line, charactersMax);
}

/** As `foreignLine`, and also without effect in Markdown: no HTML, image, link or table border. Emphasis is let be. */
export function foreignMarkdown(text: unknown, charactersMax: number): string {
  return foreignLine(text, charactersMax)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replace(/[\\[|]/g, "\\$&");
}

/** The text as a TypeScript string literal that is also inert in a code fence. */
export function stringLiteral(text: string): string {
  return escapedJson(JSON.stringify(text.toWellFormed()));
}

/** JSON text of a value; undefined when it has none or is nested too deep to be written. */
export function foreignJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    // A RangeError (stack) or TypeError (circle): the document's fault, and only ever a missing detail in a text.
    return undefined;
  }
}

/** JSON text made inert in a code fence and a comment: still the same JSON, and valid TypeScript. */
export function escapedJson(json: string): string {
  return json
    .replaceAll("`", "\\u0060")
    .replaceAll("${", "\\u0024{")
    .replaceAll("*/", "*\\u002f")
    .replace(invisible, (characters) => characters.split("").map(unicodeEscape).join(""));
}

/** A property name as it is written in a type or an object literal. */
export function propertyName(name: string): string {
  return isIdentifier(name) ? name : stringLiteral(name);
}

/** ASCII identifiers only: look-alike letters are better read in quotes. */
export function isIdentifier(name: string): boolean {
  return /^[A-Za-z_$][A-Za-z0-9_$]*$/.test(name);
}

function unicodeEscape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function cut(line: string, charactersMax: number): string {
  if (line.length <= charactersMax) return line;
  return `${line.slice(0, charactersMax - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
