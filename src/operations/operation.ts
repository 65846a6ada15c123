/**
 * One row per operation. Both faces are loops over rows: they name no kind and no operation. Adding an operation is four
 * edits: proto, row, case in the actor, test.
 *
 * The output of a row mirrors its protobuf response message field by field (`{ process: … }`); the REST face sends the one
 * field named by `route.answer` (or the whole object), the control plane sends the message.
 */
import type { z } from "zod";
import type { FailureKind } from "../errors/failure.ts";
import { callDeadlineMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";

export type Role = "agent" | "operator";

export interface Caller {
  /** Key name, or "anonymous". */
  readonly name: string;
  readonly role: Role;
  /** No keys are set: callers are told apart by their addresses. */
  readonly isAnonymous?: boolean;
}

/** Who asks, under which id, until when. */
export interface CallContext {
  readonly requestId: string;
  readonly caller: Caller;
  /** On the monotonic clock, milliseconds. */
  readonly deadline: number;
  /** Aborted when the caller goes away or the deadline passes. */
  readonly signal: AbortSignal;
  /** Of a call under an Idempotency-Key, for what carries it in its own record. */
  readonly idempotency?: Idempotency | undefined;
}

/** SHA-256, hex: of caller, operation and key; and of the request. */
export interface Idempotency {
  readonly name: string;
  readonly body: string;
}

/** For what the server asks of itself. */
export function ownContext(requestId: string, clock: Clock, ms = callDeadlineMs): CallContext {
  return {
    requestId,
    caller: { name: "troupe", role: "operator" },
    deadline: clock.monotonic() + ms,
    signal: AbortSignal.timeout(ms),
  };
}

export type HttpMethod = "GET" | "POST" | "PATCH" | "DELETE";

export interface Route {
  readonly method: HttpMethod;
  /** `/processes/{id}`: names in braces are fields of the input. */
  readonly path: string;
  /** Input fields taken from the query string; a repeated name is refused, an unknown one ignored. */
  readonly query?: readonly string[];
  /**
   * none: no body is read. fields: a JSON object whose keys are input fields. A field name: the whole JSON body is that
   * field (a JSON Patch array).
   */
  readonly body: "none" | "fields" | { readonly field: string; readonly mediaTypes: readonly string[] };
  readonly status: 200 | 201 | 204;
  /** Output field sent as a strong ETag instead of in the body. A GET whose If-None-Match names it answers 304. */
  readonly etag?: string;
  /** Input field filled from If-Match: the tag without quotes; absent for `*`. */
  readonly ifMatch?: string;
  /** Output field that is the REST body; absent: the whole output. */
  readonly answer?: { readonly field: string; readonly mediaType: "application/json" | "text/plain" | "text/markdown" };
  /** In place of `answer`, and only with `etag`: the REST body is bytes as they are. */
  readonly bytes?: BytesAnswer;
}

/** Bytes that were made elsewhere: a browser may show them as an image, and is never brought to take them for a page of ours. */
export interface BytesAnswer {
  /** Output field with the Uint8Array. */
  readonly content: string;
  /** Output field with its media type. */
  readonly mediaType: string;
  /** How long the caller's own cache may use them unasked; shared caches may not, because not everybody may read them. */
  readonly freshSeconds: number;
}

/** A row that the control plane alone serves: what only operators' tools and other services ask for. */
export interface RpcOperation<Input = unknown, Output = unknown> {
  /** createProcess; the rpc is CreateProcess. */
  readonly name: string;
  readonly summary: string;
  /** Service within package troupe.v1. */
  readonly rpcService: string;
  readonly role: Role;
  /** Shape and rules of path, query and body fields together. Path and query fields accept their text form. */
  readonly input: z.ZodType<Input>;
  readonly output: z.ZodType<Output>;
  /**
   * For the documents: kinds it may be refused with, besides those that any call may have and those that follow from the row itself (a path
   * parameter that names nothing, a body, If-Match, an idempotency key).
   */
  readonly failures?: readonly FailureKind[];
  /** From the domain form of the protobuf request to `input`, where the two differ (`no_timeout`). */
  fromRpc?(request: Readonly<Record<string, unknown>>): Record<string, unknown>;
  /** Adds to the ordinary deadline of a call, for waits and tool calls, milliseconds. */
  extraDeadlineMs?(input: Input): number;
  run(input: Input, context: CallContext): Promise<Output>;
}

export interface Operation<Input = unknown, Output = unknown> extends RpcOperation<Input, Output> {
  readonly route: Route;
  /** Set: an Idempotency-Key is honoured. `find`: what was made under that name since then (epoch ms), where records tell. */
  readonly idempotent?: {
    find?(name: string, since: number): Promise<{ readonly body: string; readonly output: Output } | undefined>;
  };
}

/** What one item of a stream is as a server-sent event. */
export interface StreamEvent {
  /** Grows within the stream: followers who come back say the last one they have. */
  readonly id: string;
  readonly event: string;
  /** Sent as JSON. */
  readonly data: unknown;
}

/** A row whose answer goes on, served by the control plane alone: a server stream. */
export interface RpcStream<Input = unknown, Item = unknown>
  extends Pick<
    RpcOperation<Input, Item>,
    "name" | "summary" | "rpcService" | "role" | "input" | "output" | "failures" | "fromRpc"
  > {
  /**
   * Rejects with Failure before the first item. null: nothing is left to tell, now or later. Iterating waits for what comes next; it ends
   * by itself, or when `context.signal` is aborted. Whoever iterates slowly holds nobody up and costs no memory.
   */
  open(input: Input, context: CallContext): Promise<AsyncIterable<Item> | null>;
}

/** The same over both faces: server-sent events over REST, a server stream over gRPC. */
export interface StreamOperation<Input = unknown, Item = unknown> extends RpcStream<Input, Item> {
  readonly route: {
    readonly path: string;
    readonly query?: readonly string[];
    /** Input field that takes Last-Event-ID, where the header is given. */
    readonly resume: string;
  };
  eventOf(item: Item): StreamEvent;
}
