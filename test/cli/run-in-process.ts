/** The commands of `troupe` as they are, without a process for each: their streams are the test's. */
import { PassThrough, Readable, Writable } from "node:stream";
import type { CliIo, Hosts } from "../../src/cli/cli-io.ts";
import { runCli } from "../../src/cli/program.ts";

export interface Ran {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Circumstances {
  readonly environment?: Readonly<Record<string, string>>;
  /** Text, which then ends; or a stream of the test's own. */
  readonly stdin?: string | CliIo["stdin"];
  /** Columns of the terminal that stdout and stderr are; absent: they are files. */
  readonly columns?: number;
  /** Ctrl-C is pressed once stdout has this. */
  readonly interruptAt?: RegExp;
  /** Ctrl-C is pressed with it. */
  readonly interrupt?: AbortSignal;
}

/** What a test does not serve itself. */
const noHosts: Hosts = {
  serve: () => Promise.reject(new Error("No server is started here")),
  devRegistry: () => Promise.reject(new Error("No registry is started here")),
  checkSettings: () => Promise.reject(new Error("There are no settings here")),
  settings: () => Promise.reject(new Error("There are no settings here")),
};

class Sink extends Writable {
  text = "";
  readonly isTTY: boolean;
  readonly columns: number | undefined;
  onText: () => void = () => undefined;

  constructor(columns: number | undefined) {
    super({ decodeStrings: false });
    this.isTTY = columns !== undefined;
    this.columns = columns;
  }

  override _write(chunk: string | Buffer, _encoding: string, done: () => void): void {
    this.text += String(chunk);
    done();
    this.onText();
  }
}

export async function runInProcess(words: readonly string[], circumstances: Circumstances = {}): Promise<Ran> {
  const { environment = {}, stdin, columns, interruptAt, interrupt: given } = circumstances;
  const interrupt = new AbortController();
  const stdout = new Sink(columns);
  const stderr = new Sink(columns);
  if (interruptAt !== undefined) {
    stdout.onText = () => {
      if (interruptAt.test(stdout.text)) interrupt.abort();
    };
  }
  const io: CliIo = {
    environment,
    stdin: typeof stdin === "string" ? Readable.from([Buffer.from(stdin)]) : (stdin ?? new PassThrough().end()),
    stdout,
    stderr,
    signal: AbortSignal.any([interrupt.signal, ...(given === undefined ? [] : [given])]),
  };
  const exitCode = await runCli(words, io, noHosts);
  return { exitCode, stdout: stdout.text, stderr: stderr.text };
}
