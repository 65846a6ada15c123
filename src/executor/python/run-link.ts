/**
 * One run on a fork server: a connection for its frames, and the report of how its process ended.
 *
 * 1. `gone` comes once, after the last message: when the connection is closed and the exit was reported, or when the fork server is
 *    gone.
 * 2. Nothing that the run does can delay `gone`: whoever closes its connection, or ends without leaving, is killed; a fork server
 *    that does not report a kill within `stopGraceMs` is ended itself.
 * 3. The host reads at most `runFramesPerSecondMax` messages a second.
 */
import type { Socket } from "node:net";
import { executorStopSoftMs, runFramesPerSecondMax, stopGraceMs } from "../../limits.ts";
import type { Clock } from "../../ports/clock.ts";
import { encodeFrame, FrameError, FrameReader } from "../portable/frames.ts";
import { type ChildMessage, frameBytesMax, toChildMessage } from "../portable/messages.ts";
import type { RunExit, Zygote } from "./zygote.ts";

export interface RunLinkEvents {
  message(message: ChildMessage): void;
  gone(exit: RunExit, killedFor: string | undefined): void;
}

interface RunLinkOptions {
  readonly zygote: Zygote;
  /** Unique within the fork server. */
  readonly number: number;
  readonly request: unknown;
  readonly outputBytes: number;
  readonly clock: Clock;
}

const numberBytes = 8;
const windowMs = 1_000;
const neverWas: RunExit = { code: null, signal: null, cpuMs: 0 };

export class RunLink {
  readonly #options: RunLinkOptions;
  readonly #events: RunLinkEvents;
  readonly #socket: Socket;
  readonly #frames: FrameReader;
  #connected = false;
  #closed = false;
  #exit: RunExit | undefined;
  #killedFor: string | undefined;
  #settled = false;
  #broken = false;
  #gone = false;
  #windowFrames = 0;
  #windowStart = 0;
  #cancelTimer = (): void => undefined;
  #cancelPause = (): void => undefined;

  constructor(options: RunLinkOptions, events: RunLinkEvents) {
    this.#options = options;
    this.#events = events;
    this.#frames = new FrameReader(frameBytesMax(options.outputBytes));
    this.#socket = options.zygote.connect();
    this.#socket.on("error", () => undefined);
    this.#socket.once("connect", () => {
      this.#connected = true;
    });
    this.#socket.on("data", (chunk: Buffer) => this.#read(chunk));
    this.#socket.once("close", () => this.#disconnected());
    const number = Buffer.alloc(numberBytes);
    number.writeBigUInt64BE(BigInt(options.number));
    this.#socket.write(Buffer.concat([number, encodeFrame(options.request)]));
  }

  get number(): number {
    return this.#options.number;
  }

  /** Whether the fork server ever took the connection: one that does not is as good as gone. */
  get isConnected(): boolean {
    return this.#connected;
  }

  /** Bytes the run has not taken yet: one that computes takes nothing. */
  get bytesWaiting(): number {
    return this.#socket.writableLength;
  }

  send(message: unknown): void {
    // A write that fails would take with it what is still to be read.
    if (!this.#closed && !this.#settled && this.#killedFor === undefined) this.#socket.write(encodeFrame(message));
  }

  /** Its run is over: it has to leave by itself, soon. It waits for this end of the connection, so that nothing is lost. */
  settle(): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#socket.end();
    this.#cancelTimer();
    this.#cancelTimer = this.#options.clock.after(executorStopSoftMs, () => this.kill("it did not leave"));
  }

  kill(reason: string): void {
    if (this.#gone || this.#killedFor !== undefined) return;
    this.#killedFor = reason;
    this.#cancelPause();
    // What it sent before is still read, also when it was being slowed down.
    this.#readFrames();
    this.#socket.resume();
    if (this.#exit !== undefined) return;
    this.#options.zygote.killRun(this.number);
    this.#cancelTimer();
    this.#cancelTimer = this.#options.clock.after(stopGraceMs, () =>
      this.#options.zygote.kill("a run could not be ended"),
    );
  }

  /** The fork server reports the end of the process. */
  exited(exit: RunExit): void {
    this.#exit = exit;
    this.#finishWhenDrained();
  }

  /** The fork server is gone, and with it the run. */
  lost(): void {
    this.#exit ??= neverWas;
    this.#socket.destroy();
    this.#finish();
  }

  #read(chunk: Buffer): void {
    if (this.#gone) return;
    this.#frames.push(chunk);
    this.#readFrames();
  }

  #readFrames(): void {
    try {
      while (!this.#gone && !this.#broken && this.#mayRead()) {
        const value = this.#frames.next();
        if (value === undefined) return;
        this.#windowFrames += 1;
        const message = toChildMessage(value);
        if (message === undefined) throw new FrameError("A message is not in the protocol");
        this.#events.message(message);
      }
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#broken = true;
      this.#socket.removeAllListeners("data").resume();
      this.kill(error.message);
    }
  }

  #mayRead(): boolean {
    if (this.#killedFor !== undefined) return true;
    const now = this.#options.clock.monotonic();
    if (now - this.#windowStart >= windowMs) {
      this.#windowStart = now;
      this.#windowFrames = 0;
    }
    if (this.#windowFrames < runFramesPerSecondMax) return true;
    this.#socket.pause();
    this.#cancelPause();
    this.#cancelPause = this.#options.clock.after(this.#windowStart + windowMs - now, () => {
      this.#socket.resume();
      this.#readFrames();
      this.#finishWhenDrained();
    });
    return false;
  }

  #disconnected(): void {
    this.#closed = true;
    if (!this.#connected) this.#exit ??= neverWas;
    this.#finishWhenDrained();
    if (!this.#gone && this.#exit === undefined && this.#killedFor === undefined) this.settle();
  }

  #finishWhenDrained(): void {
    if (this.#exit !== undefined && this.#closed) this.#finish();
  }

  #finish(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#cancelTimer();
    this.#cancelPause();
    this.#socket.destroy();
    this.#events.gone(this.#exit ?? neverWas, this.#killedFor);
  }
}
