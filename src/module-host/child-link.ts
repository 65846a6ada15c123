/**
 * One module process as the host sees it: messages in, checked messages out, and exactly one `gone`, which comes after the last message.
 * A message that is not in the protocol ends the process.
 */
import { constants } from "node:os";
import {
  moduleFrameBytesPerSecondMax,
  moduleFramesPerSecondMax,
  moduleLeaveMs,
  moduleMemoryMb,
  moduleMemorySlackMb,
  modulePrintedBytesPerSecondMax,
} from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { StartPlan } from "./isolation.ts";
import { type Launched, launch } from "./launch.ts";
import { residentMb } from "./memory-fence.ts";
import { Pace, readPaced } from "./pace.ts";
import { LineSplitter } from "./printed-lines.ts";
import { type ChildMessage, childFrameBounds, type HostMessage, toChildMessage } from "./protocol.ts";
import { encodeFrame, FrameError, FrameReader } from "./runner/frames.ts";

export interface LinkEvents {
  message(message: ChildMessage): void;
  printed(line: string): void;
  /** Why it is gone, as the rest of a sentence: "ran out of memory". */
  gone(reason: string): void;
}

export interface LinkOptions {
  readonly plan: StartPlan;
  /** KiB for `ulimit -d`; undefined: poll resident memory. */
  readonly dataKbMax: number | undefined;
  /** Written before all messages. */
  readonly firstFrame: Buffer | undefined;
  readonly clock: Clock;
}

/** Exit is often seen before the pipes are empty; something may also keep them open. */
const drainMs = 500;
const lastWordsCharactersMax = 8_192;
const memoryPollMs = 250;

export class ChildLink {
  readonly #launched: Launched;
  readonly #events: LinkEvents;
  readonly #clock: Clock;
  readonly #frames = new FrameReader(childFrameBounds);
  readonly #framePace: Pace;
  /** Timers, and streams to be read to their end. */
  readonly #atExit: (() => void)[] = [];
  #lastWords = "";
  #killedFor: string | undefined;
  #exited = false;
  #gone = false;
  #waitingForPace = false;

