/**
 * One child process as the pool sees it: messages in, checked messages out, and exactly one `gone`.
 *
 * `gone` comes after the last message: exit is often seen before the pipe is empty, so it waits for the pipe to close, at most
 * `drainMs`. A message that is not in the protocol kills the child.
 */
import { encodeFrame, FrameError, FrameReader } from "./frames.ts";
import { type Launched, type LaunchOptions, launch } from "./launch.ts";
import { type ChildMessage, frameBytesMax, type HostMessage, toChildMessage } from "./messages.ts";

/** How a child went. */
export interface Departure {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The end of what it wrote to its stderr: the engine and the JavaScript runtime say there why they gave up. */
  readonly lastWords: string;
  /** Why the host ended it, if it did. */
  readonly killedFor: string | undefined;
}

export interface LinkEvents {
  message(message: ChildMessage): void;
  gone(departure: Departure): void;
}

const drainMs = 2_000;
const lastWordsCharactersMax = 4_096;

export class ChildLink {
  readonly #launched: Launched;
  readonly #events: LinkEvents;
  readonly #frames = new FrameReader(frameBytesMax(0));
  #lastWords = "";
  #killedFor: string | undefined;
  #exit: { readonly code: number | null; readonly signal: NodeJS.Signals | null } | undefined;
  #outputClosed = false;
  #gone = false;

  constructor(options: LaunchOptions, events: LinkEvents) {
    this.#events = events;
    this.#launched = launch(options);
    const { process: child, output, errors } = this.#launched;
    child.once("error", (error) => this.#left(error));
    child.once("exit", (code, signal) => {
      this.#exit = { code, signal };
      // The watcher in the child's group goes with the leash.
      this.#launched.leash?.destroy();
      setTimeout(() => this.#finish(), drainMs).unref();
      this.#finishWhenDrained();
    });
    output?.on("data", (chunk: Buffer) => this.#read(chunk));
    output?.once("close", () => {
      this.#outputClosed = true;
      this.#finishWhenDrained();
    });
    errors?.on("data", (chunk: Buffer) => {
      this.#lastWords = (this.#lastWords + chunk.toString("latin1")).slice(-lastWordsCharactersMax);
    });
  }

  /** Undefined when it could not be started. */
  get pid(): number | undefined {
    return this.#launched.process.pid;
  }

  /** Bytes the child has not taken yet: one that computes takes nothing. */
  get bytesWaiting(): number {
    return this.#launched.input.writableLength;
  }

  /** The largest frame the child may send depends on its run. */
  allowOutput(bytes: number): void {
    this.#frames.bytesMax = frameBytesMax(bytes);
  }

  send(message: HostMessage): void {
    if (this.#exit === undefined) this.#launched.input.write(encodeFrame(message));
  }

  /** Asks it to leave: it ends by itself when its input closes. */
  dismiss(): void {
    this.#launched.input.end();
  }

  kill(reason: string): void {
    this.#killedFor ??= reason;
    const { pid } = this.#launched.process;
    // After the exit was seen the number may belong to somebody else.
    if (pid === undefined || this.#exit !== undefined) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      this.#launched.process.kill("SIGKILL");
    }
  }

  #read(chunk: Buffer): void {
    if (this.#gone) return;
    this.#frames.push(chunk);
    try {
      for (let value = this.#frames.next(); value !== undefined; value = this.#frames.next()) {
        const message = toChildMessage(value);
        if (message === undefined) throw new FrameError("A message is not in the protocol");
        this.#events.message(message);
      }
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#launched.output.removeAllListeners("data").resume();
      this.kill(error.message);
    }
  }

  #left(error: Error): void {
    this.#lastWords += error.message;
    this.#exit ??= { code: null, signal: null };
    this.#finish();
  }

  #finishWhenDrained(): void {
    if (this.#exit !== undefined && this.#outputClosed) this.#finish();
  }

  #finish(): void {
    if (this.#gone) return;
    this.#gone = true;
    const { input, output, errors, leash } = this.#launched;
    for (const stream of [input, output, errors, leash]) stream?.destroy();
    const { code, signal } = this.#exit ?? { code: null, signal: null };
    this.#events.gone({ code, signal, lastWords: this.#lastWords, killedFor: this.#killedFor });
  }
}
