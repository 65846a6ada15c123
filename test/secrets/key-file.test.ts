import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isFailure } from "../../src/errors/failure.ts";
import type { Log } from "../../src/ports/log.ts";
import { loadOrMakeKeyFile } from "../../src/secrets/key-file.ts";
import { openVault } from "../../src/secrets/vault.ts";

let folder = "";
let events: string[] = [];
const note = (event: string): void => {
  events.push(event);
};
const log: Log = { debug: note, info: note, warn: note, error: note };

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "key-file-"));
  events = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function refusal(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (isFailure(error) && error.kind === "refused") return error.message;
    throw error;
  }
  throw new Error("Nothing was refused");
}

test("a first start makes a usable key only its owner can read, and warns", () => {
  const path = join(folder, "secrets.key");
  const key = loadOrMakeKeyFile(path, log);
  expect(openVault({ key })).toBeDefined();
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(["secrets.key"]);
  expect(events).toEqual(["secrets-key-generated"]);
});

test("the next start reads the same key and says nothing", () => {
  const path = join(folder, "secrets.key");
  const key = loadOrMakeKeyFile(path, log);
  events = [];
  expect(loadOrMakeKeyFile(path, log)).toBe(key);
  expect(events).toEqual([]);
});

test("a key others could read is closed to them, with a warning", () => {
  const path = join(folder, "secrets.key");
  const key = loadOrMakeKeyFile(path, log);
  chmodSync(path, 0o644);
  expect(loadOrMakeKeyFile(path, log)).toBe(key);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(events).toEqual(["secrets-key-generated", "secrets-key-exposed"]);
});

test.each(["", "short", Buffer.alloc(32).toString("base64")])(
  "a file that holds %j refuses the start and is left as it is",
  (text) => {
    const path = join(folder, "secrets.key");
    writeFileSync(path, text, { mode: 0o600 });
    expect(refusal(() => loadOrMakeKeyFile(path, log))).toContain(`The key file "${path}" must`);
    expect(readFileSync(path, "utf8")).toBe(text);
  },
);

test("a folder in its place, or no folder to write to, refuses the start", () => {
  mkdirSync(join(folder, "secrets.key"));
  expect(refusal(() => loadOrMakeKeyFile(join(folder, "secrets.key"), log))).toMatch(/EISDIR$/);
  expect(refusal(() => loadOrMakeKeyFile(join(folder, "none", "secrets.key"), log))).toMatch(/ENOENT$/);
});

test("six servers that start at once agree on one key", async () => {
  const path = join(folder, "secrets.key");
  const source = `
    import { loadOrMakeKeyFile } from ${JSON.stringify(new URL("../../src/secrets/key-file.ts", import.meta.url).href)};
    const quiet = () => {};
    console.log(loadOrMakeKeyFile(process.argv[1], { debug: quiet, info: quiet, warn: quiet, error: quiet }));`;
  const run = promisify(execFile);
  const keys = await Promise.all(
    [1, 2, 3, 4, 5, 6].map(() => run(process.execPath, ["--input-type=module", "-e", source, path])),
  );
  expect(new Set(keys.map(({ stdout }) => stdout.trim())).size).toBe(1);
  expect(readdirSync(folder)).toEqual(["secrets.key"]);
});
