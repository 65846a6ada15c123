/** Asks an MCP server who it is and which tools it has, and gives the document that `define` reads. */
import { ErrorCode } from "@modelcontextprotocol/sdk/types.js";
import { Failure } from "../../errors/failure.ts";
import { measure } from "../../json/safety.ts";
import {
  mcpDescriptionCharactersMax,
  mcpDiscoveryMs,
  mcpToolListCharactersMax,
  toolAnswerDepthMax,
} from "../../limits.ts";
import type { DiscoveryTarget } from "../../ports/adapter.ts";
import { isProtocolError, toFailure } from "./failures.ts";
import { HttpRefusal } from "./http-refusal.ts";
import { readServerUrl, requireAllowed, type ServerAddress, shownServer } from "./server-address.ts";
import { Session, type SessionParts } from "./session.ts";
import { type Target, targetOf } from "./settings.ts";
import { toolPages } from "./tool-list.ts";

export interface DiscoveryParts extends SessionParts {
  readonly stdioCommands: readonly string[];
  /** Of a document, read away from the server. */
  address(document: string, signal: AbortSignal): Promise<ServerAddress>;
  /** Told of the end of the session, which takes its time: a server that is slow to leave is nobody's wait. */
  leaving(ending: Promise<void>): void;
}

/** Whom it asks: the configured URL, else `url`, else the server of the document. Rejects with Failure. */
export async function discoverTools(parts: DiscoveryParts, request: DiscoveryTarget): Promise<string> {
  const address = await addressOf(parts, request);
  const target = targetOf(address, request.config, request.secrets);
  requireAllowed(target.address, parts.stdioCommands);
  const stop = new AbortController();
  const cancelTimer = parts.clock.after(mcpDiscoveryMs, () => stop.abort());
  const signal = AbortSignal.any([request.signal, stop.signal]);
  const until = parts.clock.monotonic() + mcpDiscoveryMs;
  try {
    // The document keeps its own address: what is configured stays configuration.
    return await askServer(parts, target, address, signal, () => Math.max(1, until - parts.clock.monotonic()));
  } catch (error) {
    const name = shownServer(target.address);
    if (request.signal.aborted) throw new Failure("cancelled", `Asking ${name} for its tools was cancelled`);
    if (stop.signal.aborted) {
      throw new Failure("timeout", `${name} did not say within ${mcpDiscoveryMs} ms which tools it has`);
    }
    throw explain(error, target);
  } finally {
    cancelTimer();
  }
}

async function addressOf(parts: DiscoveryParts, { url, document, signal }: DiscoveryTarget): Promise<ServerAddress> {
  if (url !== undefined) return { kind: "http", url: readServerUrl(url) };
  if (document !== undefined) return parts.address(document, signal);
  throw new Failure("invalid_request", "An MCP service needs a url or a definition");
}

async function askServer(
  parts: DiscoveryParts,
  target: Target,
  address: ServerAddress,
  signal: AbortSignal,
  leftMs: () => number,
): Promise<string> {
  const session = await Session.open(parts, target, { signal, timeoutMs: leftMs() });
  try {
    const tools: string[] = [];
    let characters = 0;
    for await (const page of toolPages(session, signal, leftMs)) {
      for (const tool of page) {
        const text = toolText(tool);
        characters += text.length;
        if (characters > mcpToolListCharactersMax)
          throw tooMuch(`has more than ${mcpToolListCharactersMax} characters`);
        tools.push(text);
      }
    }
    const { name, title, version } = session.server ?? {};
    const instructions = session.instructions?.slice(0, mcpDescriptionCharactersMax);
    const { kind: _, ...where } = address;
    const head = JSON.stringify({ ...where, server: { name, title, version, instructions } });
    return `${head.slice(0, -1)},"tools":[${tools.join(",")}]}`;
  } finally {
    parts.leaving(session.end());
  }
}

/** What `define` reads of a tool. Anything that is no object is left for it to refuse. */
function toolText(tool: unknown): string {
  if (measure(tool).depth > toolAnswerDepthMax) throw tooMuch(`nests deeper than ${toolAnswerDepthMax} levels`);
  if (typeof tool !== "object" || tool === null) return JSON.stringify(tool);
  const { name, title, description, annotations, inputSchema, outputSchema } = tool as Readonly<
    Record<string, unknown>
  >;
  const shown =
    typeof annotations === "object" && annotations !== null && "title" in annotations ? annotations.title : undefined;
  const cut = typeof description === "string" ? description.slice(0, mcpDescriptionCharactersMax + 1) : description;
  return JSON.stringify({
    name,
    title,
    description: cut,
    ...(shown === undefined ? {} : { annotations: { title: shown } }),
    inputSchema,
    outputSchema,
  });
}

function tooMuch(reason: string): Failure {
  return new Failure("upstream_failed", `Cannot read the tools of the MCP server: their list ${reason}`);
}

function explain(error: unknown, target: Target): Failure {
  const what = `Cannot ask ${shownServer(target.address)} for its tools`;
  if (isProtocolError(error, ErrorCode.MethodNotFound))
    return new Failure("upstream_failed", `${what}: it offers none`);
  const failure = toFailure(error, what, target);
  const wantsSecrets =
    error instanceof HttpRefusal && (error.status === 401 || error.status === 403) && !target.hasSecrets;
  if (!wantsSecrets || target.address.kind !== "http") return failure;
  const { origin, pathname } = new URL(target.address.url);
  const way = `install the service with the inline definition {"url": "${origin}${pathname}"}, set its secrets, then sync it`;
  return new Failure(failure.kind, `${failure.message}: ${way}`);
}
