/** What the test kit found: one finding for each check it made, in the order it made them. */
import { isDeepStrictEqual } from "node:util";
import { isFailure } from "../errors/failure.ts";

export type CheckName =
  | "package"
  | "load"
  | "settings"
  | "setup"
  | "docs"
  /* Adapters. */
  | "definition"
  | "pure definition"
  | "bad documents"
  | "service settings"
  | "hydrate"
  | "calls"
  | "unknown tool"
  | "dehydrate"
  /* Environments. */
  | "prints"
  | "outputs"
  | "calls a tool"
  | "fails"
  | "other programs"
  | "runs at once"
  | "kill";

export interface Finding {
  readonly check: CheckName;
  readonly ok: boolean;
  /** What was seen, or what is wrong: a sentence without a full stop. */
  readonly message: string;
}

export type Checked<Value> = { readonly ok: true; readonly value: Value } | { readonly ok: false };

export class Findings {
  readonly list: Finding[] = [];

  /** Whatever `work` throws is what is wrong. */
  async check<Value>(check: CheckName, whenFine: string, work: () => Value | Promise<Value>): Promise<Checked<Value>> {
    try {
      const value = await work();
      this.list.push({ check, ok: true, message: whenFine });
      return { ok: true, value };
    } catch (error) {
      this.add(check, reasonOf(error));
      return { ok: false };
    }
  }

  /** One that is not ok. */
  add(check: CheckName, message: string): void {
    this.list.push({ check, ok: false, message });
  }
}

export type Outcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly code: string; readonly reason: string };

/** How a call ended, as its caller sees it. */
export async function settle(answer: Promise<unknown>): Promise<Outcome> {
  try {
    return { ok: true, value: await answer };
  } catch (error) {
    return { ok: false, code: isFailure(error) ? error.kind : "internal", reason: reasonOf(error) };
  }
}

/** With the code, where there is one: an author writes codes, so an author wants to see them. */
function reasonOf(error: unknown): string {
  if (isFailure(error)) return `${error.message} (${error.kind})`;
  return error instanceof Error ? error.message : String(error);
}

/** @throws Error that shows both, shortened. */
export function requireEqual(what: string, found: unknown, wanted: unknown): void {
  if (isDeepStrictEqual(found, wanted)) return;
  throw new Error(`${what} should be ${shown(wanted)} and is ${shown(found)}`);
}

export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > shownCharactersMax ? `${text.slice(0, shownCharactersMax)}…` : text;
}

const shownCharactersMax = 500;
