/** What a command is given besides its words: files, stdin, JSON, durations, ids. Everything is bounded; faults are CliErrors. */
import { createReadStream } from "node:fs";
import { addAbortSignal, type Readable } from "node:stream";
import { bodyBytesMax } from "../limits.ts";
import type { CliIo } from "./cli-io.ts";
import { CliError, exitCodes } from "./exit-codes.ts";

/** `-` is stdin. */
export async function readInput(io: CliIo, path: string): Promise<string> {
  const source: Readable = addAbortSignal(io.signal, path === "-" ? io.stdin : createReadStream(path));
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of source) {
      const piece = Buffer.from(chunk as Buffer | string);
      bytes += piece.length;
      if (bytes > bodyBytesMax)
        throw new CliError(exitCodes.data, `${nameOf(path)} has more than ${bodyBytesMax} bytes`);
      chunks.push(piece);
    }
  } catch (error) {
    if (error instanceof CliError) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? "unknown";
    throw new CliError(exitCodes.noInput, `Cannot read ${nameOf(path)} (${code})`);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** JSON itself, `@file` or `-`. */
export async function readJson(io: CliIo, given: string, what: string): Promise<unknown> {
  const text =
    given === "-" ? await readInput(io, "-") : given.startsWith("@") ? await readInput(io, given.slice(1)) : given;
  try {
    return JSON.parse(text);
  } catch {
    throw new CliError(given === text ? exitCodes.usage : exitCodes.data, `${what} must be JSON`);
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Ids of processes. */
export function readId(text: string): bigint {
  if (!/^[0-9]{1,16}$/.test(text))
    throw new CliError(exitCodes.usage, `"${text}" is not the id of a process: ids are numbers`);
  return BigInt(text);
}

export function readCount(text: string, what: string): number {
  if (!/^[0-9]{1,9}$/.test(text) || Number(text) === 0)
    throw new CliError(exitCodes.usage, `${what} must be a number above 0`);
  return Number(text);
}

const units: Readonly<Record<string, number>> = { ms: 1, "": 1_000, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of `30s`, `5m`, `250ms`; a bare number counts seconds. */
export function readDuration(text: string, what: string): number {
  const [, number, unit = ""] = /^([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)?$/.exec(text) ?? [];
  const ms = Math.round(Number(number) * (units[unit] ?? 0));
  if (!(ms > 0)) throw new CliError(exitCodes.usage, `${what} must be a duration like 30s, 5m or 250ms`);
  return ms;
}

function nameOf(path: string): string {
  return path === "-" ? "stdin" : `"${path}"`;
}
