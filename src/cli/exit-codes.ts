/** How `troupe` ends, as numbers: those of sysexits where one fits. What an error becomes is decided here and nowhere else. */

export const exitCodes = {
  done: 0,
  refused: 1,
  programFailed: 2,
  usage: 64,
  data: 65,
  noInput: 66,
  unreachable: 69,
  software: 70,
  cannotCreate: 73,
  io: 74,
  tryLater: 75,
  notAllowed: 77,
  settings: 78,
  interrupted: 130,
  pipeClosed: 141,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** For --help and the README; a test holds all three together. */
export const exitCodeMeanings: readonly (readonly [ExitCode, string])[] = [
  [0, "done"],
  [1, "the server refused; a verification found damage"],
  [2, "the program that was run failed, was killed or timed out"],
  [64, "the command was typed wrongly"],
  [65, "data that cannot be used: no JSON, a damaged or newer store or backup"],
  [66, "a file to read is not there"],
  [69, "the server cannot be reached, is going away, or something else answers in its place"],
  [70, "a fault of Troupe itself"],
  [73, "a file or folder cannot be made"],
  [74, "I/O; output that cannot be written"],
  [75, "not now: data folder in use, rate limit, queue full, time over, a server that does not answer within 20 s"],
  [77, "the key is missing, unknown, or may not do this"],
  [78, "settings, a key file or a certificate that cannot be used"],
  [130, "ended by Ctrl-C"],
  [141, "nobody reads the output any more"],
];

/** What the command itself refuses. The message is a sentence: capital first, no full stop, never a secret. */
export class CliError extends Error {
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** A server that takes connections and answers nothing. */
export class SilentServerError extends CliError {
  /** For those who try again. */
  readonly code = "timeout";

  constructor(server: string | undefined, ms: number) {
    super(exitCodes.tryLater, silence(server, ms));
  }
}

function silence(server: string | undefined, ms?: number): string {
  const since = ms === undefined ? "in time" : `within ${ms / 1_000} s`;
  return `The server at "${server}" did not answer ${since}: it hangs, or something between is slow`;
}

/** The parts of TroupeError that are needed to tell of it; its class would bring the whole client along. */
interface ServerRefusal {
  readonly code: string;
  readonly message: string;
  readonly retryAfterSeconds?: number | undefined;
  readonly cause?: unknown;
}

const codesOfRefusals: Readonly<Record<string, ExitCode>> = {
  unavailable: exitCodes.unreachable,
  internal: exitCodes.software,
  timeout: exitCodes.tryLater,
  rate_limit_exceeded: exitCodes.tryLater,
  queue_full: exitCodes.tryLater,
  overloaded: exitCodes.tryLater,
  unauthenticated: exitCodes.notAllowed,
  forbidden: exitCodes.notAllowed,
};

/** Of what no Troupe said: the client itself, or something on the way. */
const codesOfOthers: Readonly<Record<string, ExitCode>> = {
  timeout: exitCodes.tryLater,
  unauthenticated: exitCodes.notAllowed,
  permission_denied: exitCodes.notAllowed,
};

/** `server`: its URL, for a server that did not answer. */
export function explainError(
  error: unknown,
  server: string | undefined,
): { readonly exitCode: ExitCode; readonly text: string } {
  if (error instanceof CliError) return { exitCode: error.exitCode, text: error.message };
  if (isServerRefusal(error)) {
    const { code, retryAfterSeconds } = error;
    const later = retryAfterSeconds === undefined ? "" : `; try again in ${Math.ceil(retryAfterSeconds)} s`;
    const text = `${sentenceOf(error, server)} (${code})${later}`;
    const exitCode = isWordOfTroupe(error)
      ? (codesOfRefusals[code] ?? exitCodes.refused)
      : (codesOfOthers[code] ?? exitCodes.unreachable);
    return { exitCode, text };
  }
  if (hasExitCode(error)) return { exitCode: error.exitCode, text: error.message };
  if (isSystemError(error)) return { exitCode: exitCodes.io, text: error.message };
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { exitCode: exitCodes.software, text };
}

function isServerRefusal(error: unknown): error is ServerRefusal {
  return error instanceof Error && error.name === "TroupeError";
}

/** Of backups and stores, which know how bad it is. */
function hasExitCode(error: unknown): error is Error & { readonly exitCode: ExitCode } {
  return error instanceof Error && "exitCode" in error && typeof error.exitCode === "number";
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error && "code" in error;
}

/** What Troupe refuses it signs with its domain: what is not signed was said by something else, a proxy or the REST face. */
function isWordOfTroupe({ cause }: ServerRefusal): boolean {
  const { details = [] } = (cause ?? {}) as { readonly details?: readonly { readonly type?: string }[] };
  return details.some(({ type }) => type === "google.rpc.ErrorInfo");
}

/** Where nobody said anything, the client has these words. */
const clientsCodes: ReadonlySet<string> = new Set(["cancelled", "connection_lost"]);

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there; is it running?",
  ENOTFOUND: "there is no host of that name",
  EAI_AGAIN: "the name of the host cannot be looked up now",
  ECONNRESET: "it closed the connection",
  EPIPE: "it closed the connection",
  EHOSTUNREACH: "there is no way to that host",
  ENETUNREACH: "there is no way to that network",
  ETIMEDOUT: "it does not answer",
  EPROTO: "it does not speak TLS there, or not this TLS",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is not signed by a known authority (--tls-ca FILE)",
  SELF_SIGNED_CERT_IN_CHAIN: "its certificate is not signed by a known authority (--tls-ca FILE)",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate is not signed by a known authority (--tls-ca FILE)",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "its certificate is not signed by a known authority (--tls-ca FILE)",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host",
  CERT_HAS_EXPIRED: "its certificate has expired",
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: "it wants a client certificate (--tls-cert FILE --tls-key FILE)",
  ERR_SSL_PACKET_LENGTH_TOO_LONG: "it does not speak TLS there",
  ERR_SSL_WRONG_VERSION_NUMBER: "it does not speak TLS there",
};

/** A connection that failed says so in the words of Node, which leave out what was to be reached. */
function sentenceOf(error: ServerRefusal, server: string | undefined): string {
  const { code, message, cause } = error;
  if (server === undefined || cause === undefined || isWordOfTroupe(error)) return message;
  const failed = systemCodeOf(cause);
  if (failed !== undefined) return `Cannot reach the server at "${server}": ${reasons[failed] ?? failed}`;
  if (code === "timeout") return silence(server);
  if (clientsCodes.has(code)) return message;
  const said = message === "" ? "is this the port of its control plane?" : message;
  return `The server at "${server}" does not answer as Troupe does: ${said}`;
}

function systemCodeOf(cause: unknown): string | undefined {
  let reason = cause;
  for (let depth = 0; depth < 8 && reason instanceof Error; depth += 1) {
    const { code } = reason as { readonly code?: unknown };
    if (typeof code === "string" && /^[A-Z]/.test(code)) return code;
    reason = reason.cause;
  }
  return undefined;
}
