/** What the host believes of a child: nothing. Frames, messages and captures, fed with lies. */
import { describe, expect, it } from "vitest";
import { OutputCapture, TextCapture } from "../../src/executor/portable/capture.ts";
import { encodeFrame, FrameError, FrameReader } from "../../src/executor/portable/frames.ts";
import { jsonDepth } from "../../src/executor/portable/json-depth.ts";
import { type ChildMessage, toChildMessage } from "../../src/executor/portable/messages.ts";
import { RunSession } from "../../src/executor/portable/run-session.ts";
import { toolCallsInFlightMax } from "../../src/limits.ts";
import type { RunEnd } from "../../src/ports/executor.ts";

function drain(reader: FrameReader): unknown[] {
  const messages: unknown[] = [];
  for (let message = reader.next(); message !== undefined; message = reader.next()) messages.push(message);
  return messages;
}

describe("frames", () => {
  it("come out whole however they are cut", () => {
    const sent = [{ a: "é😀" }, [1], "x".repeat(300), { b: null }];
    const bytes = Buffer.concat(sent.map(encodeFrame));
    for (const size of [1, 3, 7, 64, bytes.length]) {
      const reader = new FrameReader(10_000);
      const got: unknown[] = [];
      for (let at = 0; at < bytes.length; at += size) {
        reader.push(bytes.subarray(at, at + size));
        got.push(...drain(reader));
      }
      expect(got).toEqual(sent);
    }
  });

  it.each([
    ["a length above the cap", Buffer.from([0, 0, 4, 0])],
    ["the largest length", Buffer.from([255, 255, 255, 255])],
    ["no JSON", Buffer.concat([Buffer.from([0, 0, 0, 3]), Buffer.from("abc")])],
    ["an empty frame", Buffer.from([0, 0, 0, 0])],
    ["broken UTF-8 outside of a text", Buffer.concat([Buffer.from([0, 0, 0, 2]), Buffer.from([0xc3, 0x28])])],
  ])("%s ends the conversation", (_title, bytes) => {
    const reader = new FrameReader(1000);
    reader.push(bytes);
    expect(() => drain(reader)).toThrow(FrameError);
  });
});

describe("messages of a child", () => {
  it.each([
    null,
    [],
    "ended",
    {},
    { type: "unknown" },
    { type: "started", more: 1 },
    { type: "stdout", text: 5 },
    { type: "output", entries: { a: "1" } },
    { type: "output", entries: [["a"]] },
    { type: "call", callId: 0, serviceId: "a", toolId: "b" },
    { type: "call", callId: 1.5, serviceId: "a", toolId: "b" },
    { type: "call", callId: 1, serviceId: "a", toolId: "b", parameters: {} },
    { type: "ended", result: "executor_crashed", error: "" },
    { type: "ended", result: "success" },
    { type: "ended", result: "thrown", error: "x".repeat(100_000) },
    { type: "ready", usedMb: "1" },
    JSON.parse('{"__proto__": {"type": "started"}}'),
  ])("%j is refused", (message) => {
    expect(toChildMessage(message)).toBeUndefined();
  });
});

function session(outputBytes = 100) {
  const seen: string[] = [];
  const ends: RunEnd[] = [];
  const run = new RunSession(
    { runId: "r", code: "", env: {}, limits: { memoryMb: 1, outputBytes, cpuMs: null }, seed: 0 },
    {
      started: () => void seen.push("started"),
      stdout: (text) => void seen.push(text),
      stderr: (text) => void seen.push(text),
      toolCall: ({ callId }) => void seen.push(`call ${callId}`),
      ended: (end) => void ends.push(end),
    },
  );
  const take = (...messages: ChildMessage[]) => messages.map((message) => run.take(message)).at(-1);
  return { run, take, seen, ends };
}
const started: ChildMessage = { type: "started" };
const call = (callId: number): ChildMessage => ({ type: "call", callId, serviceId: "a", toolId: "b" });

