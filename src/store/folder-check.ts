/**
 * Proves a LevelDB folder before LevelDB opens it. LevelDB starts empty without CURRENT, skips unreadable log records, serves
 * flipped bits, and at its start removes tables that a damaged manifest does not name. Here each of these is a refusal that
 * names the file, and nothing is changed.
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { tableBytesProvedMax } from "../limits.ts";
import type { Log } from "../ports/log.ts";
import { readLog } from "./log-file.ts";
import { type ManifestContent, readManifest } from "./manifest-file.ts";
import { damaged, exitCodes, StoreOpenError } from "./store-open-error.ts";
import { isTableWhole } from "./table-file.ts";

/**
 * Throws StoreOpenError. An empty folder is a new store. Answers the tables whose content was too much to
 * prove now: they are there in the right size, and `background-proof.ts` reads them later.
 */
export async function checkFiles(folder: string, log: Log): Promise<readonly string[]> {
  try {
    const names = await readdir(folder);
    if (!names.includes("CURRENT")) {
      checkNew(folder, names);
      return [];
    }
    const manifest = await readCurrent(folder, names);
    await checkLogs(folder, names, manifest, log);
    return await checkTables(folder, names, manifest);
  } catch (error) {
    if (error instanceof StoreOpenError) throw error;
    throw new StoreOpenError(exitCodes.io, `Cannot read the store's folder "${folder}": ${String(error)}`, error);
  }
}

/** A first start that was killed leaves at most the first manifest. */
function checkNew(folder: string, names: readonly string[]): void {
  const trace = names.find((name) => /\.(ldb|sst|log)$/.test(name) || /^MANIFEST-(?!000001$)/.test(name));
  if (trace !== undefined) throw damaged(folder, `its file "CURRENT" is missing while "${trace}" is there`);
}

async function readCurrent(folder: string, names: readonly string[]): Promise<ManifestContent> {
  const current = await readFile(join(folder, "CURRENT"), "latin1");
  const name = /^(MANIFEST-\d{6,})\n$/.exec(current)?.[1];
  if (name === undefined) throw damaged(folder, 'its file "CURRENT" names no manifest');
  if (!names.includes(name)) throw damaged(folder, `its file "${name}", named by "CURRENT", is missing`);
  const { records, state } = readLog(await readFile(join(folder, name)));
  if (state === "damaged") throw damaged(folder, `its file "${name}" is damaged`);
  try {
    return readManifest(records);
  } catch (error) {
    throw damaged(folder, `its file "${name}" is damaged`, error);
  }
}

async function checkLogs(folder: string, names: readonly string[], manifest: ManifestContent, log: Log): Promise<void> {
  const logs = names
    .filter((name) => /^\d+\.log$/.test(name) && Number.parseInt(name, 10) >= manifest.logNumber)
    .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
  if (manifest.logNumber > 0 && !logs.some((name) => Number.parseInt(name, 10) === manifest.logNumber)) {
    throw damaged(folder, `its file "${fileName(manifest.logNumber)}.log" is missing`);
  }
  let torn: string | undefined;
  for (const name of logs) {
    const bytes = await readFile(join(folder, name));
    if (bytes.length === 0) continue;
    // Only the last write can have been cut off.
    if (torn !== undefined) throw damaged(folder, `its file "${torn}" is damaged`);
    const { state } = readLog(bytes);
    if (state === "damaged") throw damaged(folder, `its file "${name}" is damaged`);
    if (state === "torn") torn = name;
  }
  if (torn !== undefined) {
    log.warn("store-log-torn", `The last write in "${torn}" was cut off before it was acknowledged and is left out`);
  }
}

async function checkTables(
  folder: string,
  names: readonly string[],
  manifest: ManifestContent,
): Promise<readonly string[]> {
  const present = new Set(names);
  const unproved: string[] = [];
  let provedBytes = 0;
  // The newest first: they are the least likely to be in a backup.
  for (const [number, size] of [...manifest.tables].sort(([a], [b]) => b - a)) {
    const name = [`${fileName(number)}.ldb`, `${fileName(number)}.sst`].find((candidate) => present.has(candidate));
    if (name === undefined) throw damaged(folder, `its file "${fileName(number)}.ldb" is missing`);
    const path = join(folder, name);
    if ((await stat(path)).size !== size) throw damaged(folder, `its file "${name}" has another size than was written`);
    provedBytes += size;
    if (provedBytes > tableBytesProvedMax) unproved.push(name);
    else if (!isTableWhole(await readFile(path))) throw damaged(folder, `its file "${name}" is damaged`);
  }
  return unproved;
}

function fileName(number: number): string {
  return String(number).padStart(6, "0");
}
