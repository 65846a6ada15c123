/**
 * The secrets key of a server that was given none: made once and kept in a file only its owner may read. The file appears
 * complete or not at all, and of two servers that start at the same moment both end up with the same key.
 */
import { randomBytes, randomUUID } from "node:crypto";
import {
  chmodSync,
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { Failure } from "../errors/failure.ts";
import type { Log } from "../ports/log.ts";
import { parseSecretsKey, secretsKeyBytes } from "./secrets-key.ts";

const ownerOnly = 0o600;

/**
 * The key's text. The folder must exist. Blocking: for the start only.
 * @throws Failure refused when the file holds no usable key; it is never overwritten.
 */
export function loadOrMakeKeyFile(path: string, log: Log): string {
  const stored = readKey(path, log) ?? makeKey(path, log);
  parseSecretsKey(stored, `The key file "${path}"`);
  return stored;
}

function readKey(path: string, log: Log): string | undefined {
  try {
    const text = readFileSync(path, "utf8").trim();
    if ((statSync(path).mode & 0o077) !== 0) {
      chmodSync(path, ownerOnly);
      log.warn("secrets-key-exposed", `The key file "${path}" could be read by others; its mode is 0600 now`);
    }
    return text;
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw new Failure("refused", `Cannot read the key file "${path}": ${errorCode(error)}`, { cause: error });
  }
}

function makeKey(path: string, log: Log): string {
  const text = randomBytes(secretsKeyBytes).toString("base64");
  const draft = `${path}.${randomUUID()}`;
  try {
    writeDurably(draft, `${text}\n`);
    // A link fails when the file is there already, a rename would replace it.
    linkSync(draft, path);
    syncFolder(path);
  } catch (error) {
    if (errorCode(error) !== "EEXIST") {
      throw new Failure("refused", `Cannot write the key file "${path}": ${errorCode(error)}`, { cause: error });
    }
    return readKey(path, log) ?? "";
  } finally {
    removeDraft(draft);
  }
  log.warn(
    "secrets-key-generated",
    `No SERVICE_SECRETS_KEY is set: a key was generated in "${path}"; without that file stored secrets cannot be read`,
  );
  return text;
}

function writeDurably(path: string, text: string): void {
  const file = openSync(path, "wx", ownerOnly);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function syncFolder(path: string): void {
  const folder = openSync(dirname(path), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

function removeDraft(draft: string): void {
  try {
    unlinkSync(draft);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
  }
}

function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}
