/** An executor that does what the test says, when it says so: for races that a real one cannot be brought into. */
import type { Executor, RunEnd, RunEvents, RunHandle, RunRequest, ToolAnswer } from "../../src/ports/executor.ts";

export class ScriptedRun implements RunHandle {
  readonly request: RunRequest;
  readonly events: RunEvents;
  readonly answers: { callId: number; answer: ToolAnswer }[] = [];
  stops = 0;

  constructor(request: RunRequest, events: RunEvents) {
    this.request = request;
    this.events = events;
  }

  answer(callId: number, answer: ToolAnswer): void {
    this.answers.push({ callId, answer });
  }

  stop(): void {
    this.stops++;
  }

  end(end: Partial<RunEnd> & { kind: RunEnd["kind"] } = { kind: "success" }): void {
    this.events.ended({ output: "{}", ...end } as RunEnd);
  }
}

export class ScriptedExecutor implements Executor {
  readonly name = "scripted";
  readonly runs: ScriptedRun[] = [];

  start(run: RunRequest, events: RunEvents): RunHandle {
    const scripted = new ScriptedRun(run, events);
    this.runs.push(scripted);
    return scripted;
  }

  inspect(): Record<string, number> {
    return { runs: this.runs.length };
  }

  async close(): Promise<void> {}
}
