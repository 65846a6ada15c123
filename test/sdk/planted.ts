/** A module in a temporary folder, made of the scaffold's files with one fault planted, and what the test kit says of it. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect } from "vitest";
import { type ModuleType, moduleFiles } from "../../src/cli/module-files.ts";
import { type CheckName, checkModule, type Finding, type ModuleSamples } from "../../src/sdk/testkit.ts";
import { troupeVersion } from "../../src/sdk/troupe-package.ts";

/** One row of a table of faults. */
export interface Planted {
  /** Ends the title: "that …". */
  readonly fault: string;
  /** Done to the folder; when not given the fault is in the samples. */
  readonly plant?: Plant;
  /** The first check that finds it, and what it says. */
  readonly check: CheckName;
  readonly says: RegExp;
  /** When not given: those of the table. */
  readonly samples?: ModuleSamples;
}

export type Plant = (folder: string) => void;

/** Modules that never answer get this long, on a machine where a start may take seconds when everybody tests at once. */
export const hastyMs = 5_000;

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

export function scaffoldFolder(type: ModuleType): string {
  const folder = mkdtempSync(join(tmpdir(), "planted-"));
  folders.push(folder);
  const files = moduleFiles({ name: "sample", type, troupeVersion: troupeVersion() });
  for (const { path, text } of files) writeFileSync(join(folder, path), text);
  return folder;
}

/** The module with its fault fails the check, and none before it. */
export async function requireFound(type: ModuleType, samples: ModuleSamples, planted: Planted): Promise<void> {
  const folder = scaffoldFolder(type);
  planted.plant?.(folder);
  const [first] = faultsOf(await checkModule(folder, planted.samples ?? samples));
  expect(first).toEqual({ check: planted.check, ok: false, message: expect.stringMatching(planted.says) });
}

export function faultsOf(findings: readonly Finding[]): readonly Finding[] {
  return findings.filter(({ ok }) => !ok);
}

/** One place of main.ts. */
export function edit(from: string, to: string): Plant {
  return (folder) => {
    const path = join(folder, "main.ts");
    const [before, after, ...more] = readFileSync(path, "utf8").split(from);
    if (after === undefined || more.length > 0) throw new Error(`main.ts does not have "${from}" exactly once`);
    writeFileSync(path, before + to + after);
  };
}

/** All of main.ts. */
export function source(text: string): Plant {
  return file("main.ts", text);
}

type Json = Record<string, unknown>;

export function packageJson(members: Json): Plant {
  return changed((value) => Object.assign(value, members));
}

/** Members of `troupe`; undefined takes one out. */
export function manifest(members: Json): Plant {
  return changed((value) => Object.assign(value.troupe as Json, members));
}

function changed(change: (value: Json) => void): Plant {
  return (folder) => {
    const path = join(folder, "package.json");
    const value = JSON.parse(readFileSync(path, "utf8")) as Json;
    change(value);
    writeFileSync(path, JSON.stringify(value));
  };
}

export function file(path: string, content: string): Plant {
  return (folder) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  };
}

export function all(...plants: readonly Plant[]): Plant {
  return (folder) => {
    for (const plant of plants) plant(folder);
  };
}
