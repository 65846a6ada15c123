/**
 * Reads every table of a LevelDB folder against its checksums, also while a server has it open. Tables come and go under the reader: one that
 * is gone was merged into others, and one that looks damaged may be in the middle of being written, so it is looked at again.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { tableProofAttemptsMax, tableProofRetryMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import { isTableWhole } from "./table-file.ts";

export interface ProvedTable {
  readonly name: string;
  readonly isWhole: boolean;
}

export async function* proveTables(folder: string, clock: Clock): AsyncGenerator<ProvedTable, void, undefined> {
  for (const name of (await readdir(folder)).filter((file) => /\.(ldb|sst)$/.test(file))) {
    const isWhole = await prove(join(folder, name), clock);
    if (isWhole !== undefined) yield { name, isWhole };
  }
}

/** Undefined: it is gone. */
async function prove(path: string, clock: Clock): Promise<boolean | undefined> {
  for (let attempt = 1; ; attempt += 1) {
    const bytes = await readIfThere(path);
    if (bytes === undefined) return undefined;
    if (isTableWhole(bytes)) return true;
    if (attempt === tableProofAttemptsMax) return false;
    await new Promise<void>((resolve) => clock.after(tableProofRetryMs, resolve));
  }
}

async function readIfThere(path: string): Promise<Buffer | undefined> {
  return readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
}
