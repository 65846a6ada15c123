/** An HTTP answer to the tool's result: `{status, headers, body}`, whatever the status. */
import { Failure } from "../../errors/failure.ts";
import { toolAnswerDepthMax } from "../../limits.ts";
import type { OutboundAnswer } from "../../ports/fetcher.ts";
import { bodyKind, essence } from "./media-types.ts";

export interface ToolResult {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Absent when empty. JSON parsed, text as text, anything else `{base64, mediaType}`. */
  readonly body?: unknown;
}

export function toResult({ status, headers, body }: OutboundAnswer): ToolResult {
  if (body.byteLength === 0) return { status, headers };
  return { status, headers, body: readBody(headers["content-type"], body) };
}

function readBody(contentType: string | undefined, bytes: Uint8Array): unknown {
  if (contentType === undefined || contentType.trim() === "") return readUntyped(bytes);
  switch (essence(contentType) === "*/*" ? "binary" : bodyKind(contentType)) {
    case "json":
      return readJson(decode(contentType, bytes));
    case "text":
    case "form":
      return decode(contentType, bytes);
    default:
      return { base64: Buffer.from(bytes).toString("base64"), mediaType: contentType };
  }
}

/** A target that says JSON and sends something else has still answered: its text is the result. */
function readJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text;
  }
  if (isDeeper(value, toolAnswerDepthMax)) {
    throw new Failure("upstream_failed", `The answer is JSON nested deeper than ${toolAnswerDepthMax} levels`);
  }
  return value;
}

function readUntyped(bytes: Uint8Array): unknown {
  try {
    return readJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    if (error instanceof Failure) throw error;
    return { base64: Buffer.from(bytes).toString("base64"), mediaType: "application/octet-stream" };
  }
}

function decode(contentType: string, bytes: Uint8Array): string {
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(contentType)?.[1] ?? "utf-8";
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return new TextDecoder("utf-8").decode(bytes);
  }
}

function isDeeper(value: unknown, depthMax: number): boolean {
  let level: object[] = [{ value }];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > depthMax) return true;
    level = level.flatMap((each) => Object.values(each).filter((child) => typeof child === "object" && child !== null));
  }
  return false;
}
