/** Text of others on a terminal: nothing in it moves the cursor, sets a title, or turns the line around; and how many columns it takes. */

/** C0, DEL, C1, and what changes the direction of text. */
const controls = /[\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;
const controlsExceptLayout = /(?![\n\t])[\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** One line: every control character is shown as an escape. */
export function harmlessLine(text: string): string {
  return text.toWellFormed().replace(controls, escaped);
}

/** Any number of lines: line feeds and tabs stay. */
export function harmlessText(text: string): string {
  return text.toWellFormed().replace(controlsExceptLayout, escaped);
}

/** JSON that a terminal can show: what JSON itself leaves in is escaped, and it means the same. */
export function harmlessJson(json: string): string {
  return json.replace(controlsExceptLayout, (character) => `\\u${hex(character, 4)}`);
}

const short: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escaped(character: string): string {
  const code = character.charCodeAt(0);
  return short[character] ?? (code < 0x100 ? `\\x${hex(character, 2)}` : `\\u${hex(character, 4)}`);
}

function hex(character: string, digits: number): string {
  return character.charCodeAt(0).toString(16).padStart(digits, "0");
}

const graphemes = new Intl.Segmenter("en");
const wide =
  /^(?:\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}])/u;
const plain = /^\p{ASCII}*$/u;

export function widthOf(text: string): number {
  if (plain.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += widthOfGrapheme(segment);
  return width;
}

/** At most `columns` wide; what was cut off is an ellipsis. */
export function fit(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  let width = 1;
  let kept = "";
  for (const { segment } of graphemes.segment(text)) {
    width += widthOfGrapheme(segment);
    if (width > columns) break;
    kept += segment;
  }
  return `${kept}…`;
}

function widthOfGrapheme(segment: string): number {
  if (wide.test(segment)) return 2;
  return /^\p{M}+$/u.test(segment) ? 0 : 1;
}
