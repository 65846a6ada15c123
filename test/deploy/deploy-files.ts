/** What is in deploy/, read once for the tests of it. */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect } from "vitest";
import { parseAllDocuments } from "yaml";
import { type Environment, parseSettings, secretSettings } from "../../src/config.ts";

export const root = resolve(import.meta.dirname, "../..");
export const deploy = join(root, "deploy");
export const text = (path: string): string => readFileSync(join(deploy, path), "utf8");

// biome-ignore lint/suspicious/noExplicitAny: the tests look into documents of many shapes
export type Document = any;

/** Refuses what is no YAML, keys that are there twice, and unknown tags. */
export function documents(path: string): readonly Document[] {
  return parseAllDocuments(text(path), { strict: true, uniqueKeys: true }).map((document) => {
    expect([path, ...document.errors, ...document.warnings]).toEqual([path]);
    return document.toJS();
  });
}

export const compose: Document = documents("compose.yaml")[0].services.troupe;
export const base = "kubernetes/base";
export const manifests = readdirSync(join(deploy, base))
  .filter((name) => name !== "kustomization.yaml")
  .flatMap((name) => documents(join(base, name)));
export const manifest = (kind: string): Document => manifests.find((one) => one.kind === kind);
export const isProgramThere = (name: string): boolean =>
  (process.env.PATH ?? "").split(":").some((folder) => {
    try {
      return readdirSync(folder).includes(name);
    } catch {
      return false;
    }
  });

/** As if each file with a secret were there. */
export function started(environment: Environment): ReturnType<typeof parseSettings> {
  const given = Object.entries(environment).map(([name, value]) =>
    secretSettings.some((secret) => name === `${secret}_FILE`)
      ? [name.slice(0, -"_FILE".length), "in:operator:a-file"]
      : [name, value],
  );
  return parseSettings(Object.fromEntries(given));
}
