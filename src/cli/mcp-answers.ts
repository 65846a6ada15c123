/** What the service answers to one POST /mcp, as messages: one JSON value, a list of them, or an event stream. Refusals are thrown. */
import { mcpProxyAnswerCharactersMax } from "../limits.ts";

/** A JSON-RPC message, looked at only as far as passing it on needs. */
export interface Answer {
  readonly id?: string | number | null;
  readonly result?: unknown;
  readonly error?: unknown;
  readonly method?: string;
}

/** JSON-RPC's code for what the server itself decides on. */
const serverErrorCode = -32_000;

/** The service said no to the whole request. */
export class ServiceRefusal extends Error {
  readonly code: number;
  readonly data: Readonly<Record<string, unknown>>;

  constructor(code: number, message: string, data: Readonly<Record<string, unknown>>) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** Rejects with ServiceRefusal, or with what fetch rejects with. */
export async function* answersOf(response: Response): AsyncGenerator<Answer> {
  if (!response.ok) throw refusalOf(response.status, await wholeText(response));
  if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
    for await (const data of eventData(response)) yield JSON.parse(data) as Answer;
    return;
  }
  const text = await wholeText(response);
  if (text === "") return;
  const value = JSON.parse(text) as Answer | Answer[];
  yield* Array.isArray(value) ? value : [value];
}

/** From the envelope of the service, from an error of the protocol, or from whatever a proxy in between says. */
function refusalOf(status: number, text: string): ServiceRefusal {
  const data = { status };
  let body: { error?: unknown; message?: unknown; code?: unknown; retryAfter?: unknown } | null;
  try {
    body = JSON.parse(text) as typeof body;
  } catch {
    return new ServiceRefusal(serverErrorCode, `It answered with status ${status}`, data);
  }
  const error = body?.error;
  if (typeof error === "object" && error !== null) {
    const { code, message } = error as { code?: unknown; message?: unknown };
    return new ServiceRefusal(Number.isInteger(code) ? (code as number) : serverErrorCode, String(message), data);
  }
  // A rate limit has its sentence in `message`.
  const sentence = typeof body?.message === "string" ? body.message : error;
  const code = body?.code ?? error;
  const message = typeof sentence === "string" ? sentence : `It answered with status ${status}`;
  const more = {
    ...(code === undefined ? {} : { code }),
    ...(body?.retryAfter ? { retryAfter: body.retryAfter } : {}),
  };
  return new ServiceRefusal(serverErrorCode, message, { ...data, ...more });
}

async function wholeText(response: Response): Promise<string> {
  let text = "";
  for await (const piece of textOf(response)) {
    text += piece;
    if (text.length > mcpProxyAnswerCharactersMax) throw new Error("Its answer is too large");
  }
  return text;
}

/** The data of each event (WHATWG HTML, 9.2.6); ids, names and comments are of no use here. */
async function* eventData(response: Response): AsyncGenerator<string> {
  let rest = "";
  let data: string[] = [];
  for await (const piece of textOf(response)) {
    const lines = (rest + piece).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    if (rest.length > mcpProxyAnswerCharactersMax) throw new Error("Its answer is too large");
    for (const line of lines) {
      if (line.startsWith("data:")) data.push(line.slice(line.startsWith("data: ") ? 6 : 5));
      else if (line === "" && data.length > 0) {
        yield data.join("\n");
        data = [];
      }
    }
  }
}

async function* textOf(response: Response): AsyncGenerator<string> {
  if (response.body === null) return;
  const decoder = new TextDecoder();
  for await (const chunk of response.body) yield decoder.decode(chunk as Uint8Array, { stream: true });
  yield decoder.decode();
}
