/**
 * One run of a program in a third-party environment, from the request to its one `ended`. It counts and keeps what the module says and
 * believes none of it: output is bounded here, tool calls must be new, and nothing counts after the end.
 */
import { z } from "zod";
import { isFailure } from "../errors/failure.ts";
import { runErrorCharactersMax, stopGraceMs, toolCallsInFlightMax } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { RunEnd, RunEvents, RunFailureReason, RunRequest, ToolAnswer } from "../ports/executor.ts";
import type { ModuleProcess, RunListener, RunMessage } from "./module-process.ts";
import { OutputEntries, TextBound } from "./run-output.ts";

const programEnd = z.discriminatedUnion("status", [
  z.object({ status: z.literal("success") }),
  z.object({
    status: z.literal("failed"),
    reason: z.enum(["thrown", "syntax", "memory"]),
    error: z.string().transform((error) => error.slice(0, runErrorCharactersMax).toWellFormed()),
  }),
]);

export class HostedRun implements RunListener {
  readonly request: RunRequest;
  readonly #events: RunEvents;
  readonly #clock: Clock;
  readonly #printed: { readonly stdout: TextBound; readonly stderr: TextBound };
  readonly #output: OutputEntries;
  readonly #callsWaiting = new Set<number>();
  #lastCallId = 0;
  #process: ModuleProcess | undefined;
  #id = 0;
  #stopping = false;
  #over = false;
  #stopTimer: () => void = () => {};

  constructor(request: RunRequest, events: RunEvents, clock: Clock) {
    this.request = request;
    this.#events = events;
    this.#clock = clock;
    const { outputBytes } = request.limits;
    this.#printed = { stdout: new TextBound(outputBytes), stderr: new TextBound(outputBytes) };
    this.#output = new OutputEntries(outputBytes);
  }

  get isOver(): boolean {
    return this.#over;
  }

  /** Resolves when the module has answered or its process is gone; until then the run is inside it, ended or not. */
  execute(process: ModuleProcess): Promise<void> {
    const { runId, code, env, limits } = this.request;
    this.#process = process;
    this.#events.started();
    return new Promise((left) => {
      this.#id = process.start(
        {
          method: "execute",
          input: { runId, code, env, limits },
          timeoutMs: Number.POSITIVE_INFINITY,
          subject: "The program",
        },
        this,
        (value) => {
          this.#stopTimer();
          this.#settled(value);
          left();
        },
        (failure) => {
          this.#stopTimer();
          // What `execute` throws is a fault of the environment, not of the program.
          this.fail("executor_crashed", failure.message);
          left();
        },
      );
    });
  }

  take(message: RunMessage): boolean {
    if (this.#over) return true;
    switch (message.type) {
      case "printed":
        this.#print(message.stream, message.text);
        return true;
      case "output":
        if (!this.#output.merge(message.entries)) this.#tooLarge("structured output");
        return true;
      case "tool-call":
        return this.#toolCall(message);
    }
  }

  answer(callId: number, answer: ToolAnswer): void {
    if (this.#over || !this.#callsWaiting.delete(callId)) return;
    this.#process?.send({ type: "tool-answered", run: this.#id, callId, answer });
  }

  /** From now on every end is `stopped`. */
  stop(): void {
    this.#stopping = true;
    this.#kill();
  }

  fail(reason: RunFailureReason, error: string): void {
    this.#end({ kind: "failed", reason, error, output: this.#output.toJson() });
  }

  stopped(): void {
    this.#end({ kind: "stopped", output: this.#output.toJson() });
  }

  #settled(value: unknown): void {
    const end = programEnd.safeParse(value);
    if (!end.success) this.fail("executor_crashed", "The environment did not say how the program ended");
    else if (end.data.status === "failed") this.fail(end.data.reason, end.data.error);
    else this.#end({ kind: "success", output: this.#output.toJson() });
  }

  #print(stream: "stdout" | "stderr", text: string): void {
    const { kept, isFull } = this.#printed[stream].take(text);
    if (kept !== "") this.#events[stream](kept);
    if (isFull) this.#tooLarge(stream);
  }

  #tooLarge(what: string): void {
    const { outputBytes } = this.request.limits;
    this.fail("output_too_large", `The program wrote more than ${outputBytes} bytes of ${what}`);
    this.#kill();
  }

  /** A program that does not end when it is told to takes its process with it. */
  #kill(): void {
    const process = this.#process;
    if (process === undefined) return;
    process.send({ type: "kill", run: this.#id });
    this.#stopTimer();
    this.#stopTimer = this.#clock.after(stopGraceMs, () => process.kill("was ended: a program in it did not stop"));
  }

  #toolCall({ callId, serviceId, toolId, parameters }: Extract<RunMessage, { type: "tool-call" }>): boolean {
    if (callId <= this.#lastCallId) return false;
    this.#lastCallId = callId;
    this.#callsWaiting.add(callId);
    if (this.#callsWaiting.size > toolCallsInFlightMax) {
      const message = `A program has at most ${toolCallsInFlightMax} tool calls in flight`;
      this.answer(callId, { ok: false, message, code: "overloaded", status: 429 });
    } else this.#events.toolCall({ callId, serviceId, toolId, parameters });
    return true;
  }

  #end(end: RunEnd): void {
    if (this.#over) return;
    this.#over = true;
    this.#events.ended(this.#stopping ? { kind: "stopped", output: end.output } : end);
  }
}

export function messageOf(error: unknown): string {
  return isFailure(error) ? error.message : "The environment failed";
}
