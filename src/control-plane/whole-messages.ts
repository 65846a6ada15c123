/**
 * The body of a request, handed on in whole messages. Connect looks at all that it has of a message again with each piece of it, so that one
 * sent in tiny frames would keep the server busy for minutes, by whoever reaches the port.
 *
 * What is too long, by its own words or by what has come of it, is handed on as it comes: refusing it is left to Connect.
 */
import { GrowingBuffer } from "./growing-buffer.ts";

/** Flag and length before a message in a stream of them. */
export const prefixBytes = 5;

export interface WholeMessagesOptions {
  /** Messages with a prefix each, as in gRPC and in Connect's streams; else the body is one message. */
  readonly isEnveloped: boolean;
  readonly messageBytesMax: number;
}

export function wholeMessages(
  body: AsyncIterable<Uint8Array>,
  options: WholeMessagesOptions,
): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      const source = body[Symbol.asyncIterator]();
      const gathered = options.isEnveloped ? new Enveloped(options) : new Whole(options);
      let isOver = false;
      return {
        async next() {
          for (;;) {
            if (isOver) return { done: true, value: undefined };
            const { done, value } = await source.next();
            isOver = done === true;
            const ready = done === true ? gathered.rest() : gathered.add(value);
            if (ready.length > 0) return { done: false, value: ready };
          }
        },
        // Not of a generator: that would wait for a piece that may never come.
        async return() {
          await source.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

const nothing = Buffer.alloc(0);

/** Until its end the message is of no use. */
class Whole {
  readonly #max: number;
  readonly #held = new GrowingBuffer();
  #isTooLong = false;

  constructor({ messageBytesMax }: WholeMessagesOptions) {
    this.#max = messageBytesMax;
  }

  /** What can be handed on now. */
  add(chunk: Uint8Array): Uint8Array {
    if (this.#isTooLong) return chunk;
    this.#held.add(chunk);
    this.#isTooLong = this.#held.length > this.#max;
    return this.#isTooLong ? this.#held.take() : nothing;
  }

  rest(): Uint8Array {
    return this.#held.take();
  }
}

class Enveloped {
  readonly #max: number;
  readonly #held = new GrowingBuffer();
  /** Bytes of whole messages at the front of what is held. */
  #whole = 0;
  #isTooLong = false;

  constructor({ messageBytesMax }: WholeMessagesOptions) {
    this.#max = messageBytesMax;
  }

  add(chunk: Uint8Array): Uint8Array {
    if (this.#isTooLong) return chunk;
    this.#held.add(chunk);
    this.#look();
    if (this.#isTooLong) return this.#held.take();
    if (this.#whole === 0) return nothing;
    const all = this.#held.take();
    const ready = all.subarray(0, this.#whole);
    if (this.#whole < all.length) this.#held.add(all.subarray(this.#whole));
    this.#whole = 0;
    return ready;
  }

  rest(): Uint8Array {
    return this.#held.take();
  }

  #look(): void {
    const { bytes } = this.#held;
    while (bytes.length - this.#whole >= prefixBytes) {
      const length = bytes.readUInt32BE(this.#whole + 1);
      if (length > this.#max) this.#isTooLong = true;
      const end = this.#whole + prefixBytes + length;
      if (this.#isTooLong || end > bytes.length) return;
      this.#whole = end;
    }
  }
}
