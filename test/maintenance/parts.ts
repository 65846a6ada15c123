/** A data folder with something of everything in it, written as the server writes: by the kinds' own decisions and the machine's own plan. */
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { moduleKind } from "../../src/actors/module.ts";
import { processKind } from "../../src/actors/process.ts";
import { moduleArchive } from "../../src/dev-registry/offers/modules.ts";
import { sampleModuleSource } from "../../src/dev-registry/offers/sample-modules.ts";
import { backupOf } from "../../src/maintenance/backup.ts";
import { type HeldPackages, holdablePackages } from "../../src/maintenance/held-packages.ts";
import { proveKeys } from "../../src/node/key-proof.ts";
import { openPackages } from "../../src/packages/packages.ts";
import type { BackupMessage } from "../../src/ports/maintenance.ts";
import type { Vault } from "../../src/ports/vault.ts";
import { planCommit } from "../../src/runtime/commit-plan.ts";
import { sequenceKey } from "../../src/runtime/keys.ts";
import type { AnyKind, Step } from "../../src/runtime/kind.ts";
import { troupeVersion } from "../../src/sdk/troupe-package.ts";
import { openVault } from "../../src/secrets/vault.ts";
import type { DurableStore } from "../../src/store/durable-store.ts";
import { openLevelStore } from "../../src/store/level-store.ts";
import { type KeptLog, keptLog, wallClock } from "../store/parts.ts";

export const secretsKey = Buffer.alloc(32, 7).toString("base64");

export class DataFolder {
  readonly path: string;
  readonly store: DurableStore;
  readonly packages: HeldPackages;
  readonly vault: Vault;
  readonly log: KeptLog;

  static async make(): Promise<DataFolder> {
    const path = await mkdtemp(join(tmpdir(), "troupe-maintenance-"));
    const log = keptLog();
    const store = await openLevelStore({ folder: join(path, "store"), clock: wallClock, log });
    const vault = openVault({ key: secretsKey });
    await proveKeys(store, vault);
    return new DataFolder(path, store, vault, log);
  }

  private constructor(path: string, store: DurableStore, vault: Vault, log: KeptLog) {
    this.path = path;
    this.store = store;
    this.vault = vault;
    this.log = log;
    const packages = openPackages({ folder: this.modules, serverVersion: troupeVersion(), log });
    this.packages = holdablePackages(packages, log);
  }

  get modules(): string {
    return join(this.path, "modules");
  }

  async createProcess(id: number, code = `return ${id}`): Promise<void> {
    const create = {
      type: "create",
      id,
      code,
      ref: `r/${id}`,
      timeoutMs: null,
      envConfig: {},
      autorun: false,
    } as const;
    const step = processKind.decide(null, create, 1_700_000_000_000 + id);
    await this.#write(processKind as never, String(id), step as never, [
      { key: sequenceKey("process"), value: String(id) },
    ]);
  }

  /** Answers the hash of its package. */
  async installModule(id: string, source = sampleModuleSource("adapter", "1.0.0")): Promise<string> {
    const archive = moduleArchive({ id, name: id, type: "adapter", description: id, version: "1.0.0", source });
    const hash = createHash("sha256").update(archive).digest("hex");
    await this.packages.add(archive, hash);
    const content = {
      name: id,
      description: id,
      version: "1.0.0",
      hash,
      hasIcon: false,
      configSchema: {},
      secretsSchema: {},
    };
    const install = {
      type: "install",
      id,
      moduleType: "adapter",
      source: "https://example.org/m.tgz",
      registry: null,
      autoUpdate: false,
      constraint: null,
      content,
    } as const;
    const { state } = moduleKind.decide(null, install, 1_700_000_000_000);
    const secrets = this.vault.seal('{"token":"hush"}', { kind: "module", id, field: "secrets" });
    await this.#write(moduleKind as never, id, { state: { ...state, secrets } } as never);
    return hash;
  }

  async #write(
    kind: AnyKind,
    key: string,
    step: Step<unknown, unknown>,
    extra: { key: string; value: string }[] = [],
  ): Promise<void> {
    const address = { kind: kind.name, key };
    const { epoch } = this.store;
    const commit = planCommit({ kind, address, epoch, revision: 0, before: null, step, commands: [], extra });
    const [outcome] = await this.store.commit([commit]);
    if (outcome !== "ok") throw new Error(`not written: ${outcome}`);
  }

  backup(signal = new AbortController().signal): AsyncGenerator<BackupMessage, void, undefined> {
    const { store, packages, modules } = this;
    return backupOf({
      snapshots: store,
      packages,
      folder: modules,
      serverVersion: "0.1.0",
      clock: wallClock,
      signal,
    });
  }

  async remove(): Promise<void> {
    await this.store.close();
    await rm(this.path, { recursive: true, force: true });
  }
}

/** Ten processes, one of them with code larger than a chunk, and two modules. */
export async function filledFolder(): Promise<DataFolder> {
  const folder = await DataFolder.make();
  for (let id = 1; id <= 10; id += 1) await folder.createProcess(id, id === 5 ? "x".repeat(700_000) : undefined);
  await folder.installModule("one");
  await folder.installModule("two", sampleModuleSource("adapter", "2.0.0"));
  return folder;
}

export async function* chunksOf(messages: AsyncIterable<BackupMessage>): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const message of messages) if ("chunk" in message) yield message.chunk;
}

export async function bytesOf(messages: AsyncIterable<BackupMessage>): Promise<Buffer> {
  return Buffer.concat(await collect(chunksOf(messages)));
}

export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}
