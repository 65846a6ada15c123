/** One request as the curl command a user would type: short where it can be, and safe to paste into a shell. */

export interface Request {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** With the query, from the first slash. */
  readonly path: string;
  /** Sent as JSON when present. */
  readonly body?: unknown;
  /** A command whose output is the body, for what is too long to print. The body itself is still `body`. */
  readonly bodyFrom?: string;
}

export function curlCommand(base: string, { method, path, body, bodyFrom }: Request): string {
  const plain = method === "GET" || (method === "POST" && body !== undefined);
  const words = ["curl -sS", ...(plain ? [] : [`-X ${method}`]), quoted(`${base}${path}`)].join(" ");
  if (body === undefined) return words;
  const data = bodyFrom === undefined ? quoted(JSON.stringify(body)) : "@-";
  const command = [words, "-H 'Content-Type: application/json'", `-d ${data}`].join(" \\\n    ");
  return bodyFrom === undefined ? command : `${bodyFrom} |\n  ${command}`;
}

/** A shell word; single quotes only where the shell would otherwise read something into it. */
export function quoted(word: string): string {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
