/** The refusals of a definition document, worded once, and foreign words cut to size. */
import { Failure } from "../../errors/failure.ts";

export function unusable(reason: string): Failure {
  return new Failure("invalid_request", `The MCP definition cannot be used: ${reason}`);
}

/** On one line, and at most this long. */
export function shortened(text: string, charactersMax: number): string {
  const line = text
    .slice(0, charactersMax * 2)
    .replaceAll(/\s+/g, " ")
    .trim()
    .toWellFormed();
  return line.length <= charactersMax ? line : `${line.slice(0, charactersMax).toWellFormed()}…`;
}
