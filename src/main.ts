#!/usr/bin/env node
/**
 * The command: `troupe` serves in the foreground, its other commands look after a server (src/cli/program.ts has them all, and the exit
 * codes). Nothing of the server is loaded for those.
 */
import type { Hosts } from "./cli/cli-io.ts";
import { CliError, type ExitCode } from "./cli/exit-codes.ts";
import { runCli } from "./cli/program.ts";

const hosts: Hosts = {
  serve: async () => {
    const { serve } = await import("./serve.ts");
    // The server has signals of its own, and ends the process when it is done.
    process.removeListener("SIGINT", interrupt);
    await started(async () => serve(await readSettings()));
    await new Promise(() => undefined);
  },
  devRegistry: () => {
    process.removeListener("SIGINT", interrupt);
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

function interrupt(): void {
  if (interrupted.signal.aborted) process.exit(130);
  interrupted.abort();
}

process.on("SIGINT", interrupt);
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
// What was written is on its way; nothing that is still open, a pipe to stdin or a watcher's socket, keeps the command.
process.exit();
