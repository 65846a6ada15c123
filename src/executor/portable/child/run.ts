/**
 * One program on one stage: the loop of jobs, timers and tool answers, and the one place that decides how it ended.
 *
 * 1. The first result stands; whatever the program still does after it is interrupted and not heard.
 * 2. After every entry into the engine `#settle` runs: jobs, then the question whether anything can still happen.
 */
import { randomBytes, randomUUID } from "node:crypto";
import type { QuickJSHandle } from "quickjs-emscripten-core";
import { runErrorCharactersMax, runOutputDepthMax } from "../../../limits.ts";
import { OutputCapture, TextCapture } from "../capture.ts";
import { jsonDepth } from "../json-depth.ts";
import type { AnswerMessage, ChildResult, RunMessage } from "../messages.ts";
import { compile, type Locate } from "./compile.ts";
import type { Outbox } from "./outbox.ts";
import { readableStack } from "./stack-trace.ts";
import type { Stage } from "./stage.ts";
import { Timers } from "./timers.ts";
import { urlOperation } from "./url-operations.ts";

/** Jobs between two looks at the result. */
const jobsPerLook = 64;
/** A program may catch running out of memory and go on; one that asks again and again would go on for ever. */
const refusalsMax = 300;

export class Run {
  readonly #stage: Stage;
  readonly #outbox: Outbox;
  readonly #message: RunMessage;
  readonly #ended: () => void;
  readonly #timers = new Timers((id) => this.#enter("fire", id));
  readonly #streams: { readonly stdout: TextCapture; readonly stderr: TextCapture };
  readonly #output: OutputCapture;
  readonly #startedAt = performance.now();
  readonly #cpuBefore = process.cpuUsage();
  #locate: Locate = () => undefined;
  #callLast = 0;
  #callsWaiting = 0;
  #result: { readonly result: ChildResult; readonly error: string } | undefined;
  /** True once the host was told: nothing may follow. */
  #closed = false;
  /** The engine threw out of its own frames: its instance cannot be used again. */
  broken = false;

  constructor(stage: Stage, outbox: Outbox, message: RunMessage, ended: () => void) {
    this.#stage = stage;
    this.#outbox = outbox;
    this.#message = message;
    this.#ended = ended;
    this.#streams = { stdout: new TextCapture(message.outputBytes), stderr: new TextCapture(message.outputBytes) };
    this.#output = new OutputCapture(message.outputBytes);
  }

  begin(): void {
    const { instance, runtime, context } = this.#stage;
    this.#outbox.reset();
    this.#outbox.send({ type: "started" });
    instance.limitMemory(runtime, this.#message.memoryMb);
    this.#stage.listener.host = (operation, first, second) => this.#host(operation, first, second);
    this.#stage.listener.interrupt = () => this.#isOver();
    this.#guard(() => {
      this.#call("begin", this.#text(this.#message.env), this.#text(String(this.#message.seed)));
      const compiled = compile(context, this.#message.code, (done) => this.#outbox.send({ type: "transpiling", done }));
      if (!compiled.ok) {
        this.#end("syntax", compiled.error);
        return;
      }
      this.#locate = compiled.locate;
      this.#call("main", compiled.program);
    });
    this.#settle();
  }

  answer(message: AnswerMessage): void {
    this.#callsWaiting -= 1;
    const { callId } = message;
    if (message.ok) this.#enter("answer", String(callId), "value", message.value);
    else {
      const { message: text, code, status } = message;
      this.#enter("answer", String(callId), "failure", JSON.stringify({ message: text, code, status }));
    }
  }

  stop(): void {
    this.#end("stopped", "");
    this.#close();
  }

  #enter(entry: "answer" | "fire", ...values: (string | undefined)[]): void {
    if (this.#closed) return;
    this.#guard(() => this.#call(entry, ...values.map((value) => this.#text(value))));
    this.#settle();
  }

