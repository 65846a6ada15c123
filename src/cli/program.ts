/**
 * `troupe`: the tree of its commands and what is the same for all of them, options, help, errors and exit codes. A group declares its
 * commands without loading what they need; the client of the control plane is loaded by the first call, a server by `troupe serve` only.
 */
import type { Writable } from "node:stream";
import { Command, CommanderError } from "commander";
import type { CliIo, Hosts } from "./cli-io.ts";
import type { CommandAction, CommandGroup, Work } from "./command-action.ts";
import { actorCommands } from "./commands/actors.ts";
import { completionCommands } from "./commands/completion.ts";
import { eventCommands } from "./commands/events.ts";
import { logCommands } from "./commands/logs.ts";
import { maintenanceCommands } from "./commands/maintenance.ts";
import { moduleCommands } from "./commands/modules.ts";
import { nodeCommands } from "./commands/node.ts";
import { processCommands } from "./commands/processes.ts";
import { registryCommands } from "./commands/registries.ts";
import { serverCommands } from "./commands/server.ts";
import { serviceCommands } from "./commands/services.ts";
import { toolCommands } from "./commands/tools.ts";
import { type ExitCode, exitCodeMeanings, exitCodes, explainError } from "./exit-codes.ts";
import { harmlessText } from "./harmless.ts";
import { type Options, Run } from "./run.ts";

const groups: readonly CommandGroup[] = [
  processCommands,
  serviceCommands,
  toolCommands,
  moduleCommands,
  registryCommands,
  nodeCommands,
  actorCommands,
  logCommands,
  eventCommands,
  maintenanceCommands,
];

/** `words` are what follows `troupe`. Never rejects. Resolves with the exit code, when everything is written. */
export async function runCli(words: readonly string[], io: CliIo, hosts: Hosts): Promise<ExitCode> {
  const pipe = new AbortController();
  const closePipe = (error: NodeJS.ErrnoException): void => pipe.abort(error);
  for (const stream of [io.stdout, io.stderr]) stream.on("error", closePipe);
  const signal = AbortSignal.any([io.signal, pipe.signal]);
  let exitCode: ExitCode = exitCodes.done;
  let run: Run | undefined;
  const action: CommandAction = <Words extends readonly unknown[]>(work: Work<Words>) =>
    async function (this: Command, ...given: unknown[]) {
      run = new Run(io, this.optsWithGlobals<Options>(), signal);
      // Behind the words that were declared, commander passes the options and the command.
      exitCode = (await work(run, ...(given.slice(0, -2) as unknown as Words))) ?? exitCodes.done;
    };
  try {
    await cliProgram(io, hosts, action).parseAsync(wholeCommand(words), { from: "user" });
  } catch (error) {
    exitCode = endedBy(error, io, pipe.signal, run?.url);
  } finally {
    await run?.close();
    // Whether the last words arrived is told after they were written.
    for (const stream of [io.stdout, io.stderr]) await written(stream, io.signal);
    if (pipe.signal.aborted && exitCode !== exitCodes.interrupted) exitCode = unwritten(pipe.signal.reason, io);
    for (const stream of [io.stdout, io.stderr]) stream.removeListener("error", closePipe);
  }
  return exitCode;
}

function cliProgram(io: CliIo, hosts: Hosts, action: CommandAction): Command {
  const program = new Command("troupe")
    .description("Hosts extensions for AI agents: serves, and looks after a server over its control plane")
    .option("--server <address>", "URL or host:port of the control plane (TROUPE_SERVER; default: 127.0.0.1:8081)")
    .option("--key-file <file>", "file with the API key (TROUPE_KEY_FILE; or the key itself in TROUPE_API_KEY)")
    .option("--tls-ca <file>", "certificate of the authority that the server's is signed by (TROUPE_TLS_CA)")
    .option("--tls-cert <file>", "client certificate, for mutual TLS (TROUPE_TLS_CERT)")
    .option("--tls-key <file>", "its private key (TROUPE_TLS_KEY)")
    .option("--json", "print one JSON document, or one line for each item of a stream")
    .helpOption("-h, --help", "show what a command does")
    .helpCommand(false)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      outputError: (text, write) => write(harmlessText(usageSentence(text))),
      getOutHelpWidth: () => (io.stdout.isTTY === true ? io.stdout.columns || 80 : 100),
      getErrHelpWidth: () => (io.stderr.isTTY === true ? io.stderr.columns || 80 : 100),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .addHelpText("after", `\nWithout a command, it serves.\n\nExit codes:\n${exitCodeLines()}\n`);
  serverCommands(program, action, hosts);
  for (const group of groups) group(program, action);
  completionCommands(program, action);
  return program;
}

/** `troupe` alone serves; `--version` is the one word that is spelled like an option. */
function wholeCommand(words: readonly string[]): readonly string[] {
  if (words.length === 0) return ["serve"];
  return words[0] === "--version" || words[0] === "-V" ? ["version", ...words.slice(1)] : words;
}

function endedBy(error: unknown, io: CliIo, pipe: AbortSignal, url: string | undefined): ExitCode {
  if (pipe.aborted) return exitCodes.pipeClosed;
  if (io.signal.aborted) return exitCodes.interrupted;
  // Commander has said what is wrong, or shown its help.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  const { exitCode, text } = explainError(error, url);
  io.stderr.write(`${harmlessText(text)}\n`);
  return exitCode;
}

function written(stream: Writable, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
    stream.write("", () => resolve());
  });
}

/** A reader that left wants no words; a disk that is full does, and the result is not to be taken for whole. */
function unwritten({ code, message }: NodeJS.ErrnoException, io: CliIo): ExitCode {
  if (code === "EPIPE" || code === "ECONNRESET") return exitCodes.pipeClosed;
  io.stderr.write(
    `Cannot write the output: ${harmlessText(code === "ENOSPC" ? "the disk is full" : (code ?? message))}\n`,
  );
  return exitCodes.io;
}

/** In the way all our errors are worded. What was typed too much may be a secret, and is not repeated. */
function usageSentence(text: string): string {
  const sentence = text
    .replace(/^error: /, "")
    .replace(/( but got \d+): [\s\S]*\.\n$/, "$1\n")
    .replace(/\.\n/, "\n");
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}

function exitCodeLines(): string {
  return exitCodeMeanings.map(([code, meaning]) => `  ${String(code).padStart(3)}  ${meaning}`).join("\n");
}
