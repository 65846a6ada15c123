/**
 * What host and child say to each other. Values of the program travel as JSON text inside a message, so that the host can
 * count, keep and pass them on without building them.
 */
import { z } from "zod";
import { codeCharactersMax, runErrorCharactersMax, toolParametersCharactersMax } from "../../limits.ts";

export interface RunMessage {
  readonly type: "run";
  readonly code: string;
  /** JSON text. */
  readonly env: string;
  readonly memoryMb: number;
  readonly outputBytes: number;
  readonly cpuMs: number | null;
  readonly seed: number;
}

export type AnswerMessage =
  | {
      readonly type: "answer";
      readonly callId: number;
      readonly ok: true /** JSON text. */;
      readonly value?: string | undefined;
    }
  | {
      readonly type: "answer";
      readonly callId: number;
      readonly ok: false;
      readonly message: string;
      readonly code: string;
      readonly status: number;
    };

export type HostMessage = RunMessage | AnswerMessage | { readonly type: "stop" };

const name = z.string().max(codeCharactersMax);

/** Strict: a field or a type that is not listed means the child is not what we started. */
const childMessage = z.discriminatedUnion("type", [
  /** Waiting for a run; `usedMb` is its resident memory. */
  z.strictObject({ type: z.literal("ready"), usedMb: z.number() }),
  z.strictObject({ type: z.literal("started") }),
  /** A native parser gets the code now: the one thing that nested code can crash. */
  z.strictObject({ type: z.literal("transpiling"), done: z.boolean() }),
  z.strictObject({ type: z.literal("stdout"), text: z.string() }),
  z.strictObject({ type: z.literal("stderr"), text: z.string() }),
  /** Pairs of key and JSON text; pairs, because an object cannot hold a key like `__proto__` safely. */
  z.strictObject({ type: z.literal("output"), entries: z.array(z.tuple([z.string(), z.string()])) }),
  z.strictObject({
    type: z.literal("call"),
    callId: z.int().positive(),
    serviceId: name,
    toolId: name,
    parameters: z.string().max(toolParametersCharactersMax).optional(),
    /** The name is spelled as the program's language has it. */
    spelling: z.literal("snake_case").optional(),
  }),
  z.strictObject({
    type: z.literal("ended"),
    result: z.enum(["success", "stopped", "thrown", "syntax", "memory", "output_too_large", "deadlocked"]),
    error: z.string().max(runErrorCharactersMax),
  }),
]);

export type ChildMessage = z.infer<typeof childMessage>;
export type ChildResult = Extract<ChildMessage, { type: "ended" }>["result"];

export function toChildMessage(value: unknown): ChildMessage | undefined {
  const checked = childMessage.safeParse(value);
  return checked.success ? checked.data : undefined;
}

/**
 * The largest honest frame. JSON text inside JSON doubles at most (quotes and backslashes), a piece of stdout grows six times
 * at most (control characters).
 */
export function frameBytesMax(outputBytes: number): number {
  return 1024 * 1024 + 8 * toolParametersCharactersMax + 2 * outputBytes;
}
