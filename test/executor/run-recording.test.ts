/** The bound of a recording, and that nothing of it is ever torn. */
import { describe, expect, it } from "vitest";
import { RunRecording } from "../../src/executor/run-recording.ts";
import { recordedTextCharactersMax, recordingBytesMax } from "../../src/limits.ts";

const textOf = (recording: RunRecording) =>
  recording.events.map((event) => ("text" in event ? event.text : "")).join("");
const kindsOf = (recording: RunRecording) => recording.events.map(({ kind }) => kind);

describe("a recording", () => {
  it.each([
    ["one million single characters", () => Array.from({ length: 1_000_000 }, () => "x")],
    ["one long text", () => ["y".repeat(5 * recordingBytesMax)]],
    ["text that JSON makes six times as long", () => ["\u0001".repeat(recordingBytesMax)]],
    ["text of four bytes a character", () => ["😀".repeat(recordingBytesMax / 4)]],
  ])("of %s stays within its bound, and says once that it does", (_, texts) => {
    const recording = new RunRecording();
    for (const text of texts()) recording.print("stdout", text);
    expect(Buffer.byteLength(JSON.stringify(recording.events))).toBeLessThanOrEqual(recordingBytesMax);
    expect(kindsOf(recording).filter((kind) => kind === "truncated")).toHaveLength(1);
    expect(kindsOf(recording).at(-1)).toBe("truncated");
    expect(textOf(recording).length).toBeGreaterThan(0);
  });

  it("that is full still tells how the state changes, and nothing else", () => {
    const recording = new RunRecording();
    while (recording.print("stderr", "z".repeat(50_000)));
    const full = recording.events.length;
    expect(recording.add({ kind: "toolCall", toolCall: { callId: 1, serviceId: "s", toolId: "t", state: "ok" } })).toBe(
      false,
    );
    expect(recording.add({ kind: "state", state: "terminating" })).toBe(true);
    expect(recording.events.slice(full)).toEqual([{ kind: "state", state: "terminating" }]);
  });

  it("just within its bound is whole", () => {
    const recording = new RunRecording();
    const texts = Array.from({ length: 60 }, (_, at) => String(at).repeat(8_000));
    for (const text of texts) recording.print("stdout", text);
    expect(textOf(recording)).toBe(texts.join(""));
    expect(kindsOf(recording)).not.toContain("truncated");
  });

  it("divides long text without tearing a character, and records no empty text", () => {
    const recording = new RunRecording();
    for (const text of ["", "a", `a${"😀".repeat(recordedTextCharactersMax)}`]) recording.print("stdout", text);
    const pieces = recording.events.flatMap((event) => ("text" in event ? [event.text] : []));
    expect(pieces.join("")).toBe(`aa${"😀".repeat(recordedTextCharactersMax)}`);
    expect(pieces.every((piece) => piece.isWellFormed() && piece.length <= recordedTextCharactersMax)).toBe(true);
    expect(pieces).not.toContain("");
  });

  it("takes nothing after the end", () => {
    const recording = new RunRecording();
    recording.end("{}");
    expect(recording.print("stdout", "late")).toBe(false);
    expect(recording.add({ kind: "state", state: "terminating" })).toBe(false);
    expect(recording.events).toEqual([{ kind: "state", state: "running" }]);
  });
});
