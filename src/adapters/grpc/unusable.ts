/** The refusals of a definition document, worded once. */
import { Failure, isFailure } from "../../errors/failure.ts";

const reasonCharactersMax = 400;

export function unusable(reason: string): Failure {
  return new Failure("invalid_request", `The gRPC definition cannot be used: ${reason}`);
}

/** What the protobuf library throws about foreign descriptors is a fact about them. An exhausted stack is named by the worker. */
export function refusing<T>(read: () => T, about = ""): T {
  try {
    return read();
  } catch (error) {
    if (isFailure(error) || isExhaustedStack(error) || !(error instanceof Error)) throw error;
    throw unusable(`${about}${shortened(error.message)}`);
  }
}

export function shortened(text: string, charactersMax = reasonCharactersMax): string {
  const line = text.replaceAll(/\s+/g, " ").trim().toWellFormed();
  return line.length <= charactersMax ? line : `${line.slice(0, charactersMax).toWellFormed()}…`;
}

/** The protobuf library throws a RangeError for other reasons too, such as bytes that end early. */
export function isExhaustedStack(error: unknown): boolean {
  return error instanceof RangeError && error.message.includes("call stack");
}
