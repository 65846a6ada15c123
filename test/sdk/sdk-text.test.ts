/** What the contract says in words about a module's process is what the process does. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { modulePingMs, moduleUnresponsiveMs } from "../../src/limits.ts";

const source = (path: string): string => readFileSync(resolve(import.meta.dirname, "../../src", path), "utf8");
const [header = ""] = source("sdk/sdk.ts").split("*/", 1);
const words = header.replaceAll(/\s*\n \*\s*/g, " ");

test("lists exactly the modules of Node that may be imported", () => {
  const [, told = ""] = /of what Node brings: ([^.]+)\./.exec(words) ?? [];
  const [, allowed = ""] =
    /builtinsAllowed = new Set\(\[([^\]]+)\]\)/.exec(source("module-host/runner/restrict.ts")) ?? [];
  const names = [...allowed.matchAll(/"([^"]+)"/g)].map(([, name]) => name);
  expect(names.length).toBeGreaterThan(20);
  expect(told.split(", ")).toEqual(names);
});

test("names the limits on silence", () => {
  expect(words).toContain(`No synchronous stretch over ${moduleUnresponsiveMs / 1_000} s`);
  expect(words).toContain(`every ${modulePingMs / 1_000} s whether it is alive`);
  expect(words).toContain(`nothing for ${moduleUnresponsiveMs / 1_000} s`);
});
