/**
 * A snapshot of LevelDB: the engine keeps every entry of that moment until it is closed, whatever is written over it. Reading takes place in
 * the thread pool, a bounded stretch at a time.
 */
import type { Level } from "level";
import { snapshotEntriesTogetherMax, snapshotStretchBytes } from "../limits.ts";
import type { RawEntry } from "../ports/snapshot.ts";
import type { DatabaseSnapshot } from "./database.ts";

const nothing = Buffer.alloc(0);

export function levelSnapshot(level: Level<string, string>): DatabaseSnapshot {
  const snapshot = level.snapshot();
  return {
    getMany: (keys) => level.getMany<string, string>([...keys], { snapshot }),
    iterate({ gte, lt, keysOnly = false }) {
      const iterator = level.iterator<Buffer, Buffer>({
        snapshot,
        keyEncoding: "buffer",
        valueEncoding: "buffer",
        values: !keysOnly,
        highWaterMarkBytes: snapshotStretchBytes,
        ...(gte === undefined ? {} : { gte: Buffer.from(gte) }),
        ...(lt === undefined ? {} : { lt: Buffer.from(lt) }),
      });
      return {
        async next() {
          const entries: readonly RawEntry[] = await iterator.nextv(snapshotEntriesTogetherMax);
          return keysOnly ? entries.map(([key]) => [key, nothing] as const) : entries;
        },
        close: () => iterator.close(),
      };
    },
    close: () => snapshot.close(),
  };
}