  constructor({ plan, dataKbMax, firstFrame, clock }: LinkOptions, events: LinkEvents) {
    this.#events = events;
    this.#clock = clock;
    this.#framePace = new Pace(clock, moduleFramesPerSecondMax);
    this.#launched = launch(plan, dataKbMax);
    const { process: child, socket, stdout, stderr } = this.#launched;
    if (firstFrame !== undefined) socket.write(firstFrame);
    this.#readSocket(socket);
    this.#readPrinted(stdout, () => undefined);
    this.#readPrinted(stderr, (chunk) => {
      this.#lastWords = (this.#lastWords + chunk.toString("latin1")).slice(-lastWordsCharactersMax);
    });
    child.once("error", (error) => this.#finish(`cannot be started: ${error.message}`));
    child.once("exit", (code, signal) => this.#left(code, signal));
    if (dataKbMax === undefined) this.#pollMemory();
  }

  get pid(): number | null {
    return this.#launched.process.pid ?? null;
  }

  /** It has ended or is being ended: nothing sent from now on is answered. */
  get isEnding(): boolean {
    return this.#killedFor !== undefined || this.#exited;
  }

  /** Bytes the process has not taken yet. */
  get bytesWaiting(): number {
    return this.#launched.socket.writableLength;
  }

  send(message: HostMessage): void {
    if (!this.#exited && !this.#gone) this.#launched.socket.write(encodeFrame(message));
  }

  /** Asks it to leave: it ends by itself when its socket closes. */
  dismiss(): void {
    this.#killedFor ??= "was told to leave";
    this.#launched.socket.end();
    this.#atExit.push(this.#clock.after(moduleLeaveMs, () => this.kill("was told to leave")));
  }

  kill(reason: string): void {
    this.#killedFor ??= reason;
    const { process: child } = this.#launched;
    // After the exit was seen the number may belong to somebody else.
    if (child.pid === undefined || this.#exited) return;
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      child.kill("SIGKILL");
    }
  }

  #readSocket(socket: Launched["socket"]): void {
    const pace = new Pace(this.#clock, moduleFrameBytesPerSecondMax);
    this.#atExit.push(
      readPaced(socket, pace, this.#clock, (chunk) => {
        this.#frames.push(chunk);
        this.#takeFrames();
      }),
    );
  }

  /** Frames beyond this second's share stay in the reader, and the socket stays unread until they are taken. */
  #takeFrames(): void {
    if (this.#gone || this.#waitingForPace) return;
    try {
      for (let value = this.#frames.next(); value !== undefined; value = this.#frames.next()) {
        const message = toChildMessage(value);
        if (message === undefined) throw new FrameError("a message is not one of the protocol");
        // Nothing that was on its way counts once it is being ended for what it said.
        if (this.#killedFor === undefined) this.#events.message(message);
        if (!this.#framePace.take(1) && !this.#exited) {
          this.#waitForPace();
          return;
        }
      }
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.kill(`broke the protocol: ${error.message}`);
    }
  }

  #waitForPace(): void {
    this.#waitingForPace = true;
    const { socket } = this.#launched;
    socket.pause();
    this.#clock.after(this.#framePace.msToNext, () => {
      this.#waitingForPace = false;
      this.#takeFrames();
      if (!this.#waitingForPace) socket.resume();
    });
  }

  #readPrinted(stream: Launched["stdout"], also: (chunk: Buffer) => void): void {
    const lines = new LineSplitter((line) => this.#events.printed(line));
    const pace = new Pace(this.#clock, modulePrintedBytesPerSecondMax);
    this.#atExit.push(
      readPaced(stream, pace, this.#clock, (chunk) => {
        also(chunk);
        lines.push(chunk);
      }),
    );
    stream.once("end", () => lines.flush());
  }

  #pollMemory(): void {
    const { pid } = this;
    if (pid === null) return;
    this.#clock.after(memoryPollMs, async () => {
      if (this.#exited || this.#gone) return;
      const used = await residentMb(pid);
      if (used !== undefined && used > moduleMemoryMb + moduleMemorySlackMb) this.kill("ran out of memory");
      this.#pollMemory();
    });
  }

  #left(code: number | null, signal: NodeJS.Signals | null): void {
    this.#exited = true;
    // The watcher in its group goes with the leash.
    this.#launched.leash.destroy();
    for (const act of this.#atExit) act();
    const finish = () => this.#finish(this.#reason(code, signal));
    const stopTimer = this.#clock.after(drainMs, finish);
    this.#launched.process.once("close", () => {
      stopTimer();
      finish();
    });
  }

  #reason(code: number | null, signal: NodeJS.Signals | null): string {
    if (this.#killedFor !== undefined) return this.#killedFor;
    if (/heap out of memory|memory allocation|bad_alloc|cannot allocate memory/i.test(this.#lastWords)) {
      return "ran out of memory";
    }
    const endedBy = signal ?? signalOf(code);
    const how = endedBy === undefined ? `ended with exit code ${code}` : `was ended by ${endedBy}`;
    const said = /^(?:Uncaught )?((?:[A-Z]\w*)?Error(?: \[\w+\])?: .{1,200})/m.exec(this.#lastWords)?.[1];
    return said === undefined ? how : `${how}: ${Buffer.from(said, "latin1").toString("utf8")}`;
  }

  #finish(reason: string): void {
    if (this.#gone) return;
    this.#takeFrames();
    this.#gone = true;
    this.#launched.socket.destroy();
    this.#events.gone(reason);
  }
}

/** Shells and bubblewrap tell a signal as 128 and its number. */
function signalOf(code: number | null): string | undefined {
  const found = Object.entries(constants.signals).find(([, number]) => code !== null && number === code - 128);
  return found?.[0];
}
