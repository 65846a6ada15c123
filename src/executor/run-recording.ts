/**
 * What happened in one run, in order, for whoever follows it: while it executes from memory, afterwards as a value beside its record.
 *
 * 1. Events are only added at the end and never change, so that a follower is a position and a number means the same event for ever.
 * 2. Text and tool calls beyond the bound are left out, and one `truncated` says so. How the state changed is always there.
 * 3. Nothing is recorded after the end.
 */
import { recordedEventBytes, recordedTextCharactersMax, recordingBytesMax } from "../limits.ts";
import type { Recording, RunEvent } from "../ports/launcher.ts";

export class RunRecording implements Recording {
  readonly events: RunEvent[] = [{ kind: "state", state: "running" }];
  output: string | undefined;
  #bytes = 0;
  #isFull = false;

  /** True when something was recorded. */
  print(stream: "stdout" | "stderr", text: string): boolean {
    const before = this.events.length;
    for (const piece of pieces(text)) this.add({ kind: stream, text: piece });
    return this.events.length > before;
  }

  add(event: RunEvent): boolean {
    if (this.output !== undefined) return false;
    if (event.kind !== "state") {
      if (this.#isFull) return false;
      this.#bytes += Buffer.byteLength(JSON.stringify(event)) + recordedEventBytes;
      this.#isFull = this.#bytes > recordingBytesMax;
    }
    this.events.push(this.#isFull && event.kind !== "state" ? { kind: "truncated" } : event);
    return true;
  }

  end(output: string): void {
    this.output ??= output;
  }
}

/** Of a size that a slow follower takes one at a time; a pair of surrogates stays together. */
function* pieces(text: string): Iterable<string> {
  for (let start = 0; start < text.length; ) {
    let end = start + recordedTextCharactersMax;
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end--;
    yield text.slice(start, end);
    start = end;
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
