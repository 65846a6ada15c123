/** Backups and proofs of a running server: few at once, each let go of when nobody takes it. */
import { join } from "node:path";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { BackupMessage, Maintenance, VerifyMessage } from "../ports/maintenance.ts";
import type { SnapshotSource } from "../ports/snapshot.ts";
import { backupOf } from "./backup.ts";
import type { HeldPackages } from "./held-packages.ts";
import { verifyStore } from "./verify.ts";
import { WorkLeases } from "./work-lease.ts";

export interface MaintenanceOptions {
  readonly snapshots: SnapshotSource;
  readonly packages: Pick<HeldPackages, "hold">;
  readonly dataDir: string;
  readonly serverVersion: string;
  readonly clock: Clock;
  readonly log: Log;
}

export function openMaintenance(options: MaintenanceOptions): Maintenance {
  const { snapshots, packages, dataDir, serverVersion, clock, log } = options;
  const leases = new WorkLeases(clock);
  const folders = { store: join(dataDir, "store"), modules: join(dataDir, "modules") };
  return {
    backup: (signal) =>
      leases.run("backup", signal, () =>
        backupNoted(backupOf({ snapshots, packages, folder: folders.modules, serverVersion, clock, signal }), log),
      ),
    verify: (signal) =>
      leases.run("proof", signal, () => verifyNoted(verifyStore({ snapshots, packages, folders, clock, signal }), log)),
  };
}

async function* backupNoted(
  messages: AsyncIterable<BackupMessage>,
  log: Log,
): AsyncGenerator<BackupMessage, void, undefined> {
  for await (const message of messages) {
    if ("header" in message) {
      const { takenAt, packagesLeftOut } = message.header;
      log.info("backup-begun", "A backup is being taken", { takenAt });
      for (const { id, hash, reason } of packagesLeftOut) {
        log.warn("backup-package-left-out", `Package "${hash}" is not in the backup: ${reason}`, { moduleId: id });
      }
    }
    if ("trailer" in message) log.info("backup-taken", "A backup was taken", { ...message.trailer });
    yield message;
  }
}

async function* verifyNoted(
  messages: AsyncIterable<VerifyMessage>,
  log: Log,
): AsyncGenerator<VerifyMessage, void, undefined> {
  for await (const message of messages) {
    const findings = "summary" in message ? message.summary.findings : undefined;
    if (findings === 0) log.info("store-verified", "The store was proved and is sound", { ...message });
    else if (findings !== undefined) log.error("store-unsound", `The store was proved: ${findings} findings`);
    yield message;
  }
}
