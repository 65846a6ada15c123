#!/usr/bin/env node
/**
 * The command: `troupe` serves in the foreground, its other commands look after a server (src/cli/program.ts has them all, and the exit
 * codes). Nothing of the server is loaded for those.
 */
import type { Hosts } from "./cli/cli-io.ts";
import { CliError, type ExitCode, exitCodes } from "./cli/exit-codes.ts";
import { runCli } from "./cli/program.ts";

const hosts: Hosts = {
  serve: async () => {
    // The server has signals of its own, and ends the process when it is done.
    leaveSignals();
    const { serve } = await import("./serve.ts");
    await started(async () => serve(await readSettings()));
    await new Promise(() => undefined);
  },
  devRegistry: () => {
    leaveSignals();
    return started(async () => (await import("./dev-registry/run-dev-registry.ts")).runDevRegistry(process.env));
  },
  checkSettings: () => started(async () => void (await readSettings())),
  settings: () => started(async () => (await import("./config.ts")).maskedSettings(await readSettings())),
};

async function readSettings() {
  return (await import("./config.ts")).parseSettings(process.env);
}

/** What keeps a server from starting is told in its own words and exit codes. */
async function started<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    const { explainStart } = await import("./serve.ts");
    const told = explainStart(error);
    throw told === undefined ? error : new CliError(told.exitCode as ExitCode, told.text);
  }
}

const interrupted = new AbortController();
const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
let endedBy: NodeJS.Signals | undefined;

/** A command that is ended leaves nothing half done behind; a second Ctrl-C does not wait for that. */
function interrupt(signal: NodeJS.Signals): void {
  if (endedBy !== undefined && signal === "SIGINT") process.exit(exitCodes.interrupted);
  endedBy ??= signal;
  interrupted.abort();
}

function leaveSignals(): void {
  for (const signal of signals) process.removeListener(signal, interrupt);
}

for (const signal of signals) process.on(signal, interrupt);
const exitCode = await runCli(
  process.argv.slice(2),
  {
    environment: process.env,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    signal: interrupted.signal,
  },
  hosts,
);
process.exitCode = exitCode;
leaveSignals();
// Whoever sent another signal than Ctrl-C's sees that the command ended by it.
if (exitCode === exitCodes.interrupted && endedBy !== undefined && endedBy !== "SIGINT")
  process.kill(process.pid, endedBy);
// What was written is on its way; nothing that is still open, a pipe to stdin or a watcher's socket, keeps the command.
process.exit();
