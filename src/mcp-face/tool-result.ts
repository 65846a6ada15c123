/**
 * What a tool answers: JSON twice, as text for those who read and as structured content for those who compute. What is larger than a
 * reader can use is cut, says so, and names where the whole is.
 */
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import type { Failure } from "../errors/failure.ts";
import { mcpTextCharactersMax } from "../limits.ts";

/** `whole`: a sentence on how to get at what was cut. */
export function jsonResult(value: Record<string, unknown>, whole: string): CallToolResult {
  const text = JSON.stringify(value);
  if (text.length <= mcpTextCharactersMax) return { content: [{ type: "text", text }], structuredContent: value };
  return { content: [cutBlock("The result", text, mcpTextCharactersMax), { type: "text", text: whole }] };
}

export function textResult(text: string, whole: string): CallToolResult {
  if (text.length <= mcpTextCharactersMax) return { content: [{ type: "text", text }] };
  return { content: [cutBlock("The text", text, mcpTextCharactersMax), { type: "text", text: whole }] };
}

export interface ResultPart {
  /** Field of the structured result. */
  readonly name: string;
  readonly value: unknown;
}

/**
 * Like `jsonResult`, for results of parts of which each may be large: when not all fits, small ones stay whole and the large ones share
 * what is left, each as a text of its own.
 */
export function resultOfParts(
  head: Record<string, unknown>,
  parts: readonly ResultPart[],
  whole: string,
): CallToolResult {
  const value = { ...head, ...Object.fromEntries(parts.map(({ name, value: part }) => [name, part])) };
  const text = JSON.stringify(value);
  if (text.length <= mcpTextCharactersMax) return { content: [{ type: "text", text }], structuredContent: value };
  const texts = parts.map((part) => ({ name: part.name, text: textOf(part.value) }));
  const share = fairShare(
    texts.map((part) => part.text.length),
    mcpTextCharactersMax,
  );
  return {
    content: [
      { type: "text", text: JSON.stringify(head) },
      ...texts.filter((part) => part.text !== "").map((part) => cutBlock(part.name, part.text, share)),
      { type: "text", text: whole },
    ],
  };
}

/** An expected "no" of the service as the tool's own error: a model can read it and do better. */
export function failureResult(failure: Failure, requestId: string): CallToolResult {
  const { message, kind, details } = failure;
  const wait = details.exhaustion?.retryAfterSeconds ?? details.retryAfterSeconds;
  const text = `${message} (code: ${kind}${kind === "internal" ? `, request id: ${requestId}` : ""})`;
  return {
    isError: true,
    content: [{ type: "text", text }],
    structuredContent: { error: message, code: kind, ...(wait === undefined ? {} : { retryAfterSeconds: wait }) },
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function cutBlock(what: string, text: string, max: number): { type: "text"; text: string } {
  if (text.length <= max) return { type: "text", text: `${what}:\n${text}` };
  const begin = text.slice(0, max);
  // A character of two units may have been cut in its middle.
  const whole = /[\uD800-\uDBFF]$/.test(begin) ? begin.slice(0, -1) : begin;
  return { type: "text", text: `${what}, the first ${whole.length} of ${text.length} characters:\n${whole}` };
}

/** The most that each of `sizes` may have so that together they have at most `total`. */
function fairShare(sizes: readonly number[], total: number): number {
  let left = total;
  const ascending = [...sizes].sort((a, b) => a - b);
  for (const [at, size] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - at));
    if (size > share) return share;
    left -= size;
  }
  return total;
}
