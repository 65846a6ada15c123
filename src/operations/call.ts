/**
 * One call of one operation, the same from both faces: may this caller do it, is the input right, run it, and stop waiting
 * when its time is over or its caller has gone.
 *
 * 1. A call ends once: with the operation's answer, or with the first `end(failure)`, whichever comes first.
 * 2. Whatever leaves here as a rejection is a `Failure`. A crash becomes `internal` with fixed text, and its cause is
 *    written to the log here and nowhere else, with the request id.
 * 3. Nothing is allocated for a cancellation nobody looks at: the signal exists once it was read.
 */
import { randomUUID } from "node:crypto";
import type { z } from "zod";
import { catalogue } from "../errors/catalogue.ts";
import { Failure, isFailure } from "../errors/failure.ts";
import { callDeadlineMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { CallContext, Caller, Idempotency, RpcOperation, RpcStream } from "./operation.ts";

/** Whether the node takes calls, as probes of both faces tell it. */
export interface Readiness {
  check(): { readonly ready: true } | { readonly ready: false; readonly reason: string };
  /** Called after each change; the answer unsubscribes. */
  onChange(listener: () => void): () => void;
}

export interface CallStart {
  readonly requestId: string;
  readonly caller: Caller;
  readonly clock: Clock;
  readonly log: Log;
  /** On the monotonic clock, milliseconds: when the caller stops waiting. Shortens the ordinary deadline, never extends it. */
  readonly callerDeadline?: number | undefined;
  /** Asked once, when somebody first reads `signal`: from then on call `end` when the caller goes away. */
  readonly watchCaller?: ((call: Call) => void) | undefined;
}

export class Call implements CallContext {
  readonly requestId: string;
  readonly caller: Caller;
  readonly clock: Clock;
  readonly log: Log;
  deadline: number;
  idempotency: Idempotency | undefined;
  readonly #watchCaller: ((call: Call) => void) | undefined;
  #controller: AbortController | undefined;
  #failure: Failure | undefined;
  #onEnd: ((failure: Failure) => void) | undefined;
  #settled = false;

  constructor(start: CallStart) {
    this.requestId = start.requestId;
    this.caller = start.caller;
    this.clock = start.clock;
    this.log = start.log;
    this.deadline = start.callerDeadline ?? Number.POSITIVE_INFINITY;
    this.#watchCaller = start.watchCaller;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#failure === undefined) this.#watchCaller?.(this);
      else this.#controller.abort(this.#failure);
    }
    return this.#controller.signal;
  }

  /** The caller went away, or the time is over: whoever waits for this call gets `failure`, whoever works for it the signal. */
  end(failure: Failure): void {
    if (this.#failure !== undefined || this.#settled) return;
    this.#failure = failure;
    this.#onEnd?.(failure);
    this.#controller?.abort(failure);
  }

  /** The answer of `work`, unless the call ends first. */
  settle<Output>(work: Promise<Output>, operation: string): Promise<Output> {
    if (this.#failure !== undefined) {
      work.catch(() => undefined); // its caller is gone; nobody else would look at the rejection
      return Promise.reject(this.#failure);
    }
    const leftMs = this.deadline - this.clock.monotonic();
    return new Promise<Output>((resolve, reject) => {
      this.#onEnd = reject;
      // Whole milliseconds: Node keeps timers of one length in one list.
      const cancelTimer = this.clock.after(Math.max(0, Math.ceil(leftMs)), () => this.end(timedOut(operation)));
      work.then(
        (output) => {
          cancelTimer();
          this.#settled = true;
          resolve(output);
        },
        (error: unknown) => {
          cancelTimer();
          this.#settled = true;
          reject(error);
        },
      );
    });
  }
}

/** Rejects with Failure only. `raw` is the merged input of a face: path, query and body, or the domain form of a message. */
export async function callOperation<Input, Output>(
  row: RpcOperation<Input, Output>,
  raw: unknown,
  call: Call,
): Promise<Output> {
  try {
    authorize(row, call.caller);
    const input = parseInput(row.input, raw);
    const allowanceMs = callDeadlineMs + (row.extraDeadlineMs?.(input) ?? 0);
    const now = call.clock.monotonic();
    if (call.deadline <= now) throw timedOut(row.name);
    call.deadline = Math.min(call.deadline, now + allowanceMs);
    return await call.settle(row.run(input, call), row.name);
  } catch (error) {
    throw failureOf(error, row.name, call.requestId, call.log);
  }
}

/** Rejects with Failure only; what iterating rejects with is for `failureOf`. A stream has no deadline but its caller's. */
export async function openStream<Input, Item>(
  row: RpcStream<Input, Item>,
  raw: unknown,
  call: Call,
): Promise<AsyncIterable<Item> | null> {
  try {
    authorize(row, call.caller);
    return await row.open(parseInput(row.input, raw), call);
  } catch (error) {
    throw failureOf(error, row.name, call.requestId, call.log);
  }
}

/** What `callOperation` rejected with stands; anything else is a crash on the way in or out. */
export function asFailure(error: unknown, operation: string, requestId: string, log: Log): Failure {
  return isFailure(error) ? error : failureOf(error, operation, requestId, log);
}

/** The failure to answer with. Causes and crashes are logged here, once. */
export function failureOf(error: unknown, operation: string, requestId: string, log: Log): Failure {
  if (!isFailure(error)) {
    log.error("operation-crashed", `Operation "${operation}" crashed`, { requestId, operation, error });
    return new Failure("internal", internalText);
  }
  const { cause } = error.details;
  if (error.kind === "internal") {
    log.error("operation-failed", `Operation "${operation}" failed: ${error.message}`, {
      requestId,
      operation,
      error: cause ?? error,
    });
    return new Failure("internal", internalText);
  }
  if (cause !== undefined && catalogue[error.kind].rest >= 500) {
    log.warn("operation-failed", `Operation "${operation}" failed: ${error.message}`, {
      requestId,
      operation,
      error: cause,
    });
  }
  return error;
}

/** All that a caller learns of a crash; the log has the cause under the request id. */
const internalText = "Internal error; the log of the server has details under the request id";

/** The caller's own request id, as its header holds it, when it is well-formed, else a new one. */
export function requestIdFrom(offered: string | readonly string[] | undefined): string {
  return typeof offered === "string" && wellFormedRequestId.test(offered) ? offered : randomUUID();
}

/** Nothing that could break a log line or a header. */
const wellFormedRequestId = /^[A-Za-z0-9._~:/+=@-]{1,128}$/;

/** Throws Failure forbidden. */
export function authorize(row: Pick<RpcOperation, "name" | "role">, caller: Caller): void {
  if (row.role === "operator" && caller.role !== "operator") {
    throw new Failure("forbidden", `Key "${caller.name}" has role "${caller.role}": "${row.name}" needs "operator"`);
  }
}

export function timedOut(operation: string): Failure {
  return new Failure("timeout", `Operation "${operation}" did not finish before its deadline`);
}

/** Field problems told to the caller at once. */
const issuesToldMax = 20;

/** Throws Failure invalid_request naming the first field at fault in its text and all of them in its details. */
export function parseInput<Input>(schema: z.ZodType<Input>, raw: unknown): Input {
  const result = schema.safeParse(raw);
  if (result.success) return result.data;
  const fields = result.error.issues.slice(0, issuesToldMax).map(describeIssue);
  const first = fields[0] ?? { field: "", description: "not valid" };
  const where = first.field === "" ? "Request" : `Field "${first.field}"`;
  throw new Failure("invalid_request", `${where} is not valid: ${first.description}`, { fields });
}

function describeIssue(issue: z.core.$ZodIssue): { field: string; description: string } {
  const deeper = issue.code === "invalid_union" ? closestBranch(issue.errors) : undefined;
  if (deeper !== undefined) {
    const inner = describeIssue(deeper);
    return {
      field: dotted([...issue.path, ...(inner.field === "" ? [] : [inner.field])]),
      description: inner.description,
    };
  }
  return { field: dotted(issue.path), description: issueText(issue.message) };
}

/** Of the branches of a union, the one that got furthest says best what is wrong. */
function closestBranch(branches: readonly (readonly z.core.$ZodIssue[])[]): z.core.$ZodIssue | undefined {
  const firsts = branches.flatMap((branch) => branch.slice(0, 1));
  return firsts.reduce<z.core.$ZodIssue | undefined>(
    (best, issue) => (best === undefined || issue.path.length > best.path.length ? issue : best),
    undefined,
  );
}

function issueText(message: string): string {
  const text = message.replace(/^Invalid input: /, "");
  return text.endsWith(", received undefined") ? "required" : text.charAt(0).toLowerCase() + text.slice(1);
}

function dotted(path: readonly PropertyKey[]): string {
  return path.map(String).join(".");
}
