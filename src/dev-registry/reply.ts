/** An answer before it is sent: faults may still change it. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export function jsonReply(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Reply {
  const body = Buffer.from(JSON.stringify(value));
  return { status, headers: { "Content-Type": "application/json", ...headers }, body };
}

/** `error` is a word for programs, `message` a sentence for people. */
export function errorReply(
  status: number,
  error: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return jsonReply(status, { error, message }, headers);
}
