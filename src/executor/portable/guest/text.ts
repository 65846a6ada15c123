/** TextEncoder, TextDecoder (UTF-8 only), atob and btoa. Runs inside QuickJS: see bridge.ts. */
export function installText(): Record<string, unknown> {
  const encode = (source: string): Uint8Array => {
    const text = source.toWellFormed();
    const bytes = new Uint8Array(text.length * 3);
    let at = 0;
    for (let index = 0; index < text.length; index += 1) {
      let point = text.charCodeAt(index);
      if (point >= 0xd800 && point <= 0xdbff) {
        index += 1;
        point = 0x10000 + ((point - 0xd800) << 10) + (text.charCodeAt(index) - 0xdc00);
      }
      if (point < 0x80) bytes[at++] = point;
      else if (point < 0x800) {
        bytes[at++] = 0xc0 | (point >> 6);
        bytes[at++] = 0x80 | (point & 63);
      } else if (point < 0x10000) {
        bytes[at++] = 0xe0 | (point >> 12);
        bytes[at++] = 0x80 | ((point >> 6) & 63);
        bytes[at++] = 0x80 | (point & 63);
      } else {
        bytes[at++] = 0xf0 | (point >> 18);
        bytes[at++] = 0x80 | ((point >> 12) & 63);
        bytes[at++] = 0x80 | ((point >> 6) & 63);
        bytes[at++] = 0x80 | (point & 63);
      }
    }
    return bytes.slice(0, at);
  };

  class TextEncoder {
    get encoding(): string {
      return "utf-8";
    }
    encode(text: unknown = ""): Uint8Array {
      return encode(String(text));
    }
    encodeInto(text: string, target: Uint8Array): { read: number; written: number } {
      let read = 0;
      let written = 0;
      for (const character of text) {
        const bytes = encode(character);
        if (written + bytes.length > target.length) break;
        target.set(bytes, written);
        written += bytes.length;
        read += character.length;
      }
      return { read, written };
    }
  }

  const toBytes = (source: ArrayBufferView | ArrayBuffer): Uint8Array => {
    if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
    if (source instanceof ArrayBuffer) return new Uint8Array(source);
    throw new TypeError("TextDecoder.decode takes an ArrayBuffer or a view of one");
  };

  class TextDecoder {
    readonly encoding = "utf-8";
    readonly fatal: boolean;
    readonly ignoreBOM: boolean;
    /** A started character: what it is so far, how many bytes are due, and the range of the next. */
    #point = 0;
    #due = 0;
    #low = 0x80;
    #high = 0xbf;
    #started = false;

    constructor(label: unknown = "utf-8", options: { fatal?: boolean; ignoreBOM?: boolean } = {}) {
      const name = String(label).trim().toLowerCase();
      if (!["utf-8", "utf8", "unicode-1-1-utf-8"].includes(name)) {
        throw new RangeError(`Cannot decode "${name}": only utf-8 is known`);
      }
      this.fatal = Boolean(options.fatal);
      this.ignoreBOM = Boolean(options.ignoreBOM);
    }

    decode(source?: ArrayBufferView | ArrayBuffer, options: { stream?: boolean } = {}): string {
      const bytes = source === undefined ? new Uint8Array(0) : toBytes(source);
      const pieces: string[] = [];
      let piece: number[] = [];
      const push = (point: number): void => {
        if (!this.#started) {
          this.#started = true;
          if (point === 0xfeff && !this.ignoreBOM) return;
        }
        piece.push(point);
        if (piece.length < 4096) return;
        pieces.push(String.fromCodePoint(...piece));
        piece = [];
      };
      const broken = (): void => {
        this.#reset();
        if (this.fatal) throw new TypeError("The bytes are not valid UTF-8");
        push(0xfffd);
      };
      for (let index = 0; index < bytes.length; index += 1) {
        const byte = bytes[index] as number;
        if (this.#due > 0) {
          if (byte < this.#low || byte > this.#high) {
            broken();
            index -= 1;
            continue;
          }
          this.#low = 0x80;
          this.#high = 0xbf;
          this.#point = (this.#point << 6) | (byte & 63);
          this.#due -= 1;
          if (this.#due === 0) push(this.#point);
        } else if (byte < 0x80) push(byte);
        else if (byte >= 0xc2 && byte <= 0xdf) this.#start(byte & 31, 1, 0x80, 0xbf);
        else if (byte >= 0xe0 && byte <= 0xef) {
          this.#start(byte & 15, 2, byte === 0xe0 ? 0xa0 : 0x80, byte === 0xed ? 0x9f : 0xbf);
        } else if (byte >= 0xf0 && byte <= 0xf4) {
          this.#start(byte & 7, 3, byte === 0xf0 ? 0x90 : 0x80, byte === 0xf4 ? 0x8f : 0xbf);
        } else broken();
      }
      if (!options.stream) {
        if (this.#due > 0) broken();
        this.#started = false;
      }
      return pieces.join("") + String.fromCodePoint(...piece);
    }

    #start(point: number, due: number, low: number, high: number): void {
      this.#point = point;
      this.#due = due;
      this.#low = low;
      this.#high = high;
    }

    #reset(): void {
      this.#due = 0;
      this.#low = 0x80;
      this.#high = 0xbf;
    }
  }

  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const wrongCharacter = (what: string): Error => {
    const Wrong = (globalThis as unknown as { DOMException: new (message: string, name: string) => Error })
      .DOMException;
    return new Wrong(what, "InvalidCharacterError");
  };

  const btoa = (source: unknown): string => {
    const text = String(source);
    const pieces: string[] = [];
    for (let index = 0; index < text.length; index += 3) {
      const codes = [text.charCodeAt(index), text.charCodeAt(index + 1), text.charCodeAt(index + 2)];
      if (codes.some((code) => code > 255)) throw wrongCharacter("btoa takes characters up to U+00FF only");
      const bits = ((codes[0] as number) << 16) | ((codes[1] as number) << 8) | (codes[2] as number);
      const left = text.length - index;
      pieces.push(
        (alphabet[bits >> 18] as string) +
          alphabet[(bits >> 12) & 63] +
          (left > 1 ? alphabet[(bits >> 6) & 63] : "=") +
          (left > 2 ? alphabet[bits & 63] : "="),
      );
    }
    return pieces.join("");
  };

  const atob = (source: unknown): string => {
    let text = String(source).replace(/[\t\n\f\r ]/g, "");
    if (text.length % 4 === 0) text = text.replace(/==?$/, "");
    if (text.length % 4 === 1 || /[^A-Za-z0-9+/]/.test(text)) throw wrongCharacter("The text is not base64");
    const pieces: string[] = [];
    let bits = 0;
    let count = 0;
    for (const character of text) {
      bits = ((bits << 6) | alphabet.indexOf(character)) & 0xffffff;
      count += 6;
      if (count < 8) continue;
      count -= 8;
      pieces.push(String.fromCharCode((bits >> count) & 255));
    }
    return pieces.join("");
  };

  return { TextEncoder, TextDecoder, atob, btoa };
}
