/** `troupe serve`: the whole server in the foreground until SIGTERM or SIGINT; and why it does not start, in a sentence with an exit code. */
import { ConfigError, configExitCode, type Settings } from "./config.ts";
import { DevRegistryStartError } from "./dev-registry/settings.ts";
import { isFailure } from "./errors/failure.ts";
import type { Node } from "./node/node.ts";
import { JsonLog } from "./observability/json-log.ts";
import { LogBook } from "./observability/log-book.ts";
import { systemClock } from "./runtime/system-clock.ts";
import { StoreOpenError } from "./store/store-open-error.ts";

const softwareExitCode = 70;

/** A second SIGINT this long after the first ends the process at once; sooner it is taken for a nervous key press. */
const forceAfterMs = 1_000;

/** Resolves when it serves. It ends the process itself. */
export async function serve(settings: Settings): Promise<void> {
  // Not before the settings are known to be good: it is most of what there is to load.
  const { openNode } = await import("./node/node.ts");
  const logBook = new LogBook({ clock: systemClock });
  const log = new JsonLog({
    clock: systemClock,
    records: logBook,
    level: settings.SERVICE_LOG_LEVEL,
    write: (line) => process.stdout.write(line),
  });
  const onFatal = (reason: string): void => {
    log.error("fatal", reason);
    void logBook.close().finally(() => process.exit(softwareExitCode));
  };
  const node = await openNode({ settings, clock: systemClock, log, logBook, onFatal });
  log.info("listening", "The service takes requests", { http: node.http, grpc: node.grpc, pid: process.pid });
  endOnSignals(node, log, logBook);
}

function endOnSignals(node: Node, log: JsonLog, logBook: LogBook): void {
  let endingSince: number | undefined;
  const end = (cause: string): void => {
    const now = systemClock.monotonic();
    if (endingSince !== undefined) {
      if (cause === "SIGINT" && now - endingSince >= forceAfterMs) process.exit(130);
      return;
    }
    endingSince = now;
    log.info("stopping", `${cause}: finishing what was admitted`);
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
        return leave(softwareExitCode);
      },
    );
  };
  process.on("SIGTERM", end);
  process.on("SIGINT", end);
  void node.drainAsked.then((caller) => end(`Drain by "${caller}"`));
}

/** undefined: it is not one of the reasons that are told in a sentence. */
export function explainStart(error: unknown): { readonly text: string; readonly exitCode: number } | undefined {
  if (error instanceof ConfigError) return { text: error.message, exitCode: configExitCode };
  if (error instanceof DevRegistryStartError) return { text: error.message, exitCode: error.exitCode };
  if (error instanceof StoreOpenError) return { text: error.message, exitCode: error.exitCode };
  return isFailure(error) ? { text: error.message, exitCode: configExitCode } : undefined;
}
