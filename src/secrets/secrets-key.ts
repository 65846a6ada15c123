/** A secrets key as settings give it: base64 of exactly 32 bytes. */
import { createHash } from "node:crypto";
import { Failure } from "../errors/failure.ts";

export interface SecretsKey {
  readonly bytes: Buffer;
  /** Written beside each ciphertext. Cut from a hash made for this purpose only, it says nothing about the key. */
  readonly id: string;
}

export const secretsKeyBytes = 32;

/**
 * Standard or URL-safe alphabet, with or without padding; surrounding white space (a file's last line break) is dropped.
 * @param name the setting, for the error.
 * @throws Failure refused. The text itself is never repeated.
 */
export function parseSecretsKey(text: string, name: string): SecretsKey {
  const trimmed = text.trim().replaceAll("-", "+").replaceAll("_", "/");
  const bytes = Buffer.from(trimmed, "base64");
  if (bytes.toString("base64").replace(/=+$/, "") !== trimmed.replace(/=+$/, "") || trimmed === "") {
    throw new Failure("refused", `${name} must be base64`);
  }
  if (bytes.length !== secretsKeyBytes) {
    throw new Failure("refused", `${name} must be ${secretsKeyBytes} bytes as base64, not ${bytes.length}`);
  }
  if (bytes.every((byte) => byte === 0)) throw new Failure("refused", `${name} must not be all zero`);
  return { bytes, id: createHash("sha256").update("troupe secrets key id\0").update(bytes).digest("hex").slice(0, 16) };
}
