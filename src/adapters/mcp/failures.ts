/** What goes wrong with an MCP server, as failures: one place for its statuses, its protocol errors and the SDK's own complaints. */
import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";
import { Failure, isFailure } from "../../errors/failure.ts";
import { mcpErrorCharactersMax } from "../../limits.ts";
import { HttpRefusal } from "./http-refusal.ts";
import { shownServer } from "./server-address.ts";
import type { Target } from "./settings.ts";

/** The fault behind an answer that our own transport made up: foreign JSON holds no `Error`. */
export function faultOf(error: unknown): unknown {
  return error instanceof McpError && error.data instanceof Error ? error.data : error;
}

export function isProtocolError(error: unknown, ...codes: readonly ErrorCode[]): error is McpError {
  return error instanceof McpError && codes.includes(error.code);
}

/**
 * `what` could not be done: `Tool "add" failed`, `Cannot connect`. A Failure stays what it is, except that a large answer is the server's doing.
 * A fault of our own is thrown as it is.
 */
export function toFailure(error: unknown, what: string, target: Target): Failure {
  if (isFailure(error)) {
    return error.kind === "too_large" ? new Failure("upstream_failed", `${what}: ${error.message}`) : error;
  }
  if (error instanceof HttpRefusal) return upstream(`${what}: ${refusalText(error, target)}`);
  if (error instanceof McpError) {
    const words = quoted(error.message.replace(/^MCP error -?\d+: /, ""), target);
    const kind = error.code === ErrorCode.InvalidParams ? "invalid_request" : "upstream_failed";
    return new Failure(kind, `${what}: the MCP server answered with error ${error.code}${words}`);
  }
  if (error instanceof TypeError || error instanceof ReferenceError || !(error instanceof Error)) throw error;
  if (error.name.endsWith("ZodError"))
    return upstream(`${what}: the MCP server's answer is not of the protocol's form`);
  if (error instanceof SyntaxError) return upstream(`${what}: the MCP server's answer is not valid JSON`);
  return upstream(`${what}: ${target.quote(error.message, mcpErrorCharactersMax)}`);
}

function refusalText({ status, words }: HttpRefusal, target: Target): string {
  const said = `${shownServer(target.address)} answered with status ${status}${quoted(words, target)}`;
  if (status === 401 || status === 403) {
    return target.hasSecrets ? `${said}; check the secrets of the service` : `${said}; it wants credentials`;
  }
  return status >= 300 && status < 400 ? `${said}, a redirect, which is not followed: use the URL it leads to` : said;
}

function quoted(words: string, target: Target): string {
  const text = target.quote(words, mcpErrorCharactersMax);
  return text === "" ? "" : ` ("${text}")`;
}

/** Without a cause: it would hold the server's words as they came, secrets of ours among them, and causes are logged. */
function upstream(message: string): Failure {
  return new Failure("upstream_failed", message);
}
