/** The part of a storage error that a caller may read: what went wrong, without paths or keys. */

/** Engine errors wrap the real one, LevelDB's own text is "IO error: <path>: <reason>", Node's is "CODE: <reason>, <call>". */
export function faultReason(error: unknown): string {
  const { message } = rootCause(error);
  const node = /^E[A-Z0-9]+: ([^,']+)/.exec(message)?.[1];
  if (node !== undefined) return node.trim();
  // Greedy up to the last colon: paths may have colons of their own.
  const engine = /^(?:IO error|Corruption|Not found|Invalid argument): (?:.*: )?(.+)$/.exec(message)?.[1];
  const reason = engine ?? message;
  const hasPath = /(^|\s)[/\\]/.test(reason);
  return reason === "" || hasPath ? "unexpected error" : lowerFirst(reason);
}

/** Code of the innermost error that has one: ENOSPC, LEVEL_LOCKED. */
export function faultCode(error: unknown): string | undefined {
  const inner = error instanceof Error && error.cause !== undefined ? faultCode(error.cause) : undefined;
  if (inner !== undefined) return inner;
  const code = (error as { readonly code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : undefined;
}

function rootCause(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  return error.cause instanceof Error ? rootCause(error.cause) : error;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
