/** One archive that means harm, and what must come of it: refused by name, and nothing in the package folder or around it that was not there. */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { FailureKind } from "../../src/errors/failure.ts";
import { failureOf, openStage, treeOf } from "./stage.ts";

export interface Hostile {
  readonly title: string;
  readonly archive: Buffer | ((outside: string) => Buffer);
  readonly says: RegExp;
  /** Default: invalid_request. */
  readonly kind?: FailureKind;
}

export async function expectRefusal({ archive, says, kind = "invalid_request" }: Hostile): Promise<void> {
  const { outside, add } = openStage();
  mkdirSync(join(outside, "modules"));
  writeFileSync(join(outside, "escaped"), "untouched");
  symlinkSync(join(outside, "escaped"), join(outside, "link"));
  const before = await treeOf(outside);
  const failure = await failureOf(add(typeof archive === "function" ? archive(outside) : archive));
  expect(failure.message).toMatch(says);
  expect(failure.kind).toBe(kind);
  expect(await treeOf(outside)).toEqual(before);
}
