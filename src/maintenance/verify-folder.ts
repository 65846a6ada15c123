/**
 * The same proof of a data folder that no server has open.
 *
 *   for await (const message of verifyFolder("/var/lib/troupe")) …      as verifyStore: progress, findings, the summary last
 *
 * No entry is changed, and the epoch stays. A store that is too damaged to be opened is one finding that says so.
 */
import { join, resolve } from "node:path";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { VerifyMessage } from "../ports/maintenance.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { holdsDatabase, type OfflineStore, openOfflineStore } from "../store/offline-store.ts";
import { exitCodes, StoreOpenError } from "../store/store-open-error.ts";
import { verifyStore } from "./verify.ts";

export interface VerifyFolderOptions {
  readonly signal?: AbortSignal | undefined;
  readonly clock?: Clock | undefined;
  /** Absent: what opening the store has to say besides is not told. */
  readonly log?: Log | undefined;
}

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** Rejects with StoreOpenError: no store there (65), in use (75), not readable (74). */
export async function* verifyFolder(
  dataDir: string,
  { signal = new AbortController().signal, clock = systemClock, log = silent }: VerifyFolderOptions = {},
): AsyncGenerator<VerifyMessage, void, undefined> {
  const folder = resolve(dataDir);
  const folders = { store: join(folder, "store"), modules: join(folder, "modules") };
  let store: OfflineStore;
  try {
    store = await openOfflineStore(folders.store, clock, log);
  } catch (error) {
    const isDamaged =
      error instanceof StoreOpenError && error.exitCode === exitCodes.data && (await holdsDatabase(folders.store));
    if (!isDamaged) throw error;
    yield* tooDamaged(folders.store, error.message);
    return;
  }
  try {
    // Nobody removes packages: nothing has to be held.
    yield* verifyStore({ snapshots: store, packages: { hold: () => () => {} }, folders, clock, signal });
  } finally {
    await store.close();
  }
}

function* tooDamaged(address: string, problem: string): Generator<VerifyMessage> {
  yield { finding: { subject: "table", address, problem } };
  const nothing = { tables: 0, records: 0, indexEntries: 0, wakes: 0, blobs: 0, secrets: 0, packages: 0 };
  yield { summary: { ...nothing, findings: 1 } };
}
