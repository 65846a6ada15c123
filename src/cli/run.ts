/** One run of one command: its options, where it writes, the server it talks to once it does, and what ends it early. */
import type { Message } from "@bufbuild/protobuf";
import type { CliIo } from "./cli-io.ts";
import { type ConnectionOptions, readConnection } from "./connection.ts";
import type { Item } from "./item.ts";
import { Output } from "./output.ts";
import { Progress } from "./progress.ts";
import type { Session } from "./session.ts";

/** As commander reads them; each command knows the types of its own. */
export type Options = Readonly<Record<string, unknown>> & ConnectionOptions;

/** Of every call: Ctrl-C ends it. */
export interface Calling {
  readonly signal: AbortSignal;
}

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

  /** A call, its answer as plain JSON. */
  async ask(call: Call): Promise<Item> {
    const { client, plain } = await this.session();
    return plain(await call(client, { signal: this.signal }));
  }

  /** The same for what may take long: stderr says that it goes on. */
  askLong(what: string, call: Call): Promise<Item> {
    return this.during(what, () => this.ask(call));
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

  async #open(): Promise<Session> {
    const connection = readConnection(this.options, this.io.environment);
    this.url = connection.url;
    return (await import("./session.ts")).openSession(connection);
  }
}
