/** What the disk refuses: full, read-only, no permission. Neither the package nor our code is at fault then. */
import { Failure } from "../errors/failure.ts";

export interface DiskFault extends Error {
  /** Such as ENOSPC. */
  readonly code: string;
}

export function isDiskFault(error: unknown): error is DiskFault {
  return error instanceof Error && "syscall" in error && "code" in error && typeof error.code === "string";
}

/** The caller may try again when the operator has seen to it. */
export function notStored(error: DiskFault): Failure {
  return new Failure("unavailable", `The package cannot be stored: the disk answers ${error.code}`, { cause: error });
}

/** For `catch`: these codes are fine, everything else is thrown on. */
export function ignoring(...codes: readonly string[]): (error: unknown) => void {
  return (error) => {
    if (!isDiskFault(error) || !codes.includes(error.code)) throw error;
  };
}
