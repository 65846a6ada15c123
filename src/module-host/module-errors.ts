/** What a module's errors are to callers: the codes of the SDK's `ModuleError`, and anything else is the target's fault. */
import { Failure, type FailureKind } from "../errors/failure.ts";
import { moduleErrorCharactersMax } from "../limits.ts";
import type { Mask } from "./masking.ts";

const kinds: Readonly<Record<string, FailureKind>> = {
  invalid_request: "invalid_request",
  upstream_failed: "upstream_failed",
  timeout: "timeout",
  conflict: "conflict",
};

export interface ThrownInModule {
  readonly message: string;
  readonly code?: string | undefined;
}

/** @param subject opens the sentence: `Tool "getPet"`. */
export function moduleFailure(subject: string, thrown: ThrownInModule, mask: Mask): Failure {
  const { code } = thrown;
  const kind = (code !== undefined && Object.hasOwn(kinds, code) ? kinds[code] : undefined) ?? "upstream_failed";
  return new Failure(kind, `${subject}: ${shownMessage(thrown.message, mask)}`);
}

/** One line, bounded, without secrets. */
export function shownMessage(message: string, mask: Mask): string {
  const line = mask(message).toWellFormed().replace(/\s+/g, " ").trim();
  return line.length > moduleErrorCharactersMax ? `${line.slice(0, moduleErrorCharactersMax)}…` : line;
}
