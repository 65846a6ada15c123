/** The answer of a called tool as its result, and what it means when the server does not know the tool. */
import { z } from "zod";
import { Failure } from "../../errors/failure.ts";
import { measure } from "../../json/safety.ts";
import { toolAnswerDepthMax } from "../../limits.ts";

/** A tool that failed says so with `isError`: that is a result, and its content the reason. */
export interface ToolResult {
  readonly content: readonly unknown[];
  readonly structuredContent?: unknown;
  readonly isError: boolean;
}

/** Looser than the protocol: kinds of content that are newer than this server pass. */
export const callShape = z.object({
  content: z.array(z.unknown()).nullish(),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().nullish(),
});

/** @throws Failure upstream_failed when it nests too deep to be passed on. */
export function toResult({ content, structuredContent, isError }: z.infer<typeof callShape>): ToolResult {
  const result = {
    content: content ?? [],
    ...(structuredContent === undefined ? {} : { structuredContent }),
    isError: isError ?? false,
  };
  if (measure(result).depth > toolAnswerDepthMax) {
    throw new Failure("upstream_failed", `The answer is JSON nested deeper than ${toolAnswerDepthMax} levels`);
  }
  return result;
}

/**
 * Whether a failed result may mean that there is no such tool: the SDK's own server answers so, although the protocol has an error for it.
 * Only a reason to look at the server's list again.
 */
export function mayBeUnknown({ content, isError }: ToolResult): boolean {
  const [first, ...others] = content;
  if (!isError || others.length > 0 || typeof first !== "object" || first === null || !("text" in first)) return false;
  const { text } = first;
  return (
    typeof text === "string" && text.length < 1_000 && /unknown|not found|no such|disabled|does not exist/i.test(text)
  );
}
