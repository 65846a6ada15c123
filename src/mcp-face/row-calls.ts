/**
 * The rows of the operation table, called by name for one caller of this face: the same checks of role and input, the same rate limit
 * windows and the same failures as over REST and gRPC.
 */
import { Failure } from "../errors/failure.ts";
import type { McpRequest } from "../gateway/mcp-route.ts";
import { Call, callOperation, parseInput } from "../operations/call.ts";
import type { Operation } from "../operations/operation.ts";
import type { RateLimits } from "../operations/rate-limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";

export interface RowCallsOptions {
  readonly operations: readonly Operation[];
  /** Absent: nothing is limited. */
  readonly rateLimits?: RateLimits | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** Who calls, and until when anybody waits for the answer. */
export type CallerOfRows = Pick<McpRequest, "requestId" | "caller" | "countedAs" | "signal">;

export class RowCalls {
  readonly #options: RowCallsOptions;
  readonly #rows: ReadonlyMap<string, Operation>;

  constructor(options: RowCallsOptions) {
    this.#options = options;
    this.#rows = new Map(options.operations.map((row) => [row.name, row]));
  }

  row(name: string): Operation {
    const row = this.#rows.get(name);
    if (row === undefined) throw new Error(`There is no operation "${name}"`);
    return row;
  }

  /** Counts one request for the operation. Throws Failure rate_limit_exceeded. */
  count(name: string, { countedAs }: CallerOfRows): void {
    this.#options.rateLimits?.ofOperation(this.row(name)).admit(countedAs);
  }

  /** Throws Failure invalid_request. */
  check<Input>(name: string, input: unknown): Input {
    return parseInput(this.row(name).input, input) as Input;
  }

  /** Rejects with Failure only. */
  async call<Output>(name: string, input: unknown, { requestId, caller, signal }: CallerOfRows): Promise<Output> {
    const { clock, log } = this.#options;
    let forget = (): void => undefined;
    const watchCaller = (watched: Call): void => {
      const gone = (): void => watched.end(new Failure("cancelled", "The client went away"));
      if (signal.aborted) gone();
      signal.addEventListener("abort", gone, { once: true });
      forget = () => signal.removeEventListener("abort", gone);
    };
    const call = new Call({ requestId, caller, clock, log, watchCaller });
    try {
      return (await callOperation(this.row(name), input, call)) as Output;
    } finally {
      forget();
    }
  }
}
