/** Why the store was not opened: the message is for the operator and names the folder; the code is for the process manager. */

/** BSD sysexits, as far as a store can need them. */
export const exitCodes = {
  /** EX_DATAERR: another version's data, or damaged. Starting again changes nothing. */
  data: 65,
  /** EX_IOERR: the disk or its permissions. */
  io: 74,
  /** EX_TEMPFAIL: another process holds the folder. */
  inUse: 75,
} as const;

export type StoreExitCode = (typeof exitCodes)[keyof typeof exitCodes];

export class StoreOpenError extends Error {
  readonly exitCode: StoreExitCode;

  constructor(exitCode: StoreExitCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "StoreOpenError";
    this.exitCode = exitCode;
  }
}

/** A damaged or foreign folder: what is wrong, then what to do about it. */
export function damaged(folder: string, what: string, cause?: unknown): StoreOpenError {
  const advice =
    "Its data was left as it is. Restore a backup into an empty folder, or set SERVICE_DATA_DIR to another one";
  return new StoreOpenError(exitCodes.data, `Cannot open the store in "${folder}": ${what}. ${advice}`, cause);
}
