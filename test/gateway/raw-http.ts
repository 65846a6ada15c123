/** HTTP/1.1 written by hand: what `fetch` would refuse to send, or would hide. */
import net from "node:net";

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Everything received. */
  readonly text: string;
}

/** Sends the text and reads until the peer closes, or one whole answer arrived. */
export function rawRequest(
  port: number,
  text: string | readonly (string | Buffer)[],
  waitMs = 5_000,
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, "127.0.0.1");
    let received = "";
    const timer = setTimeout(() => finish(), waitMs);
    const finish = (): void => {
      clearTimeout(timer);
      socket.destroy();
      try {
        resolve(parseAnswer(received));
      } catch (error) {
        reject(error);
      }
    };
    socket.setEncoding("utf8");
    socket.on("data", (chunk: string) => {
      received += chunk;
      if (isWhole(received)) finish();
    });
    socket.on("close", finish);
    socket.on("error", (error) => {
      clearTimeout(timer);
      if (received === "") reject(error);
      else finish();
    });
    for (const part of typeof text === "string" ? [text] : text) socket.write(part);
  });
}

/** Sends the parts and answers with everything received until the peer closes. */
export function rawUntilClosed(port: number, parts: readonly (string | Buffer)[], waitMs = 10_000): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, "127.0.0.1");
    let received = "";
    const timer = setTimeout(() => socket.destroy(new Error(`Not closed after ${waitMs} ms: ${received}`)), waitMs);
    socket.setEncoding("utf8");
    socket.on("data", (chunk: string) => {
      received += chunk;
    });
    socket.on("error", reject);
    socket.on("close", () => {
      clearTimeout(timer);
      resolve(received);
    });
    for (const part of parts) socket.write(part);
  });
}

function isWhole(received: string): boolean {
  const split = received.indexOf("\r\n\r\n");
  if (split === -1 || /^HTTP\/1\.1 1\d\d/.test(received)) return false;
  const length = /\r\ncontent-length: (\d+)/i.exec(received.slice(0, split))?.[1];
  return length !== undefined && Buffer.byteLength(received.slice(split + 4)) >= Number(length);
}

export function parseAnswer(received: string): RawAnswer {
  const split = received.indexOf("\r\n\r\n");
  if (split === -1) throw new Error(`No answer: ${JSON.stringify(received)}`);
  const [line = "", ...fields] = received.slice(0, split).split("\r\n");
  const headers = Object.fromEntries(
    fields.map((field) => [
      field.slice(0, field.indexOf(":")).toLowerCase(),
      field.slice(field.indexOf(":") + 1).trim(),
    ]),
  );
  return { status: Number(line.split(" ")[1]), headers, body: received.slice(split + 4), text: received };
}

/** The answer is the error envelope and nothing else. */
export function envelopeOf(answer: RawAnswer): { error: string; code?: string } {
  if (!answer.headers["content-type"]?.startsWith("application/json")) throw new Error(`Not JSON: ${answer.text}`);
  const value = JSON.parse(answer.body) as { error: string; code?: string };
  const keys = Object.keys(value).sort().join();
  if (keys !== "code,error") throw new Error(`Not the envelope: ${answer.body}`);
  return value;
}
