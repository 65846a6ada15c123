/**
 * One node of the service, put together: the only place that knows every part. Opening goes bottom up (store, machine, work
 * owed, faces), so nobody is let in before recovery is done; closing goes top down, so that what was admitted can end.
 */
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Settings } from "../config.ts";
import { tracesFlushMs } from "../limits.ts";
import { NodeDraining } from "../maintenance/draining.ts";
import type { LogBook } from "../observability/log-book.ts";
import { readOnCollect } from "../observability/metrics-sources.ts";
import { openObservation } from "../observability/observation.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log, LogLevel } from "../ports/log.ts";
import { noDeadLetters } from "../runtime/dead-letters.ts";
import { openLevelStore } from "../store/level-store.ts";
import { openLogDisk } from "../store/log-disk.ts";
import { seedInBackground, startMachine, watchStore } from "./background.ts";
import { serverVersion } from "./builtins.ts";
import { Closers } from "./closers.ts";
import { openFaces } from "./faces.ts";
import { entranceFrom, refuseUnknownRoutes, vaultFrom, vaultFromFile } from "./from-settings.ts";
import { proveKeys } from "./key-proof.ts";
import { openMachine } from "./machine.ts";
import { NodeReadiness } from "./readiness.ts";
import { operatorRowsOf, rowsOf } from "./rows.ts";

export interface NodeOptions {
  readonly settings: Settings;
  readonly clock: Clock;
  /** Operators change its level while the node runs. */
  readonly log: Log & { level: LogLevel };
  /** The records of `log`. Whoever made it closes it, after the node. */
  readonly logBook: LogBook;
  /** The store has failed for too long: only a restart of the process can help. */
  readonly onFatal: (reason: string) => void;
}

export interface Node {
  /** `http://127.0.0.1:8080` */
  readonly http: string;
  /** `127.0.0.1:8081` */
  readonly grpc: string;
  /** Resolves with the name of a caller who wants this node to end: close it, as after SIGTERM. */
  readonly drainAsked: Promise<string>;
  /** Drains and closes; resolves within SERVICE_SHUTDOWN_TIMEOUT_MS and a little. */
  close(): Promise<void>;
}

/** Share of the shutdown time that admitted calls and running programs get before they are ended. */
const drainShare = 0.7;

/** Rejects with ConfigError, StoreOpenError, Failure refused (secrets key) or a system error (port in use). */
export async function openNode({ settings, onFatal, logBook, ...given }: NodeOptions): Promise<Node> {
  const observation = await openObservation({ ...given, version: serverVersion });
  const { clock, log, metrics, tracing } = observation;
  const entrance = entranceFrom(settings, clock, log);
  const folder = resolve(settings.SERVICE_DATA_DIR);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const givenVault = vaultFrom(settings);
  const closers = new Closers();
  closers.add(() => observation.eventLoop.close());
  try {
    const store = await openLevelStore({ folder: join(folder, "store"), clock, log, metrics });
    closers.add(() => store.close());
    // Neither key nor log is written before the store is open: that it is proves that the data folder is ours.
    const vault = givenVault ?? vaultFromFile(settings, folder, log);
    await proveKeys(store, vault);
    const keep = settings.SERVICE_LOG_RETENTION;
    if (keep > 0) {
      const logs = { folder: join(folder, "logs"), keep, now: () => clock.now(), log };
      await logBook.keepOn(() => openLogDisk(logs), log);
    }

    const machine = await openMachine({ settings, observation, folder, store, vault, closers });
    const { system, launcher, host } = machine;
    await startMachine({ settings, machine, store, vault, clock, log, closers });

    const readiness = new NodeReadiness(store);
    closers.add(watchStore(store, clock, onFatal));
    const drainMs = settings.SERVICE_SHUTDOWN_TIMEOUT_MS * drainShare;
    const draining = new NodeDraining({ runs: () => launcher.inspect(), drainMs, clock });
    const certificates = () => entrance.tls?.certificates() ?? [];
    const parts = { settings, machine, observation, store, vault, logBook };
    const rows = rowsOf(parts);
    refuseUnknownRoutes(entrance.rateLimits, rows.operations);
    const operatorRows = operatorRowsOf({
      ...parts,
      readiness,
      draining,
      certificates,
      threshold: given.log,
      folder,
    });
    readOnCollect(metrics.registry, {
      runs: () => launcher.inspect(),
      actors: () => system.census(),
      deadLetters: () => ({ ...noDeadLetters, ...system.deadLetters.counts() }),
      store: () => ({ ...store.inspect(), isFailing: !store.health().ok }),
      moduleProcesses: () => host.processes().filter(({ pid }) => pid !== null).length,
      certificates,
    });
    const faces = await openFaces({ settings, observation, store, rows, operatorRows, entrance, readiness, closers });

    const registryUrl = settings.SERVICE_DEFAULT_REGISTRY_URL;
    if (registryUrl !== undefined) void seedInBackground(rows.operations, registryUrl, clock, log);

    return {
      http: faces.http,
      grpc: faces.grpc,
      drainAsked: draining.asked,
      async close() {
        const end = clock.monotonic() + settings.SERVICE_SHUTDOWN_TIMEOUT_MS;
        readiness.drain();
        const drained = launcher.drain();
        await Promise.all([faces.close(drainMs), within(clock, drainMs, drained)]);
        launcher.stopAll();
        await within(clock, end - clock.monotonic(), drained);
        await system.stop(end);
        await tracing?.close(Math.min(tracesFlushMs, end - clock.monotonic()));
        await closers.close();
      },
    };
  } catch (error) {
    await closers.close();
    throw error;
  }
}

async function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  const { promise, resolve: giveUp } = Promise.withResolvers<void>();
  const cancel = clock.after(Math.max(0, ms), giveUp);
  await Promise.race([work, promise]);
  cancel();
}
