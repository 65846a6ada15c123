/**
 * A text that must not be shown. Printed, logged, serialised or put into a message it is a mask; only `reveal` gives it, and
 * that word is what to look for in a review.
 */
import { inspect } from "node:util";

export const secretMask = "********";

export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return secretMask;
  }

  toJSON(): string {
    return secretMask;
  }

  [Symbol.toPrimitive](): string {
    return secretMask;
  }

  [inspect.custom](): string {
    return secretMask;
  }
}
