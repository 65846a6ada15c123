#!/usr/bin/env node
/**
 * The command: `troupe` serves in the foreground, `troupe config check` and `troupe config print` look at the settings,
 * `troupe dev-registry` serves the development registry, `troupe module new` writes a module to start from, `troupe mcp` passes MCP on
 * from its stdin to a running service.
 * Exit codes follow sysexits: 64 usage, 65 unusable data, 73 a folder that cannot be made, 74 I/O, 75 data folder in use, 78 settings;
 * 70 anything else.
 */
import { runMcp } from "./cli/mcp.ts";
import { runModuleNew } from "./cli/module-new.ts";
import { ConfigError, configExitCode, maskedSettings, parseSettings, type Settings } from "./config.ts";
import { DevRegistryStartError } from "./dev-registry/settings.ts";
import { isFailure } from "./errors/failure.ts";
import type { Node } from "./node.ts";
import { JsonLog } from "./observability/json-log.ts";
import { LogBook } from "./observability/log-book.ts";
import { systemClock } from "./runtime/system-clock.ts";
import { troupeVersion } from "./sdk/troupe-package.ts";
import { StoreOpenError } from "./store/store-open-error.ts";

const exitCodes = { usage: 64, software: 70 } as const;
const usage =
  "Usage: troupe [serve] | troupe config check | troupe config print | troupe dev-registry | troupe module new NAME [--type TYPE] [--into FOLDER] | troupe mcp [--url URL] [--key-file FILE] | troupe --version\n";

/** A second SIGINT this long after the first ends the process at once; sooner it is taken for a nervous key press. */
const forceAfterMs = 1_000;

async function main(words: readonly string[]): Promise<void> {
  if (words[0] === "module" && words[1] === "new") {
    process.exitCode = runModuleNew(words.slice(2), {
      stdout: (text) => process.stdout.write(text),
      stderr: (text) => process.stderr.write(text),
    });
    return;
  }
  if (words[0] === "mcp") {
    process.exitCode = await runMcp(words.slice(1), process.env, process);
    return;
  }
  const command = words.join(" ") || "serve";
  switch (command) {
    case "serve":
      return serve(readSettings());
    case "dev-registry":
      return (await import("./dev-registry/run-dev-registry.ts")).runDevRegistry(process.env);
    case "config check":
      readSettings();
      process.stdout.write("The settings are valid\n");
      return;
    case "config print":
      process.stdout.write(`${JSON.stringify(maskedSettings(readSettings()), null, 2)}\n`);
      return;
    case "--version":
      process.stdout.write(`${troupeVersion()}\n`);
      return;
    case "--help":
      process.stdout.write(usage);
      return;
    default:
      process.stderr.write(usage);
      process.exitCode = exitCodes.usage;
  }
}

function readSettings(): Settings {
  return parseSettings(process.env);
}

async function serve(settings: Settings): Promise<void> {
  // Not before it is needed: the small commands start without the whole server (`troupe mcp` is started by each of its clients).
  const { openNode } = await import("./node.ts");
  const logBook = new LogBook({ clock: systemClock });
  const log = new JsonLog({
    clock: systemClock,
    records: logBook,
    level: settings.SERVICE_LOG_LEVEL,
    write: (line) => process.stdout.write(line),
  });
  const onFatal = (reason: string): void => {
    log.error("fatal", reason);
    void logBook.close().finally(() => process.exit(exitCodes.software));
  };
  const node = await openNode({ settings, clock: systemClock, log, logBook, onFatal });
  log.info("listening", "The service takes requests", { http: node.http, grpc: node.grpc, pid: process.pid });
  endOnSignals(node, log, logBook);
}

function endOnSignals(node: Node, log: JsonLog, logBook: LogBook): void {
  let endingSince: number | undefined;
  const end = (signal: "SIGTERM" | "SIGINT"): void => {
    const now = systemClock.monotonic();
    if (endingSince !== undefined) {
      if (signal === "SIGINT" && now - endingSince >= forceAfterMs) process.exit(130);
      return;
    }
    endingSince = now;
    log.info("stopping", `${signal}: finishing what was admitted`);
    const leave = async (exitCode: number): Promise<void> => {
      await logBook.close();
      process.exit(exitCode);
    };
    node.close().then(
      () => {
        log.info("stopped", "Everything is stored and closed", {
          durationMs: Math.round(systemClock.monotonic() - now),
        });
        return leave(0);
      },
      (error: unknown) => {
        log.error("stop-failed", "The service did not close cleanly", { error });
        return leave(exitCodes.software);
      },
    );
  };
  process.on("SIGTERM", end);
  process.on("SIGINT", end);
}

function explain(error: unknown): { readonly text: string; readonly exitCode: number } {
  if (error instanceof ConfigError) return { text: error.message, exitCode: configExitCode };
  if (error instanceof DevRegistryStartError) return { text: error.message, exitCode: error.exitCode };
  if (error instanceof StoreOpenError) return { text: error.message, exitCode: error.exitCode };
  if (isFailure(error)) return { text: error.message, exitCode: configExitCode };
  return {
    text: error instanceof Error ? (error.stack ?? error.message) : String(error),
    exitCode: exitCodes.software,
  };
}

main(process.argv.slice(2)).catch((error: unknown) => {
  const { text, exitCode } = explain(error);
  process.stderr.write(`${text}\n`);
  process.exit(exitCode);
});
