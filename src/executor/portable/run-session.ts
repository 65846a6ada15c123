/**
 * One run as the host sees it, from the request to its one `ended`. It counts and keeps what the child sends and believes
 * none of it: limits are checked again, calls must be new, and nothing counts after the end.
 */
import { runOutputDepthMax, toolCallsInFlightMax } from "../../limits.ts";
import type { RunEnd, RunEvents, RunFailureReason, RunRequest, ToolAnswer } from "../../ports/executor.ts";
import { OutputCapture, TextCapture } from "./capture.ts";
import type { Departure } from "./child-link.ts";
import { jsonDepth } from "./json-depth.ts";
import type { AnswerMessage, ChildMessage, RunMessage } from "./messages.ts";

/** `lied`: the child broke the protocol and must go. */
export type Reaction = "goes-on" | "ended" | "lied";

export class RunSession {
  readonly request: RunRequest;
  readonly #events: RunEvents;
  readonly #streams: { readonly stdout: TextCapture; readonly stderr: TextCapture };
  readonly #output: OutputCapture;
  readonly #callsWaiting = new Set<number>();
  #callLast = 0;
  #started = false;
  #transpiling = false;
  #stopping = false;
  #over = false;

  constructor(request: RunRequest, events: RunEvents) {
    this.request = request;
    this.#events = events;
    const { outputBytes } = request.limits;
    this.#streams = { stdout: new TextCapture(outputBytes), stderr: new TextCapture(outputBytes) };
    this.#output = new OutputCapture(outputBytes);
  }

  get over(): boolean {
    return this.#over;
  }

  /** False: nothing of the program was executed, another child may take it. */
  get started(): boolean {
    return this.#started;
  }

  /** Children that took the run and were gone before it started. */
  lostBeforeStart = 0;

  toMessage(): RunMessage {
    const { code, env, limits, seed } = this.request;
    const { memoryMb, outputBytes, cpuMs } = limits;
    return { type: "run", code, env: JSON.stringify(env), memoryMb, outputBytes, cpuMs, seed };
  }

  get stopping(): boolean {
    return this.#stopping;
  }

  /** From now on every end is `stopped`. */
  markStopping(): void {
    this.#stopping = true;
  }

  take(message: ChildMessage): Reaction {
    if (this.#over) return "lied";
    if (!this.#started && message.type !== "started") return "lied";
    switch (message.type) {
      case "started":
        if (this.#started) return "lied";
        this.#started = true;
        this.#events.started();
        return "goes-on";
      case "transpiling":
        this.#transpiling = !message.done;
        return "goes-on";
      case "stdout":
      case "stderr":
        return this.#write(message.type, message.text);
      case "output":
        if (this.#output.merge(message.entries)) return "goes-on";
        this.fail("output_too_large", `The structured output is larger than ${this.#output.bytesMax} bytes`);
        return "lied";
      case "call":
        return this.#call(message);
      case "ended":
        if (message.result === "stopped" && !this.#stopping) return "lied";
        if (message.result === "success") this.#end({ kind: "success", output: this.#output.toJson() });
        else if (message.result === "stopped") this.#end({ kind: "stopped", output: this.#output.toJson() });
        else this.fail(message.result, message.error);
        return "ended";
      case "ready":
        return "lied";
    }
  }

  /** The message for the child, or undefined when nobody waits for this answer. */
  answer(callId: number, answer: ToolAnswer): AnswerMessage | undefined {
    if (this.#over || !this.#callsWaiting.delete(callId)) return undefined;
    if (!answer.ok) return { type: "answer", callId, ...answer };
    const value = JSON.stringify(answer.value);
    return { type: "answer", callId, ok: true, ...(value !== undefined && { value }) };
  }

  fail(reason: RunFailureReason, error: string): void {
    this.#end({ kind: "failed", reason, error, output: this.#output.toJson() });
  }

  stopped(): void {
    this.#end({ kind: "stopped", output: this.#output.toJson() });
  }

  /** The child went before it said how the run ended. */
  lost(departure: Departure): void {
    const { code, signal, lastWords, killedFor } = departure;
    if (
      killedFor === memoryReason ||
      /out of memory|memory allocation|bad_alloc|cannot allocate memory/i.test(lastWords)
    ) {
      this.fail("memory", `The program needs more memory than its limit of ${this.request.limits.memoryMb} MB`);
    } else if (this.#transpiling && killedFor === undefined && endedByItself(departure)) {
      this.fail("syntax", "Syntax error: the code is nested too deeply for the parser");
    } else {
      const how = signal !== null ? `with signal ${signal}` : code !== null ? `with code ${code}` : "with its server";
      this.fail("executor_crashed", `The executor process of this run ended ${how}`);
    }
  }

  #write(stream: "stdout" | "stderr", text: string): Reaction {
    const piece = this.#streams[stream].take(text);
    if (piece.text !== "") this.#events[stream](piece.text);
    if (!piece.full) return "goes-on";
    this.fail("output_too_large", `The program wrote more than ${this.request.limits.outputBytes} bytes to ${stream}`);
    return "lied";
  }

  #call({ callId, serviceId, toolId, parameters, spelling }: Extract<ChildMessage, { type: "call" }>): Reaction {
    if (callId <= this.#callLast || this.#callsWaiting.size >= toolCallsInFlightMax) return "lied";
    if (parameters !== undefined && jsonDepth(parameters) > runOutputDepthMax) return "lied";
    const value = parameters === undefined ? undefined : parseJson(parameters);
    if (value === notJson) return "lied";
    this.#callLast = callId;
    this.#callsWaiting.add(callId);
    this.#events.toolCall({
      callId,
      serviceId,
      toolId,
      parameters: value,
      ...(spelling !== undefined && { spelling }),
    });
    return "goes-on";
  }

  #end(end: RunEnd): void {
    if (this.#over) return;
    this.#over = true;
    this.#events.ended(this.#stopping ? { kind: "stopped", output: end.output } : end);
  }
}

/** Neither killed from outside nor gone together with the server that forked it, whose end says nothing of the program. */
function endedByItself({ code, signal }: Departure): boolean {
  return signal !== "SIGKILL" && (code !== null || signal !== null);
}

/** `Departure.killedFor` of a child that the memory watch ended. */
export const memoryReason = "memory";

const notJson = Symbol("not JSON");

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return notJson;
  }
}
