/** What a module gets at setup: its settings, the log, and `fetch`, its only way out. */
import type { FetchAnswer, FetchRequest, JsonObject, ModuleContext } from "../../sdk/sdk.ts";
import type { HostMessage } from "../protocol.ts";
import type { Outbox } from "./outbox.ts";

interface Waiting {
  readonly request: FetchRequest;
  resolve(answer: FetchAnswer): void;
  reject(error: Error): void;
}

type Settled = Extract<HostMessage, { type: "fetched" | "fetch-failed" }>;

export class Fetches {
  readonly #outbox: Outbox;
  readonly #inFlight = new Map<number, Waiting>();
  readonly #queue: Waiting[] = [];
  #lastId = 0;
  /** More than so many at once wait here for their turn. */
  inFlightMax = 1;

  constructor(outbox: Outbox) {
    this.#outbox = outbox;
  }

  readonly fetch = (request: FetchRequest): Promise<FetchAnswer> =>
    new Promise((resolve, reject) => {
      this.#queue.push({ request, resolve, reject });
      this.#advance();
    });

  settle(message: Settled): void {
    const waiting = this.#inFlight.get(message.id);
    this.#inFlight.delete(message.id);
    if (message.type === "fetched") {
      waiting?.resolve({ ...message.answer, body: new Uint8Array(Buffer.from(message.answer.body, "base64")) });
    } else {
      waiting?.reject(Object.assign(new Error(message.message), { code: message.code }));
    }
    this.#advance();
  }

  #advance(): void {
    while (this.#inFlight.size < this.inFlightMax) {
      const waiting = this.#queue.shift();
      if (waiting === undefined) return;
      try {
        const id = ++this.#lastId;
        this.#outbox.send({ type: "fetch", id, ...toMessage(waiting.request) });
        this.#inFlight.set(id, waiting);
      } catch (error) {
        waiting.reject(error as Error);
      }
    }
  }
}

/** Made member by member: what is not in the contract must not reach the host, which would end the process for it. */
function toMessage({ url, method, headers, body, redirectsMax, timeoutMs }: FetchRequest) {
  return {
    url: String(url),
    ...(method !== undefined && { method: String(method) }),
    ...(headers !== undefined && {
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
    }),
    ...(body !== undefined && { body: Buffer.from(body as Uint8Array).toString("base64") }),
    ...(redirectsMax !== undefined && { redirectsMax: wholeNumber(redirectsMax, 0, 100) }),
    ...(timeoutMs !== undefined && { timeoutMs: wholeNumber(timeoutMs, 1, Number.MAX_SAFE_INTEGER) }),
  };
}

function wholeNumber(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, Math.trunc(Number(value)) || 0));
}

export function contextOf(config: object, secrets: object, fetches: Fetches, outbox: Outbox): ModuleContext {
  const line = (level: "debug" | "info" | "warn" | "error") => (message: string) =>
    outbox.send({ type: "log", level, message: String(message).slice(0, lineCharactersMax) });
  return {
    config: config as JsonObject,
    secrets: secrets as JsonObject,
    fetch: fetches.fetch,
    log: { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") },
  };
}

/** The host keeps less; this only keeps a huge one from being sent. */
const lineCharactersMax = 8_192;
