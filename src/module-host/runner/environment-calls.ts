/** Calls of an environment, inside the module process: runs of programs, known by the number of their `execute` call. */
import type { JsonObject, ModuleEnvironment, ProgramEnd, ProgramRun, ToolToDocument } from "../../sdk/sdk.ts";
import type { HostMessage } from "../protocol.ts";
import type { Outbox } from "./outbox.ts";

export type ExecuteInput = Pick<ProgramRun, "runId" | "code" | "env" | "limits">;

interface ToolWaiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** Pieces printed in one turn of the event loop travel together; a larger one at once. */
const pieceCharactersMax = 64 * 1024;

class Run {
  readonly runId: string;
  readonly #id: number;
  readonly #outbox: Outbox;
  readonly #calls = new Map<number, ToolWaiting>();
  readonly #printed = { stdout: "", stderr: "" };
  #lastCallId = 0;
  #flushing = false;
  #over = false;

  constructor(id: number, runId: string, outbox: Outbox) {
    this.#id = id;
    this.runId = runId;
    this.#outbox = outbox;
  }

  toProgramRun(input: ExecuteInput): ProgramRun {
    return {
      ...input,
      stdout: (text) => this.#print("stdout", text),
      stderr: (text) => this.#print("stderr", text),
      output: (part) => this.#output(part),
      callTool: (serviceId, toolId, parameters) => this.#callTool(serviceId, toolId, parameters),
    };
  }

  answered({ callId, answer }: Extract<HostMessage, { type: "tool-answered" }>): void {
    const waiting = this.#calls.get(callId);
    this.#calls.delete(callId);
    if (answer.ok) waiting?.resolve(answer.value);
    else waiting?.reject(Object.assign(new Error(answer.message), { code: answer.code, status: answer.status }));
  }

  end(): void {
    this.flush();
    this.#over = true;
  }

  flush(): void {
    this.#flushing = false;
    for (const stream of ["stdout", "stderr"] as const) {
      const text = this.#printed[stream];
      this.#printed[stream] = "";
      for (const piece of piecesOf(text)) {
        this.#outbox.send({ type: "printed", run: this.#id, stream, text: piece });
      }
    }
  }

  #print(stream: "stdout" | "stderr", text: string): void {
    if (this.#over) return;
    this.#printed[stream] += String(text);
    if (this.#printed[stream].length >= pieceCharactersMax) this.flush();
    else if (!this.#flushing) {
      this.#flushing = true;
      setImmediate(() => this.flush());
    }
  }

  #output(part: JsonObject): void {
    if (this.#over) return;
    const entries = Object.entries(part).flatMap(([key, value]): [string, string][] => {
      const json = JSON.stringify(value) as string | undefined;
      return json === undefined ? [] : [[key, json]];
    });
    this.#outbox.send({ type: "output", run: this.#id, entries });
  }

  #callTool(serviceId: string, toolId: string, parameters: unknown): Promise<unknown> {
    if (this.#over) return Promise.reject(new Error("The run has ended"));
    this.flush();
    return new Promise((resolve, reject) => {
      const callId = ++this.#lastCallId;
      this.#outbox.send({
        type: "tool-call",
        run: this.#id,
        callId,
        serviceId: String(serviceId),
        toolId: String(toolId),
        parameters,
      });
      this.#calls.set(callId, { resolve, reject });
    });
  }
}

/** Cut between characters: half of one would not survive the way. */
function* piecesOf(text: string): Iterable<string> {
  for (let at = 0; at < text.length; ) {
    let end = at + pieceCharactersMax;
    if (/[\ud800-\udbff]/.test(text.charAt(end - 1))) end -= 1;
    yield text.slice(at, end);
    at = end;
  }
}

export class EnvironmentCalls {
  readonly #environment: ModuleEnvironment;
  readonly #outbox: Outbox;
  readonly #runs = new Map<number, Run>();

  constructor(environment: ModuleEnvironment, outbox: Outbox) {
    this.#environment = environment;
    this.#outbox = outbox;
  }

  async call(method: string, input: unknown, id: number): Promise<unknown> {
    switch (method) {
      case "execute":
        return this.#execute(input as ExecuteInput, id);
      case "docs":
        return this.#environment.docs();
      case "toolDocs":
        return this.#environment.toolDocs(input as ToolToDocument);
      default:
        throw new Error(`An environment has no method "${method}"`);
    }
  }

  answered(message: Extract<HostMessage, { type: "tool-answered" }>): void {
    this.#runs.get(message.run)?.answered(message);
  }

  kill(id: number): void {
    const run = this.#runs.get(id);
    if (run !== undefined) this.#environment.kill(run.runId);
  }

  async #execute(input: ExecuteInput, id: number): Promise<ProgramEnd> {
    const run = new Run(id, input.runId, this.#outbox);
    this.#runs.set(id, run);
    try {
      return await this.#environment.execute(run.toProgramRun(input));
    } finally {
      run.end();
      this.#runs.delete(id);
    }
  }
}
