/**
 * The fork server as the host sees it: one trusted process in a sandbox, asked for runs by connecting to its socket.
 *
 * The socket exists only inside the sandbox; the host reaches it through the process's root as the system shows it, so no file is
 * left behind whatever happens. The sandbox ends when this process ends (--die-with-parent), and everything in it ends with the
 * fork server, which is the first process of its process table.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { z } from "zod";
import type { Departure } from "../portable/child-link.ts";
import { encodeFrame, FrameError, FrameReader } from "../portable/frames.ts";
import { bubblewrap, type PythonFacts, sandboxArguments, socketPath } from "./sandbox.ts";

/** How the process of one run went, as the fork server saw it; code and signal are null when it never was. */
export interface RunExit {
  readonly code: number | null;
  readonly signal: string | null;
  readonly cpuMs: number;
}

export interface ZygoteEvents {
  ready(): void;
  exited(run: number, exit: RunExit): void;
  /** Exactly once; nothing comes after it. */
  gone(departure: Departure): void;
}

const controlMessage = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("ready") }),
  z.strictObject({
    type: z.literal("exited"),
    run: z.int().positive(),
    code: z.int().nullable(),
    signal: z.string().max(32).nullable(),
    cpuMs: z.number(),
  }),
]);

const controlFrameBytesMax = 4_096;
const lastWordsCharactersMax = 4_096;

export class Zygote {
  readonly #process;
  readonly #events: ZygoteEvents;
  readonly #frames = new FrameReader(controlFrameBytesMax);
  #info = "";
  #pid: number | undefined;
  #lastWords = "";
  #killedFor: string | undefined;
  #gone = false;

  constructor(facts: PythonFacts, events: ZygoteEvents) {
    this.#events = events;
    this.#process = spawn(bubblewrap, sandboxArguments(facts), {
      cwd: "/",
      env: {},
      detached: true,
      stdio: ["ignore", "ignore", "pipe", "pipe", "pipe", "pipe"],
    });
    const [, , errors, , output, info] = this.#process.stdio as unknown as (Readable | null)[];
    for (const stream of this.#process.stdio) stream?.on("error", () => undefined);
    (this.#control as unknown as Readable | undefined)?.resume();
    errors?.on("data", (chunk: Buffer) => {
      this.#lastWords = (this.#lastWords + chunk.toString("latin1")).slice(-lastWordsCharactersMax);
    });
    info?.on("data", (chunk: Buffer) => this.#learnPid(chunk.toString("latin1")));
    output?.on("data", (chunk: Buffer) => this.#read(chunk));
    this.#process.once("error", (error) => {
      this.#lastWords += error.message;
      this.#finish(null, null);
    });
    // After the exit and the end of every pipe, so that the last exit reports are heard.
    this.#process.once("close", (code, signal) => this.#finish(code, signal));
  }

  /** Of the fork server itself; undefined until bubblewrap has told it. */
  get pid(): number | undefined {
    return this.#pid;
  }

  /** Address space in bytes, which every fork starts with; undefined when it is gone. */
  get addressBytes(): number | undefined {
    try {
      const found = /^VmSize:\s+(\d+) kB/m.exec(readFileSync(`/proc/${this.#pid}/status`, "utf8"));
      return found === null ? undefined : Number(found[1]) * 1024;
    } catch {
      return undefined;
    }
  }

  connect(): Socket {
    return connect(`/proc/${this.#pid}/root${socketPath}`);
  }

  /** The process of that run gets SIGKILL; its exit is reported. */
  killRun(run: number): void {
    if (!this.#gone) this.#control?.write(encodeFrame({ type: "kill", run }));
  }

  /** It ends by itself when its input closes, and its runs with it. */
  dismiss(): void {
    this.#control?.end();
  }

  kill(reason: string): void {
    this.#killedFor ??= reason;
    const { pid, exitCode, signalCode } = this.#process;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      this.#process.kill("SIGKILL");
    }
  }

  get #control(): Writable | undefined {
    return (this.#process.stdio as unknown as (Writable | null)[])[3] ?? undefined;
  }

  #learnPid(text: string): void {
    this.#info += text;
    const found = /"child-pid":\s*(\d+)\b\D/.exec(this.#info);
    if (found !== null) this.#pid = Number(found[1]);
  }

  #read(chunk: Buffer): void {
    if (this.#gone) return;
    this.#frames.push(chunk);
    try {
      for (let value = this.#frames.next(); value !== undefined; value = this.#frames.next()) {
        const { success, data } = controlMessage.safeParse(value);
        if (!success) throw new FrameError("A control message is not in the protocol");
        if (data.type === "ready") this.#prove();
        else this.#events.exited(data.run, data);
      }
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.kill(error.message);
    }
  }

  /** Ready means that runs can reach it: some systems hide the roots of processes. */
  #prove(): void {
    if (this.#pid === undefined) {
      this.kill("bubblewrap did not tell the process number");
      return;
    }
    const socket = this.connect();
    socket.once("error", (error) => this.kill(`its socket cannot be reached: ${error.message}`));
    socket.once("connect", () => {
      socket.destroy();
      if (!this.#gone) this.#events.ready();
    });
  }

  #finish(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.#gone) return;
    this.#gone = true;
    for (const stream of this.#process.stdio) stream?.destroy();
    this.#events.gone({ code, signal, lastWords: this.#lastWords, killedFor: this.#killedFor });
  }
}
