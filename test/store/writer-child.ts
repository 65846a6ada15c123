/**
 * A process that opens a store and writes until it is killed: `node writer-child.ts <folder> <writers> [<commits of each>]`.
 * Prints `open <epoch>`, then `<id>` for each acknowledged commit of one record and two entries. With 0 writers it only holds
 * the store.
 */
import { openLevelStore } from "../../src/store/level-store.ts";
import { StoreOpenError } from "../../src/store/store-open-error.ts";
import { keptLog, wallClock } from "./parts.ts";

const [folder, writers, commits = "Infinity"] = process.argv.slice(2) as [string, string, string?];
try {
  const store = await openLevelStore({ folder, clock: wallClock, log: keptLog() });
  process.stdout.write(`open ${store.epoch}\n`);
  const write = async (writer: number) => {
    for (let n = 0; n < Number(commits); n += 1) {
      const id = `${store.epoch}-${writer}-${n}`;
      const value = id.padEnd(480, ".");
      const writes = [
        { key: `x/${id}`, value },
        { key: `y/${id}`, value },
      ];
      const [outcome] = await store.commit([
        { epoch: store.epoch, record: { key: `a/${id}`, expect: 0, value }, writes },
      ]);
      if (outcome !== "ok") throw new Error(`Commit ${id}: ${outcome}`);
      process.stdout.write(`${id}\n`);
    }
  };
  await Promise.all(Array.from({ length: Number(writers) }, (_, writer) => write(writer)));
  if (commits === "Infinity") setInterval(() => undefined, 1_000);
  else await store.close();
} catch (error) {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = error instanceof StoreOpenError ? error.exitCode : 1;
}
