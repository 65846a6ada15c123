/** Why a backup cannot be written, read or restored: a sentence for the operator, and the exit code (BSD sysexits) for scripts. */

export const backupExitCodes = {
  /** EX_DATAERR: the file is no whole backup, or one of another version. */
  data: 65,
  /** EX_NOINPUT: there is no such file. */
  noInput: 66,
  /** EX_CANTCREAT: the file or folder to write cannot be made, or has something in it. */
  target: 73,
  /** EX_IOERR: the disk. */
  io: 74,
} as const;

export class BackupError extends Error {
  readonly exitCode: (typeof backupExitCodes)[keyof typeof backupExitCodes];

  constructor(exitCode: BackupError["exitCode"], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "BackupError";
    this.exitCode = exitCode;
  }
}
