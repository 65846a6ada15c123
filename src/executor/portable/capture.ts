/**
 * What a run has given so far, bounded. The child counts in order to stop the program politely, the host counts again because
 * it does not believe the child; both with these two classes.
 */
export class TextCapture {
  readonly bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** The part that still fits, cut between characters; `full` when something had to go. */
  take(text: string): { readonly text: string; readonly full: boolean } {
    const whole = text.toWellFormed();
    const bytes = Buffer.byteLength(whole);
    if (this.#bytes + bytes <= this.bytesMax) {
      this.#bytes += bytes;
      return { text: whole, full: false };
    }
    const kept = cut(whole, this.bytesMax - this.#bytes);
    this.#bytes = this.bytesMax;
    return { text: kept, full: true };
  }
}

function cut(text: string, bytesMax: number): string {
  const bytes = Buffer.from(text);
  let end = bytesMax;
  while (end > 0 && isContinuation(bytes[end] ?? 0)) end -= 1;
  return bytes.toString("utf8", 0, end);
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

export type OutputEntries = readonly (readonly [key: string, json: string])[];

export class OutputCapture {
  readonly bytesMax: number;
  readonly #entries = new Map<string, { readonly json: string; readonly bytes: number }>();
  #bytes = 2;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** Later keys win. False when the whole would be over the limit: then nothing of these entries is taken. */
  merge(entries: OutputEntries): boolean {
    let bytes = this.#bytes;
    const fresh = new Map<string, { json: string; bytes: number }>();
    for (const [key, json] of entries) {
      const entry = { json, bytes: Buffer.byteLength(JSON.stringify(key)) + Buffer.byteLength(json) + 2 };
      const replaced = fresh.get(key) ?? this.#entries.get(key);
      bytes += entry.bytes - (replaced?.bytes ?? 0);
      fresh.set(key, entry);
    }
    if (bytes > this.bytesMax) return false;
    for (const [key, entry] of fresh) this.#entries.set(key, entry);
    this.#bytes = bytes;
    return true;
  }

  /** JSON text of an object, whatever the entries hold: an entry that is no JSON (a lying child) makes it `{}`. */
  toJson(): string {
    const pairs = [...this.#entries].map(([key, entry]) => `${JSON.stringify(key)}:${entry.json}`);
    const text = wellFormed(`{${pairs.join(",")}}`);
    return isObject(text) ? text : "{}";
  }
}

/** JSON escapes lone surrogates as `\udXXX`; neither UTF-8 nor protobuf can hold them, so they become U+FFFD. */
function wellFormed(json: string): string {
  const text = json.toWellFormed();
  if (!/\\ud/i.test(text)) return text;
  return text.replace(
    /\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|\\(?:u(d[89a-f][0-9a-f]{2})|.)/gis,
    (found, high, _low, lone) => (high === undefined && lone !== undefined ? "\ufffd" : found),
  );
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
