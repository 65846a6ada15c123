/** Takes the secrets that a module was given out of what it says: its errors are shown to callers, its lines to operators. */

/** Shorter ones would match by accident, and are no secrets. */
const charactersMin = 4;
const mask = "***";

export type Mask = (text: string) => string;

/** The secrets of a module and of all services that it was told about: any of its errors or lines may hold any of them. */
export class Masks {
  readonly #masks = new Set<Mask>();

  add(secrets: Readonly<Record<string, unknown>>): { remove(): void } {
    const mask = maskOf(secrets);
    if (mask === undefined) return { remove: () => undefined };
    this.#masks.add(mask);
    return { remove: () => this.#masks.delete(mask) };
  }

  readonly apply: Mask = (text) => {
    let masked = text;
    for (const mask of this.#masks) masked = mask(masked);
    return masked;
  };
}

function maskOf(secrets: Readonly<Record<string, unknown>>): Mask | undefined {
  const spellings = [...new Set(textsIn(secrets).flatMap(spellingsOf))]
    .filter(({ length }) => length >= charactersMin)
    // The longest first: one may begin with another.
    .sort((a, b) => b.length - a.length);
  if (spellings.length === 0) return undefined;
  const pattern = new RegExp(spellings.map(escaped).join("|"), "g");
  return (text) => text.replace(pattern, mask);
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}

function spellingsOf(text: string): readonly string[] {
  const base64 = Buffer.from(text).toString("base64");
  return [
    text,
    encodeURIComponent(text.toWellFormed()),
    base64,
    base64.replace(/=+$/, ""),
    JSON.stringify(text).slice(1, -1),
  ];
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}
