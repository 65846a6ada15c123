/**
 * Frames to the host, written at once: a program that never gives its thread back must still be heard, and the host keeps
 * what it heard when it kills the child. Writing blocks while the host is slow, which holds a flood back.
 *
 * After the first pieces stdout, stderr and output are collected for a moment, so that a flood of small prints costs the
 * host some hundred frames a second and not a million.
 */
import { writeSync } from "node:fs";
import type { OutputEntries } from "../capture.ts";
import { encodeFrame } from "../frames.ts";
import type { ChildMessage } from "../messages.ts";

const immediatePieces = 256;
const collectMs = 10;
const collectCharactersMax = 64 * 1024;

export class Outbox {
  readonly #fd: number;
  #pieces = 0;
  #collected: { stdout: string; stderr: string; output: Map<string, string>; characters: number } = empty();
  #flushedAt = 0;

  constructor(fd: number) {
    this.#fd = fd;
  }

  /** In order with what was collected before. */
  send(message: ChildMessage): void {
    this.flush();
    this.#write(message);
  }

  text(stream: "stdout" | "stderr", text: string): void {
    this.#collected[stream] += text;
    this.#collect(text.length);
  }

  output(entries: OutputEntries): void {
    for (const [key, json] of entries) {
      this.#collected.output.set(key, json);
      this.#collect(json.length);
    }
  }

  /** Called often while a program runs: sends what has waited long enough. */
  tick(): void {
    if (this.#collected.characters > 0 && performance.now() - this.#flushedAt >= collectMs) this.flush();
  }

  flush(): void {
    const { stdout, stderr, output, characters } = this.#collected;
    if (characters === 0) return;
    this.#collected = empty();
    this.#flushedAt = performance.now();
    if (stdout !== "") this.#write({ type: "stdout", text: stdout });
    if (stderr !== "") this.#write({ type: "stderr", text: stderr });
    if (output.size > 0) this.#write({ type: "output", entries: [...output] });
  }

  /** The next run starts with fresh allowances. */
  reset(): void {
    this.#collected = empty();
    this.#pieces = 0;
  }

  #collect(characters: number): void {
    this.#collected.characters += characters;
    this.#pieces += 1;
    if (this.#pieces <= immediatePieces || this.#collected.characters >= collectCharactersMax) this.flush();
    else this.tick();
  }

  #write(message: ChildMessage): void {
    const frame = encodeFrame(message);
    try {
      for (let at = 0; at < frame.length; ) at += writeSync(this.#fd, frame, at);
    } catch {
      // Nobody listens any more.
      process.exit(0);
    }
  }
}

function empty() {
  return { stdout: "", stderr: "", output: new Map<string, string>(), characters: 0 };
}