  #settle(): void {
    const { runtime } = this.#stage;
    this.#guard(() => {
      while (this.#result === undefined && runtime.hasPendingJob()) {
        const jobs = runtime.executePendingJobs(jobsPerLook);
        if (jobs.error !== undefined) this.#fail(jobs.error);
        else jobs.dispose();
        this.#outbox.tick();
      }
      if (this.#result === undefined || this.#result.result === "success") this.#judge();
    });
    if (this.#result !== undefined) this.#close();
    else this.#outbox.flush();
  }

  /** The program returned, or nothing is left to do now: was a rejection forgotten, is there anything to wait for? */
  #judge(): void {
    const stuck = this.#callsWaiting === 0 && this.#timers.size === 0;
    if (this.#result === undefined && !stuck) return;
    const [forgotten] = this.#stage.rejections.values();
    if (forgotten !== undefined) {
      this.#result = undefined;
      this.#call("fail", forgotten.dup());
      return;
    }
    if (this.#result !== undefined) return;
    if (this.#outOfMemory()) this.#endWithoutMemory();
    else this.#end("deadlocked", "The program waits for something that no tool call, timer or job can settle");
  }

  #close(): void {
    if (this.#closed || this.#result === undefined) return;
    this.#closed = true;
    this.#timers.clear();
    this.#outbox.send({ type: "ended", ...this.#result });
    this.#ended();
  }

  #end(result: ChildResult, error: string): void {
    this.#result ??= { result, error: error.toWellFormed().slice(0, runErrorCharactersMax) };
  }

  #endWithoutMemory(): void {
    this.#end("memory", `The program needs more memory than its limit of ${this.#message.memoryMb} MB`);
  }

  #isOver(): boolean {
    this.#outbox.tick();
    if (this.#stage.instance.refusals > refusalsMax) this.#endWithoutMemory();
    const { cpuMs } = this.#message;
    if (cpuMs !== null && this.#result === undefined) {
      const { user, system } = process.cpuUsage(this.#cpuBefore);
      if ((user + system) / 1000 > cpuMs)
        this.#end("thrown", `The program used more than its limit of ${cpuMs} ms of CPU time`);
    }
    return this.#result !== undefined;
  }

  /** The engine reports most things as values; what comes out as an exception left its stack behind. */
  #guard(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.broken = true;
      if (this.#outOfMemory()) this.#endWithoutMemory();
      else
        this.#end(
          "thrown",
          error instanceof RangeError ? "Maximum call stack size exceeded" : `The engine failed: ${String(error)}`,
        );
    }
  }

  /** Consumes the handles. */
  #call(entry: keyof Stage["entries"], ...handles: QuickJSHandle[]): void {
    const { context, entries } = this.#stage;
    const result = context.callFunction(entries[entry], context.undefined, handles);
    for (const handle of handles) handle.dispose();
    if (result.error === undefined) result.dispose();
    else if (entry === "fail") {
      result.error.dispose();
      if (this.#outOfMemory()) this.#endWithoutMemory();
      else this.#end("thrown", "An error was thrown that cannot be described");
    } else this.#fail(result.error);
  }

  #fail(reason: QuickJSHandle): void {
    if (this.#result === undefined) this.#call("fail", reason);
    else reason.dispose();
  }

  #text(value: string | undefined): QuickJSHandle {
    const { context } = this.#stage;
    return value === undefined ? context.undefined : context.newString(value);
  }

  #outOfMemory(): boolean {
    return this.#stage.instance.refusals > 0;
  }

  #host(operation: string, first: string, second: string | undefined): string | undefined {
    if (this.#result !== undefined) return "full";
    try {
      return this.#operate(operation, first, second);
    } catch (error) {
      // Only out of the child's own resources, or a bug of ours: either way the program gets nothing of it.
      this.#end("thrown", `The operation "${operation}" failed: ${error instanceof Error ? error.message : "unknown"}`);
      return undefined;
    }
  }

  #operate(operation: string, first: string, second: string | undefined): string | undefined {
    switch (operation) {
      case "stdout":
      case "stderr":
        return this.#write(operation, JSON.parse(first) as string);
      case "output":
        return this.#emit(first);
      case "call":
        return this.#toolCall(JSON.parse(first) as [string, string], second);
      case "timeout":
      case "interval":
        this.#timers.set(first, Number(second), operation === "interval");
        return undefined;
      case "clear":
        this.#timers.remove(first);
        return undefined;
      case "stack":
        return JSON.stringify(readableStack(JSON.parse(first) as string, this.#locate).trimEnd());
      case "now":
        return String(performance.now() - this.#startedAt);
      case "uuid":
        return randomUUID();
      case "random":
        return randomBytes(Math.min(Number(first), 65_536)).toString("hex");
      case "failed":
        this.#failed(JSON.parse(first) as Failed);
        return undefined;
      case "succeeded":
        this.#end("success", "");
        return undefined;
      default:
        return urlOperation(operation, first);
    }
  }

  #write(stream: "stdout" | "stderr", text: string): string | undefined {
    const piece = this.#streams[stream].take(text);
    if (piece.text !== "") this.#outbox.text(stream, piece.text);
    if (!piece.full) return undefined;
    this.#end("output_too_large", `The program wrote more than ${this.#message.outputBytes} bytes to ${stream}`);
    return "full";
  }

  /** The answer is what is wrong with the value, for the program. */
  #emit(json: string): string | undefined {
    if (jsonDepth(json) > runOutputDepthMax) return `it is nested deeper than ${runOutputDepthMax}`;
    const entries = Object.entries(JSON.parse(json) as object).map(
      ([key, value]) => [key, JSON.stringify(value)] as const,
    );
    if (this.#output.merge(entries)) this.#outbox.output(entries);
    else this.#end("output_too_large", `The structured output is larger than ${this.#message.outputBytes} bytes`);
    return undefined;
  }

  #toolCall([serviceId, toolId]: [string, string], parameters: string | undefined): string | undefined {
    if (parameters !== undefined && jsonDepth(parameters) > runOutputDepthMax) return undefined;
    this.#callLast += 1;
    this.#callsWaiting += 1;
    const ids = { serviceId: serviceId.toWellFormed(), toolId: toolId.toWellFormed() };
    this.#outbox.send({
      type: "call",
      callId: this.#callLast,
      ...ids,
      ...(parameters !== undefined && { parameters }),
    });
    return String(this.#callLast);
  }

  #failed({ name, message, stack, isNull }: Failed): void {
    const engineSays = name === "InternalError" && /out of memory|string too long/.test(message);
    if (engineSays || (isNull && this.#outOfMemory())) {
      this.#endWithoutMemory();
      return;
    }
    if (stack !== "") this.#write("stderr", readableStack(stack, this.#locate));
    this.#end("thrown", message);
  }
}

interface Failed {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  readonly isNull: boolean;
}
