/** Work that nobody asks for: it begins with the node, goes on by itself, and what fails of it is tried again at the next start. */
import { resealAll } from "../actors/reseal-pass.ts";
import { startRetention } from "../actors/retention.ts";
import type { Settings } from "../config.ts";
import { storeFailingMsMax } from "../limits.ts";
import { startAutoUpdate } from "../operations/auto-update.ts";
import { startModules } from "../operations/module-start.ts";
import { type Operation, ownContext } from "../operations/operation.ts";
import { seedRegistry } from "../operations/registries.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { Store } from "../ports/store.ts";
import type { Vault } from "../ports/vault.ts";
import type { Closers } from "./closers.ts";
import { forgetPreviousKeys } from "./key-proof.ts";
import type { Machine } from "./machine.ts";

export interface BackgroundOptions {
  readonly settings: Settings;
  readonly machine: Machine;
  readonly store: Store;
  readonly vault: Vault;
  readonly clock: Clock;
  readonly log: Log;
  readonly closers: Closers;
}

/** Resolves when what is owed was taken up: from then on callers may be let in. */
export async function startMachine(options: BackgroundOptions): Promise<void> {
  const { settings, machine, store, vault, clock, log, closers } = options;
  const { system, modules, services, registries, processes, builtins, updates, packages, environment, launcher } =
    machine;
  await system.start();
  const started = await startModules({ modules, builtins, updates, packages, clock, log });
  // The active environment may be a package: what is queued waits for it.
  if (environment.moduleId === undefined) void started.packages.then(() => launcher.begin());
  else launcher.begin();
  const intervalMs = settings.SERVICE_AUTO_UPDATE_INTERVAL_MS;
  const contents = machine.serviceContents;
  closers.add(startAutoUpdate({ modules, updates, services, contents, clock, log, intervalMs }));
  closers.add(startRetention({ processes, clock, log, keepMs: settings.SERVICE_PROCESS_RETENTION }));
  if (settings.SERVICE_SECRETS_PREVIOUS_KEYS.length > 0) {
    void rotate(() => resealAll({ services, registries, modules, vault, log }), store, vault, log);
  }
}

/** In the background; until it is done every start needs the previous keys as well. */
async function rotate(resealAllOnce: () => Promise<boolean>, store: Store, vault: Vault, log: Log): Promise<void> {
  try {
    if (!(await resealAllOnce())) return;
    await forgetPreviousKeys(store, vault);
    log.info("secrets-rotated", "The previous secrets keys are not needed any more");
  } catch (error) {
    log.warn("secrets-reseal-incomplete", "Keep the previous secrets keys: the next start goes on", { error });
  }
}

export async function seedInBackground(
  operations: readonly Operation[],
  baseUrl: string,
  clock: Clock,
  log: Log,
): Promise<void> {
  try {
    const added = await seedRegistry(operations, baseUrl, ownContext("default-registry", clock));
    if (added) log.info("default-registry-added", `The registry at "${baseUrl}" was added`);
  } catch (error) {
    log.warn("default-registry-failed", `The registry at "${baseUrl}" could not be added; the next start tries again`, {
      error,
    });
  }
}

/** Calls `onFatal` when the store has failed for too long. The answer stops watching. */
export function watchStore(store: Store, clock: Clock, onFatal: (reason: string) => void): () => void {
  let cancel: (() => void) | undefined;
  const unsubscribe = store.onHealth((health) => {
    cancel?.();
    cancel = undefined;
    if (!health.ok) cancel = clock.after(storeFailingMsMax, () => onFatal(`The store keeps failing: ${health.reason}`));
  });
  return () => {
    unsubscribe();
    cancel?.();
  };
}
