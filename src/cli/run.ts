/** One run of one command: its options, where it writes, the server it talks to once it does, and what ends it early. */
import type { Message } from "@bufbuild/protobuf";
import type { CliIo } from "./cli-io.ts";
import { type ConnectionOptions, readConnection } from "./connection.ts";
import { SilentServerError } from "./exit-codes.ts";
import type { Item } from "./item.ts";
import { Output } from "./output.ts";
import { Progress } from "./progress.ts";
import type { Session } from "./session.ts";

/** As commander reads them; each command knows the types of its own. */
export type Options = Readonly<Record<string, unknown>> & ConnectionOptions;

/** Of every call: Ctrl-C ends it, and so does a server that hangs. */
export interface Calling {
  readonly signal: AbortSignal;
  /** Absent: as long as the server may take for anything. */
  readonly timeoutMs?: number;
}

/** Of every stream. */
export interface Streaming {
  readonly signal: AbortSignal;
}

/** A healthy server answers in milliseconds, a busy one in seconds: what takes longer hangs. */
export const answerMsMax = 20_000;
/** Of a stream, before its server must prove that it lives. */
const silenceMsMax = 10_000;

export type Call = (client: Session["client"], calling: Calling) => Promise<Message>;

export class Run {
  readonly io: CliIo;
  readonly options: Options;
  /** Aborted by Ctrl-C, and when nobody reads what is written. */
  readonly signal: AbortSignal;
  readonly out: Output;
  /** Of the server, once it was asked. */
  url: string | undefined;
  #session: Promise<Session> | undefined;

  constructor(io: CliIo, options: Options, signal: AbortSignal) {
    this.io = io;
    this.options = options;
    this.signal = signal;
    this.out = new Output(io, options.json === true, signal);
  }

  /** Throws CliError for settings that cannot be used; connects with the first call. */
  session(): Promise<Session> {
    this.#session ??= this.#open();
    return this.#session;
  }

  /** A call that is answered at once, or after `waitMs` that it asks for; its answer as plain JSON. */
  ask(call: Call, waitMs = 0): Promise<Item> {
    return this.#ask(call, { signal: this.signal, timeoutMs: answerMsMax + waitMs });
  }

  /** The same for what may take long: stderr says that it goes on. */
  askLong(what: string, call: Call): Promise<Item> {
    return this.during(what, () => this.#ask(call, { signal: this.signal }));
  }

  /**
   * A stream, as long as it goes on. One that is silent may have nothing to tell: the server is asked something else, and when it does
   * not answer that either, it hangs. Throws SilentServerError then.
   */
  async *stream<Message>(open: (streaming: Streaming) => AsyncIterable<Message>): AsyncGenerator<Message> {
    const { client } = await this.session();
    const hung = new AbortController();
    const signal = AbortSignal.any([this.signal, hung.signal]);
    let timer: NodeJS.Timeout | undefined;
    let isOver = false;
    const listen = (): void => {
      clearTimeout(timer);
      if (!isOver) timer = setTimeout(() => void prove(), silenceMsMax);
    };
    const prove = (): Promise<void> =>
      client.processes.listProcesses({ limit: 1 }, { signal, timeoutMs: answerMsMax }).then(listen, (error) => {
        // A server that drains refuses it, and goes on telling.
        if (error.code === "timeout") hung.abort();
        else listen();
      });
    try {
      listen();
      for await (const message of open({ signal })) {
        listen();
        yield message;
      }
    } catch (error) {
      throw hung.signal.aborted && !this.signal.aborted ? new SilentServerError(this.url, answerMsMax) : error;
    } finally {
      isOver = true;
      clearTimeout(timer);
    }
  }

  async during<Result>(what: string, work: (progress: Progress) => Promise<Result>): Promise<Result> {
    const progress = new Progress(this.io.stderr, what);
    try {
      return await work(progress);
    } finally {
      progress.end();
    }
  }

  async close(): Promise<void> {
    const session = await this.#session?.catch(() => undefined);
    session?.client.close();
  }

  async #ask(call: Call, calling: Calling): Promise<Item> {
    const { client, plain } = await this.session();
    return plain(await call(client, calling));
  }

  async #open(): Promise<Session> {
    const connection = readConnection(this.options, this.io.environment);
    this.url = connection.url;
    return (await import("./session.ts")).openSession(connection);
  }
}
