/**
 * A proof of a whole store, while a server uses it or not.
 *
 *   for await (const message of verifyStore({ snapshots, folder, … })) …     progress now and then, findings, the summary last
 *
 * It looks at one moment, so what is written meanwhile is neither missing nor too much:
 *   1. tables     every file of the store against the checksums in it
 *   2. records    each decodes by its kind, and has every index entry and wake that its state asks for; sealed values have a known key
 *   3. keys       nothing lies there that no part of the server writes; blobs belong to a record; numbers of a sequence are not used again
 *   4. strays     index entries and wakes that no record asks for; looked for one by one only when 2 and 3 count differently
 *   5. packages   those that modules need are there, as they were unpacked
 * The loop is free between stretches. What is found is told by its address, never by its content.
 */
import { maintenanceProgressMs, verifyFindingsMax, verifyTurnMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { VerifyCounts, VerifyFinding, VerifyMessage } from "../ports/maintenance.ts";
import type { RawEntry, SnapshotSource, StoreSnapshot } from "../ports/snapshot.ts";
import { recordKey, sequenceKey } from "../runtime/keys.ts";
import { type Address, type AnyKind, addressText } from "../runtime/kind.ts";
import { formatCurrent } from "../store/meta.ts";
import { proveTables } from "../store/table-proof.ts";
import type { HeldPackages } from "./held-packages.ts";
import { lookAt, type PackageName, packagesNeeded } from "./package-files.ts";
import { keyIdOf, keyIdsOf, sealedIn } from "./sealed-values.ts";
import { placeOfKey } from "./store-places.ts";
import { readRecord, storedKinds } from "./stored-kinds.ts";

export interface VerifyOptions {
  readonly snapshots: SnapshotSource;
  readonly packages: Pick<HeldPackages, "hold">;
  /** With `store` and `modules` in it. */
  readonly folders: { readonly store: string; readonly modules: string };
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export async function* verifyStore(options: VerifyOptions): AsyncGenerator<VerifyMessage, void, undefined> {
  const release = options.packages.hold();
  try {
    const snapshot = await options.snapshots.snapshot();
    try {
      yield* new Verification(options, snapshot).run();
    } finally {
      await snapshot.close();
    }
  } finally {
    release();
  }
}

type Messages = AsyncGenerator<VerifyMessage, void, undefined>;
type Counts = { -readonly [Name in keyof VerifyCounts]: VerifyCounts[Name] };

const readTogether = 500;

class Verification {
  readonly #options: VerifyOptions;
  readonly #snapshot: StoreSnapshot;
  readonly #counts: Counts = {
    tables: 0,
    records: 0,
    indexEntries: 0,
    wakes: 0,
    blobs: 0,
    secrets: 0,
    packages: 0,
    findings: 0,
  };
  readonly #packages: PackageName[] = [];
  /** Highest number in use, by kind. */
  readonly #highest = new Map<string, number>();
  /** Index entries and wakes that a record asks for and has. */
  #matched = 0;
  #toldAt: number;
  #turnAt: number;

  constructor(options: VerifyOptions, snapshot: StoreSnapshot) {
    this.#options = options;
    this.#snapshot = snapshot;
    this.#toldAt = this.#turnAt = options.clock.monotonic();
  }

  async *run(): Messages {
    yield* this.#format();
    yield* this.#tables();
    yield* this.#records();
    yield* this.#sequences();
    yield* this.#keys();
    if (this.#matched !== this.#counts.indexEntries + this.#counts.wakes) {
      yield* this.#strays("x/");
      yield* this.#strays("w/");
    }
    yield* this.#modulePackages();
    yield { summary: { ...this.#counts } };
  }

  *#found(subject: VerifyFinding["subject"], address: string, problem: string): Generator<VerifyMessage> {
    this.#counts.findings += 1;
    if (this.#counts.findings <= verifyFindingsMax) yield { finding: { subject, address, problem } };
  }

  /** After each piece of work: gives the loop back in time, and tells how far it is. */
  async *#pause(): Messages {
    const { clock, signal } = this.#options;
    signal.throwIfAborted();
    const now = clock.monotonic();
    if (now - this.#toldAt >= maintenanceProgressMs) {
      this.#toldAt = now;
      yield { progress: { ...this.#counts } };
    }
    if (now - this.#turnAt < verifyTurnMs) return;
    await new Promise(setImmediate);
    this.#turnAt = clock.monotonic();
  }

  *#format(): Generator<VerifyMessage> {
    const { format } = this.#snapshot;
    if (format === formatCurrent) return;
    yield* this.#found("entry", "m/format", `The store is of format ${format}: this version opens ${formatCurrent}`);
  }

  async *#tables(): Messages {
    const { folders, clock } = this.#options;
    for await (const { name, isWhole } of proveTables(folders.store, clock)) {
      this.#counts.tables += 1;
      if (!isWhole) yield* this.#found("table", name, "It differs from its checksums: restore a backup");
      yield* this.#pause();
    }
  }

  async *#records(): Messages {
    const keyIds = await keyIdsOf(this.#snapshot);
    for await (const entries of this.#snapshot.stretches({ prefix: "a/" })) {
      const wanted = new Map<string, { readonly value: string; readonly by: Address }>();
      for (const entry of entries) {
        yield* this.#record(entry, keyIds, wanted);
        yield* this.#pause();
        if (wanted.size >= readTogether) yield* this.#wanted(wanted);
      }
      yield* this.#wanted(wanted);
    }
  }

  *#record(
    [key, text]: RawEntry,
    keyIds: ReadonlySet<string>,
    wanted: Map<string, { readonly value: string; readonly by: Address }>,
  ): Generator<VerifyMessage> {
    const place = placeOfKey(key.toString());
    // Told of with the keys.
    if (place?.part !== "record") return;
    const { address } = place;
    const kind = storedKinds.get(address.kind);
    if (kind === undefined) return;
    this.#counts.records += 1;
    if (kind.sequenced === true) {
      this.#highest.set(kind.name, Math.max(Number(address.key), this.#highest.get(kind.name) ?? 0));
    }
    const record = readRecord(kind, address, text.toString());
    if (record.problem !== undefined) {
      yield* this.#found("record", addressText(address), record.problem);
      return;
    }
    for (const [entryKey, value] of record.wants) wanted.set(entryKey, { value, by: address });
    for (const { envelope, context } of sealedIn(kind.name, record.state)) {
      this.#counts.secrets += 1;
      const keyId = keyIdOf(envelope);
      if (keyId !== undefined && keyIds.has(keyId)) continue;
      const how =
        keyId === undefined ? "is no sealed value" : `is sealed with the key "${keyId}", unknown to the store`;
      yield* this.#found("secret", addressText(address), `Its field "${context.field}" ${how}`);
    }
    if (kind.name === "module") this.#packages.push(...packagesNeeded(record.state as never));
  }

  /** Empties the map. */
  async *#wanted(wanted: Map<string, { readonly value: string; readonly by: Address }>): Messages {
    const keys = [...wanted.keys()];
    const values = await this.#snapshot.read(keys);
    for (const [at, key] of keys.entries()) {
      const { value, by } = wanted.get(key)!;
      if (values[at] === value) this.#matched += 1;
      else {
        const what = values[at] === undefined ? "is missing" : "names another";
        yield* this.#found("record", addressText(by), `Its entry "${key}" ${what}`);
      }
    }
    wanted.clear();
  }

  async *#sequences(): Messages {
    for (const [kind, highest] of this.#highest) {
      const key = sequenceKey(kind);
      const [last] = await this.#snapshot.read([key]);
      if (Number(last ?? Number.NaN) >= highest) continue;
      yield* this.#found("entry", key, `It does not reach ${highest}: numbers in use would be handed out again`);
    }
  }

  async *#keys(): Messages {
    for await (const entries of this.#snapshot.stretches({ keysOnly: true })) {
      const owners = new Map<string, { readonly key: string; readonly address: Address }>();
      for (const [raw] of entries) {
        const key = raw.toString();
        const place = placeOfKey(key);
        if (place === undefined) yield* this.#found("entry", key, "No part of the server writes it");
        else if ("address" in place && !storedKinds.has(place.address.kind))
          yield* this.#found("entry", key, `No kind is called "${place.address.kind}"`);
        else if (place.part === "index") this.#counts.indexEntries += 1;
        else if (place.part === "wake") this.#counts.wakes += 1;
        else if (place.part === "blob") {
          this.#counts.blobs += 1;
          owners.set(recordKey(place.address), { key, address: place.address });
        }
        yield* this.#pause();
      }
      const records = await this.#snapshot.read([...owners.keys()]);
      for (const [at, { key, address }] of [...owners.values()].entries()) {
        if (records[at] !== undefined) continue;
        yield* this.#found("blob", key, `There is no record "${addressText(address)}" that it belongs to`);
      }
    }
  }

  async *#strays(prefix: "x/" | "w/"): Messages {
    for await (const entries of this.#snapshot.stretches({ prefix })) {
      for (let at = 0; at < entries.length; at += readTogether) {
        yield* this.#straysAmong(entries.slice(at, at + readTogether));
      }
    }
  }

  async *#straysAmong(entries: readonly RawEntry[]): Messages {
    const asked = entries.flatMap(([rawKey, rawValue]) => {
      const key = rawKey.toString();
      const place = placeOfKey(key);
      if (place?.part !== "index" && place?.part !== "wake") return [];
      const address = place.part === "wake" ? place.address : { kind: place.address.kind, key: rawValue.toString() };
      const kind = storedKinds.get(address.kind);
      return kind === undefined ? [] : [{ key, value: rawValue.toString(), part: place.part, kind, address }];
    });
    const records = await this.#snapshot.read(asked.map(({ address }) => recordKey(address)));
    for (const [at, { key, value, part, kind, address }] of asked.entries()) {
      const problem = strayProblem(kind, address, records[at], key, value);
      if (problem !== undefined) yield* this.#found(part, key, problem);
      yield* this.#pause();
    }
  }

  async *#modulePackages(): Messages {
    for (const name of this.#packages) {
      this.#counts.packages += 1;
      const { problem } = await lookAt(this.#options.folders.modules, name);
      if (problem !== undefined)
        yield* this.#found("package", `module/${name.id}`, `Package "${name.hash}": ${problem}`);
      yield* this.#pause();
    }
  }
}

function strayProblem(
  kind: AnyKind,
  address: Address,
  text: string | undefined,
  key: string,
  value: string,
): string | undefined {
  if (text === undefined) return `There is no record "${addressText(address)}" that it names`;
  const record = readRecord(kind, address, text);
  // The record itself was told of.
  if (record.problem !== undefined || record.wants.get(key) === value) return undefined;
  return `The record "${addressText(address)}" does not ask for it`;
}
