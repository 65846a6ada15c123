/** One MCP service made ready: its session, and each call. Runs in the server process, where no foreign schema is ever compiled. */
import { ErrorCode } from "@modelcontextprotocol/sdk/types.js";
import { Failure } from "../../errors/failure.ts";
import { toolAnswerBytesMax } from "../../limits.ts";
import type { HydratedService, Hydration, Invocation } from "../../ports/adapter.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ParameterChecks } from "../../ports/parameter-checks.ts";
import { untilAborted } from "../until-aborted.ts";
import type { Connection } from "./connection.ts";
import { isProtocolError, toFailure } from "./failures.ts";
import { HttpRefusal } from "./http-refusal.ts";
import { type PlanCache, type ToolPlan, toolOf } from "./plan.ts";
import type { Session } from "./session.ts";
import { type Target, timeoutMsOf } from "./settings.ts";
import { callShape, mayBeUnknown, type ToolResult, toResult } from "./tool-call.ts";
import { hasTool } from "./tool-list.ts";

export interface ServiceParts {
  readonly hydration: Hydration;
  readonly target: Target;
  readonly connection: Connection;
  readonly plans: PlanCache;
  readonly parameterChecks: ParameterChecks;
  readonly clock: Clock;
  /** Told of the end of the session, which takes its time. */
  closed(ending: Promise<void>): void;
}

/** A call in its limits. */
interface Call {
  readonly tool: ToolPlan;
  readonly parameters: Record<string, unknown>;
  readonly signal: AbortSignal;
  leftMs(): number;
}

const timersApartMs = 20;

export class McpService implements HydratedService {
  readonly #parts: ServiceParts;
  #inFlight = 0;
  #isClosing = false;

  constructor(parts: ServiceParts) {
    this.#parts = parts;
  }

  async invoke(invocation: Invocation): Promise<ToolResult> {
    const { toolId } = invocation;
    const { clock, hydration } = this.#parts;
    const limitMs = Math.min(invocation.timeoutMs, timeoutMsOf(hydration.config));
    const until = clock.monotonic() + limitMs;
    const stop = new AbortController();
    const tooSlow = new Failure("timeout", `Tool "${toolId}" did not answer within ${limitMs} ms`);
    const cancelTimer = clock.after(limitMs, () => stop.abort("the call took too long"));
    const onAbort = () => stop.abort("the caller went away");
    invocation.signal.addEventListener("abort", onAbort, { once: true });
    if (invocation.signal.aborted) onAbort();
    this.#inFlight += 1;
    try {
      const leftMs = () => Math.max(1, until - clock.monotonic());
      return await this.#call(await this.#checked(invocation, stop.signal, leftMs));
    } catch (error) {
      if (invocation.signal.aborted) throw new Failure("cancelled", `Call of tool "${toolId}" was cancelled`);
      const failure = toFailure(error, `Tool "${toolId}" failed`, this.#parts.target);
      // The request has a timer of its own for the same moment.
      const isOver = failure.kind === "timeout" && clock.monotonic() >= until - timersApartMs;
      throw stop.signal.aborted || isOver ? tooSlow : failure;
    } finally {
      cancelTimer();
      invocation.signal.removeEventListener("abort", onAbort);
      this.#inFlight -= 1;
      this.#endIfIdle();
    }
  }

  /** Calls that have begun go on; the session ends with the last of them. */
  close(): void {
    this.#isClosing = true;
    this.#endIfIdle();
  }

  #endIfIdle(): void {
    if (this.#isClosing && this.#inFlight === 0) this.#parts.closed(this.#parts.connection.close());
  }

  async #checked({ toolId, parameters }: Invocation, signal: AbortSignal, leftMs: () => number): Promise<Call> {
    const { plans, hydration, parameterChecks } = this.#parts;
    const tool = toolOf(await untilAborted(plans.read(hydration.plan), signal), toolId);
    const given = parameters ?? {};
    const subject = `Parameters of tool "${toolId}"`;
    await parameterChecks.check({
      key: `${hydration.plan.hash} ${toolId}`,
      schema: tool.inputSchema,
      parameters: given,
      subject,
      signal,
    });
    if (typeof given !== "object" || Array.isArray(given)) {
      throw new Failure("invalid_request", `${subject} must be an object`);
    }
    return { tool, parameters: given as Record<string, unknown>, signal, leftMs };
  }

  /**
   * A call that the server refused since it does not know the session any more is made once more in a new one. Only status 404 says so; a call
   * that was refused with another may have been made.
   */
  async #call(call: Call): Promise<ToolResult> {
    const { connection } = this.#parts;
    const session = await untilAborted(connection.session(), call.signal);
    try {
      return await this.#callIn(session, call);
    } catch (error) {
      if (!(error instanceof HttpRefusal && error.mayBeLostSession)) throw error;
      const isLost = await connection.hasLost(session, call.signal, call.leftMs());
      if (!isLost || error.status !== 404) throw error;
      return this.#callIn(await untilAborted(connection.session(), call.signal), call);
    }
  }

  async #callIn(session: Session, call: Call): Promise<ToolResult> {
    const { tool, parameters, signal, leftMs } = call;
    const request = { method: "tools/call", params: { name: tool.name, arguments: parameters } } as const;
    const bounds = { signal, timeoutMs: leftMs(), bytesMax: toolAnswerBytesMax };
    try {
      const result = toResult(await session.request(request, callShape, bounds));
      if (mayBeUnknown(result) && (await this.#isGone(session, call))) throw gone(tool);
      return result;
    } catch (error) {
      const isRefused = isProtocolError(error, ErrorCode.InvalidParams, ErrorCode.MethodNotFound);
      if (isRefused && (await this.#isGone(session, call))) throw gone(tool);
      throw error;
    }
  }

  /** Asked of the server itself: the words of its errors differ, and parameters may be wrong as well. */
  async #isGone(session: Session, { tool, signal, leftMs }: Call): Promise<boolean> {
    try {
      return !(await hasTool(session, tool.name, signal, leftMs));
    } catch {
      // It does not say: then its first answer stands.
      return false;
    }
  }
}

function gone({ id }: ToolPlan): Failure {
  return new Failure(
    "upstream_failed",
    `The MCP server has no tool "${id}" any more: it has changed its tools; sync the service to get them`,
  );
}