describe("a session", () => {
  it.each([
    ["output before the start", [{ type: "stdout", text: "x" }]],
    ["a second start", [started, started]],
    ["ready during a run", [started, { type: "ready", usedMb: 1 }]],
    ["a call twice", [started, call(1), call(1)]],
    ["a call from the past", [started, call(5), call(4)]],
    ["parameters that are no JSON", [started, { ...call(1), parameters: "{" }]],
    ["parameters nested without end", [started, { ...call(1), parameters: "[".repeat(1000) + "]".repeat(1000) }]],
    [
      "anything after the end",
      [started, { type: "ended", result: "success", error: "" }, { type: "stdout", text: "x" }],
    ],
    [
      "more calls than may be in flight",
      [started, ...Array.from({ length: toolCallsInFlightMax + 1 }, (_, n) => call(n + 1))],
    ],
  ] as [string, ChildMessage[]][])("calls %s a lie", (_title, messages) => {
    expect(session().take(...messages)).toBe("lied");
  });

  it("counts stdout and output again and ends the run when the child did not", () => {
    const { take, seen, ends } = session(10);
    expect(take(started, { type: "stdout", text: "123456789" }, { type: "stdout", text: "é1" })).toBe("lied");
    expect([seen, ends]).toEqual([
      ["started", "123456789"],
      [{ kind: "failed", reason: "output_too_large", error: expect.any(String), output: "{}" }],
    ]);
  });

  it("gives an object as output even when entries are no JSON", () => {
    const { take, ends } = session(1000);
    take(
      started,
      {
        type: "output",
        entries: [
          ["a", "1},{"],
          ["b", "2"],
        ],
      },
      { type: "ended", result: "success", error: "" },
    );
    expect(ends).toEqual([{ kind: "success", output: "{}" }]);
  });

  it("ends once, and stopped when it was being stopped", () => {
    const { run, take, ends } = session();
    take(started, { type: "output", entries: [["a", "1"]] });
    run.markStopping();
    run.lost({ code: null, signal: "SIGKILL", lastWords: "", killedFor: "its run was stopped" });
    run.fail("thrown", "late");
    run.stopped();
    expect(ends).toEqual([{ kind: "stopped", output: '{"a":1}' }]);
  });

  it.each([
    ["FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", null, "memory"],
    ["memory allocation of 536870912 bytes failed", null, "memory"],
    ["", "memory", "memory"],
    ["", null, "executor_crashed"],
  ])("tells from last words %j why a child went", (lastWords, killedFor, reason) => {
    const { run, ends } = session();
    run.lost({ code: null, signal: "SIGABRT", lastWords, killedFor: killedFor ?? undefined });
    expect(ends).toEqual([expect.objectContaining({ reason })]);
  });

  it.each([
    ["a crash of its own", { code: null, signal: "SIGSEGV" }, "syntax"],
    ["an exit of its own", { code: 134, signal: null }, "syntax"],
    ["a kill from outside", { code: null, signal: "SIGKILL" }, "executor_crashed"],
    ["the end of the server that forked it", { code: null, signal: null }, "executor_crashed"],
  ] as const)("lost in the parser by %s, is judged by that", (_, how, reason) => {
    const { run, take, ends } = session();
    take(started, { type: "transpiling", done: false });
    run.lost({ ...how, lastWords: "", killedFor: undefined });
    expect(ends).toEqual([expect.objectContaining({ reason })]);
  });

  it("answers only calls that wait, once", () => {
    const { run, take } = session();
    take(started, call(1));
    expect(run.answer(2, { ok: true, value: 1 })).toBeUndefined();
    expect(run.answer(1, { ok: true, value: undefined })).toEqual({ type: "answer", callId: 1, ok: true });
    expect(run.answer(1, { ok: true, value: 1 })).toBeUndefined();
  });
});

describe("captures", () => {
  it.each([
    ["abc", 3, "abc", false],
    ["abcd", 3, "abc", true],
    ["aé", 2, "a", true],
    ["a😀", 4, "a", true],
    ["a😀", 5, "a😀", false],
    ["\ud800", 3, "\ufffd", false],
    ["x", 0, "", true],
    ["", 0, "", false],
  ])("text %j within %i bytes keeps whole characters", (text, bytes, kept, full) => {
    expect(new TextCapture(bytes).take(text)).toEqual({ text: kept, full });
  });

  it("output counts the bytes of its JSON text", () => {
    const exact = '{"é":"x","b":12}';
    const fits = new OutputCapture(Buffer.byteLength(exact) + 1);
    expect(
      fits.merge([
        ["é", '"x"'],
        ["b", "12"],
      ]),
    ).toBe(true);
    expect(fits.toJson()).toBe(exact);
    expect(fits.merge([["b", "12345"]])).toBe(false);
    expect(fits.toJson()).toBe(exact);
    expect(
      fits.merge([
        ["é", '""'],
        ["é", '"y"'],
      ]),
    ).toBe(true);
    expect(fits.toJson()).toBe('{"é":"y","b":12}');
  });

  it.each([
    ['"\\udfff"', "\ufffd"],
    ['"\\ud83d\\ude00"', "😀"],
    ['"\\\\udfff"', "\\udfff"],
    ['"\\\\\\udfff"', "\\\ufffd"],
    ['"\\ud83d\\ud83d\\ude00"', "\ufffd😀"],
  ])("output entry %s is well-formed when read", (json, value) => {
    const capture = new OutputCapture(1000);
    capture.merge([["a", json]]);
    expect(JSON.parse(capture.toJson())).toEqual({ a: value });
  });

  it.each([
    ["1", 0],
    ["[]", 1],
    ['{"a":[{}]}', 3],
    ['["[[[\\"[["]', 1],
  ])("the depth of %s is %i", (json, depth) => {
    expect(jsonDepth(json)).toBe(depth);
  });
});
