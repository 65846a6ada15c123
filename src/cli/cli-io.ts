/** What a command has of the world: streams, environment, Ctrl-C. The process's own in `main.ts`, others in tests. */
import type { Readable, Writable } from "node:stream";

/** A stream that may be a terminal. */
export type Terminal<Stream> = Stream & { readonly isTTY?: boolean | undefined; readonly columns?: number | undefined };

export interface CliIo {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stdin: Terminal<Readable> & { setRawMode?(isRaw: boolean): unknown };
  readonly stdout: Terminal<Writable>;
  readonly stderr: Terminal<Writable>;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

/** The commands that are a server themselves, or read a server's settings: who starts the command brings them, so that the others load none of it. */
export interface Hosts {
  serve(): Promise<void>;
  devRegistry(): Promise<void>;
  /** Throws, with all problems in its message. */
  checkSettings(): Promise<void>;
  /** Secrets masked. */
  settings(): Promise<Readonly<Record<string, unknown>>>;
}
