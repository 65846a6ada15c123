/** The refusals of a definition document, worded once. */
import { Failure, isFailure } from "../../errors/failure.ts";

const reasonCharactersMax = 400;

export function unusable(reason: string): Failure {
  return new Failure("invalid_request", `The GraphQL definition cannot be used: ${reason}`);
}

/** What the GraphQL library throws about a foreign schema is a fact about the schema. An exhausted stack is named by the worker. */
export function refusing<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (isFailure(error) || error instanceof RangeError || !(error instanceof Error)) throw error;
    throw unusable(shortened(error.message));
  }
}

export function shortened(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim().toWellFormed();
  return line.length <= reasonCharactersMax ? line : `${line.slice(0, reasonCharactersMax)}…`;
}
