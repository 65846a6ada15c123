/**
 * What host and module process say to each other, in frames on one socket (descriptor 3 of the process). Order: `load` → `hello`,
 * `setup` → `ready`, then calls in any number. Whatever the process says is held to the schema here and to the state of the
 * conversation; whatever does not fit ends the process.
 */
import { z } from "zod";
import { moduleFrameBytesMax, moduleFrameDepthMax, moduleNameCharactersMax } from "../limits.ts";
import type { FrameBounds } from "./runner/frames.ts";

/** Host and runner come from the same installation; the number catches a runner of another one. */
export const protocolVersion = 1;

/** Of every message of a module process. */
export const childFrameBounds: FrameBounds = { bytesMax: moduleFrameBytesMax, depthMax: moduleFrameDepthMax };

export type ModuleMethod = "generateDefinition" | "hydrate" | "dehydrate" | "invoke" | "execute" | "docs" | "toolDocs";

export type HostMessage =
  | { readonly type: "load"; readonly protocol: number; readonly main: string; readonly bounds: FrameBounds }
  | { readonly type: "setup"; readonly config: object; readonly secrets: object; readonly fetchesMax: number }
  | { readonly type: "call"; readonly id: number; readonly method: ModuleMethod; readonly input: unknown }
  /** Nobody waits for this call any more. */
  | { readonly type: "cancel"; readonly id: number }
  /** `run` is the id of the `execute` call. */
  | { readonly type: "kill"; readonly run: number }
  | { readonly type: "fetched"; readonly id: number; readonly answer: FetchedAnswer }
  | { readonly type: "fetch-failed"; readonly id: number; readonly message: string; readonly code: string }
  | {
      readonly type: "tool-answered";
      readonly run: number;
      readonly callId: number;
      readonly answer:
        | { readonly ok: true; readonly value: unknown }
        | { readonly ok: false; readonly message: string; readonly code: string; readonly status: number };
    }
  | { readonly type: "ping"; readonly id: number };

export interface FetchedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Base64. */
  readonly body: string;
  readonly url: string;
}

const id = z.int().positive();
const name = z.string().max(moduleNameCharactersMax);
const text = z.string().max(moduleFrameBytesMax);

const childMessage = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("hello"),
    protocol: z.literal(protocolVersion),
    moduleType: z.string().max(64),
    configSchema: z.unknown().optional(),
    secretsSchema: z.unknown().optional(),
  }),
  /** Instead of `hello` or `ready`. */
  z.strictObject({ type: z.literal("refused"), message: text, code: z.string().max(64).optional() }),
  z.strictObject({ type: z.literal("ready") }),
  z.strictObject({ type: z.literal("answer"), id, value: z.unknown().optional() }),
  z.strictObject({ type: z.literal("failed"), id, message: text, code: z.string().max(64).optional() }),
  z.strictObject({ type: z.literal("log"), level: z.enum(["debug", "info", "warn", "error"]), message: text }),
  z.strictObject({
    type: z.literal("fetch"),
    id,
    url: text,
    method: z.string().max(64).optional(),
    headers: z.record(z.string(), z.string()).optional(),
    /** Base64. */
    body: text.optional(),
    redirectsMax: z.int().min(0).max(100).optional(),
    timeoutMs: z.number().positive().optional(),
  }),
  z.strictObject({ type: z.literal("printed"), run: id, stream: z.enum(["stdout", "stderr"]), text }),
  /** Pairs of key and JSON text: an object cannot hold a key like `__proto__` safely. */
  z.strictObject({ type: z.literal("output"), run: id, entries: z.array(z.tuple([text, text])) }),
  z.strictObject({
    type: z.literal("tool-call"),
    run: id,
    callId: id,
    serviceId: name,
    toolId: name,
    parameters: z.unknown().optional(),
  }),
  z.strictObject({ type: z.literal("pong"), id }),
]);

export type ChildMessage = z.infer<typeof childMessage>;
export type ChildMessageOf<Type extends ChildMessage["type"]> = Extract<ChildMessage, { type: Type }>;

/** Undefined when it is nothing a module process may say. */
export function toChildMessage(value: unknown): ChildMessage | undefined {
  const checked = childMessage.safeParse(value);
  return checked.success ? checked.data : undefined;
}
