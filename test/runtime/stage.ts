/** One machine on a memory disk, with a clock that stands still. */
import type { Log } from "../../src/ports/log.ts";
import type { Actors } from "../../src/runtime/actors.ts";
import { System, type SystemOptions } from "../../src/runtime/system.ts";
import { MemoryDisk, openMemoryStore } from "../store/memory-store.ts";
import { type Account, type AccountMessage, accountKind, type Bank } from "./account-kind.ts";
import { GatedStore } from "./gated-store.ts";
import { ManualClock } from "./manual-clock.ts";

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

export interface Stage {
  readonly clock: ManualClock;
  readonly disk: MemoryDisk;
  readonly store: GatedStore;
  readonly system: System;
  readonly accounts: Actors<Account, AccountMessage>;
}

export interface StageOptions extends Partial<SystemOptions> {
  readonly disk?: MemoryDisk;
  readonly manualClock?: ManualClock;
  readonly bank?: Bank;
  readonly kind?: typeof accountKind;
}

export async function openStage(options: StageOptions = {}): Promise<Stage> {
  const clock = options.manualClock ?? new ManualClock();
  const disk = options.disk ?? new MemoryDisk();
  const store = new GatedStore(await openMemoryStore({ clock, log: silentLog, engine: disk }));
  const system = new System({ store, clock, log: silentLog, random: () => 0, ...options });
  const accounts = system.register(options.kind ?? accountKind, options.bank ?? { pay: async () => {} });
  return { clock, disk, store, system, accounts };
}
