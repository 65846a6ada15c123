/** `context.fetch` of a module, on the host's side: every request is bounded here and goes out through the one outbound client. */
import { type FailureKind, isFailure } from "../errors/failure.ts";
import { moduleBytesWaitingMax, moduleFetchesMax, redirectsMax, toolAnswerBytesMax } from "../limits.ts";
import type { Fetcher, OutboundRequest } from "../ports/fetcher.ts";
import type { ChildMessageOf, HostMessage } from "./protocol.ts";

type FetchMessage = ChildMessageOf<"fetch">;

/** Kinds a module can do something about; the rest is `upstream_failed` to it. */
const kindsTold: ReadonlySet<FailureKind> = new Set(["timeout", "too_large", "invalid_request"]);

export class FetchService {
  readonly #fetcher: Fetcher;
  readonly #timeoutMs: number;
  readonly #send: (message: HostMessage) => void;
  readonly #bytesWaiting: () => number;
  readonly #stop = new AbortController();
  #inFlight = 0;
  #lastId = 0;

  constructor(
    fetcher: Fetcher,
    timeoutMs: number,
    link: { send(message: HostMessage): void; readonly bytesWaiting: number },
  ) {
    this.#fetcher = fetcher;
    this.#timeoutMs = timeoutMs;
    this.#send = (message) => link.send(message);
    this.#bytesWaiting = () => link.bytesWaiting;
  }

  /** False when the process reuses or forges an id. */
  take(message: FetchMessage): boolean {
    if (message.id <= this.#lastId) return false;
    this.#lastId = message.id;
    if (this.#inFlight >= moduleFetchesMax) {
      this.#fail(message.id, `A module has at most ${moduleFetchesMax} requests in flight`, "upstream_failed");
      return true;
    }
    this.#inFlight += 1;
    void this.#fetch(message).finally(() => {
      this.#inFlight -= 1;
    });
    return true;
  }

  /** The process is gone: its requests are let go. */
  close(): void {
    this.#stop.abort();
  }

  async #fetch(message: FetchMessage): Promise<void> {
    const { id } = message;
    try {
      const { status, headers, body, url } = await this.#fetcher.fetch(this.#request(message));
      if (this.#bytesWaiting() > moduleBytesWaitingMax) {
        this.#fail(id, "The module does not take its messages", "upstream_failed");
        return;
      }
      const answer = { status, headers, body: Buffer.from(body).toString("base64"), url };
      this.#send({ type: "fetched", id, answer });
    } catch (error) {
      if (!isFailure(error)) this.#fail(id, "The request failed", "upstream_failed");
      else this.#fail(id, error.message, kindsTold.has(error.kind) ? error.kind : "upstream_failed");
    }
  }

  #request(message: FetchMessage): OutboundRequest {
    const { url, method = "GET", headers = {}, body, timeoutMs = this.#timeoutMs } = message;
    return {
      url,
      method: method.toUpperCase(),
      headers,
      ...(body !== undefined && { body: Buffer.from(body, "base64") }),
      redirectsMax: Math.min(message.redirectsMax ?? 0, redirectsMax),
      bodyBytesMax: toolAnswerBytesMax,
      timeoutMs: Math.min(timeoutMs, this.#timeoutMs),
      signal: this.#stop.signal,
    };
  }

  #fail(id: number, message: string, code: string): void {
    this.#send({ type: "fetch-failed", id, message, code });
  }
}
