/** What the module process says to its host. */
import type { Socket } from "node:net";
import type { ChildMessage } from "../protocol.ts";
import { encodeFrame, type FrameBounds, noBounds } from "./frames.ts";

export class Outbox {
  readonly #socket: Socket;
  /** The host's, from its first message on. */
  bounds: FrameBounds = noBounds;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Throws when the message cannot be written as JSON, or only beyond the bounds. */
  send(message: ChildMessage): void {
    this.#socket.write(encodeFrame(message, this.bounds));
  }
}

/** Kept of an error's message; the host cuts again. */
const messageCharactersMax = 4_096;

/** Message and code of whatever was thrown: a thrown value may be anything, and reading it may throw again. */
export function describeThrown(thrown: unknown): { readonly message: string; readonly code?: string } {
  try {
    const { message, code } = thrown as { message?: unknown; code?: unknown };
    const said = typeof message === "string" && message !== "" ? message : String(thrown);
    return {
      message: said.slice(0, messageCharactersMax),
      ...(typeof code === "string" && { code: code.slice(0, 64) }),
    };
  } catch {
    return { message: "an error that cannot be read" };
  }
}
