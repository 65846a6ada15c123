/** The text of a stored record: schema version, state, and the recent command ids with their answers. */
import type { z } from "zod";
import type { AnyKind } from "./kind.ts";

/** Answers of recent commands, oldest first: a retried command gets the first answer and is not applied again. */
export type AnsweredCommand = readonly [commandId: string, reply: unknown];

export interface DecodedRecord {
  readonly state: unknown;
  readonly commands: readonly AnsweredCommand[];
}

/** The stored state cannot be read: the actor is parked at once, with this reason. */
class CorruptRecord extends Error {}

/** Of the many problems that one may have, enough to tell what happened. */
const problemsToldMax = 3;

export function encodeRecord(kind: AnyKind, state: unknown, commands: readonly AnsweredCommand[]): string {
  const checked = kind.schema.safeParse(state);
  if (!checked.success) {
    throw new Error(`State of kind "${kind.name}" breaks its own schema: ${problemsOf(checked.error)}`);
  }
  return JSON.stringify(
    commands.length === 0 ? { v: kind.version, s: state } : { v: kind.version, s: state, c: commands },
  );
}

export function decodeRecord(kind: AnyKind, text: string): DecodedRecord {
  let record: { v?: unknown; s?: unknown; c?: AnsweredCommand[] };
  try {
    record = JSON.parse(text) as typeof record;
  } catch (cause) {
    throw new CorruptRecord("The stored record is not JSON", { cause });
  }
  const stored = record.v;
  if (typeof stored !== "number" || !Number.isInteger(stored) || stored < 1) {
    throw new CorruptRecord("The stored record has no version");
  }
  if (stored > kind.version) {
    throw new CorruptRecord(`The stored record is of version ${stored}, newer than this server's ${kind.version}`);
  }
  let state = record.s;
  for (let version = stored; version < kind.version; version++) {
    if (kind.migrate === undefined) throw new CorruptRecord(`No way to bring version ${version} forward`);
    state = kind.migrate(state, version);
  }
  const checked = kind.schema.safeParse(state);
  if (!checked.success) throw new CorruptRecord(`The stored state does not fit: ${problemsOf(checked.error)}`);
  return { state: checked.data, commands: record.c ?? [] };
}

/** Where and what, in one line; nothing of the value itself. */
function problemsOf({ issues }: z.ZodError): string {
  const told = issues.slice(0, problemsToldMax).map(({ path, message }) => {
    const where = path.length === 0 ? "the state" : `"${path.join(".")}"`;
    return `${where}: ${message}`;
  });
  return issues.length > told.length ? `${told.join("; ")}; and ${issues.length - told.length} more` : told.join("; ");
}
