/**
 * AES-256-GCM envelopes: `t1.<key id>.<iv>.<tag>.<ciphertext>`, the last three in unpadded base64url.
 *
 * 1. The IV is 12 fresh random bytes for each seal, never derived or counted, so that no restart or copy of the data can repeat
 *    one. (Random IVs are good for 2^32 seals of one key; settings are written by people.)
 * 2. The tag is 16 bytes; anything shorter is refused before any decryption.
 * 3. The authenticated data binds version, key id and the place (kind, id, field): an envelope moved elsewhere does not open.
 * 4. Only the exact text that `seal` makes is an envelope: other spellings of the same bytes are refused.
 * 5. Fail closed: whatever is wrong is a Failure, never an empty secret. No message holds a secret, a key or an envelope.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { Failure } from "../errors/failure.ts";
import type { SealContext, Vault } from "../ports/vault.ts";
import { parseSecretsKey, type SecretsKey } from "./secrets-key.ts";

const version = "t1";
const ivBytes = 12;
const tagBytes = 16;

export interface VaultOptions {
  /** Base64 of exactly 32 bytes: writes and reads. */
  readonly key: string;
  /** Older keys, same form: read only. */
  readonly previousKeys?: readonly string[];
}

/** @throws Failure refused, naming which key is malformed, all zero or given twice. */
export function openVault({ key, previousKeys = [] }: VaultOptions): Vault {
  const current = parseSecretsKey(key, "SERVICE_SECRETS_KEY");
  const keys = new Map([[current.id, current]]);
  previousKeys.forEach((previous, at) => {
    const parsed = parseSecretsKey(previous, `SERVICE_SECRETS_PREVIOUS_KEYS, key ${at + 1},`);
    if (keys.has(parsed.id))
      throw new Failure(
        "refused",
        "The same key is given twice in SERVICE_SECRETS_KEY and SERVICE_SECRETS_PREVIOUS_KEYS",
      );
    keys.set(parsed.id, parsed);
  });
  return {
    seal: (plaintext, context) => seal(current, plaintext, context),
    open: (envelope, context) => open(keys, envelope, context),
    isCurrent: (envelope) => readEnvelope(envelope)?.keyId === current.id,
  };
}

function seal(key: SecretsKey, plaintext: string, context: SealContext): string {
  const iv = randomBytes(ivBytes);
  const cipher = createCipheriv("aes-256-gcm", key.bytes, iv, { authTagLength: tagBytes });
  cipher.setAAD(boundData(key.id, context));
  const ciphertext = Buffer.concat([cipher.update(plaintext, "utf8"), cipher.final()]);
  return [version, key.id, ...[iv, cipher.getAuthTag(), ciphertext].map((part) => part.toString("base64url"))].join(
    ".",
  );
}

function open(keys: ReadonlyMap<string, SecretsKey>, text: string, context: SealContext): string {
  const envelope = readEnvelope(text);
  if (envelope === undefined) throw unreadable(context, "what is stored is no envelope of this service");
  const key = keys.get(envelope.keyId);
  if (key === undefined)
    throw unreadable(context, `it was written with the key "${envelope.keyId}", which is not among the secrets keys`);
  const decipher = createDecipheriv("aes-256-gcm", key.bytes, envelope.iv, { authTagLength: tagBytes });
  decipher.setAAD(boundData(key.id, context));
  decipher.setAuthTag(envelope.tag);
  try {
    return Buffer.concat([decipher.update(envelope.ciphertext), decipher.final()]).toString("utf8");
  } catch {
    throw unreadable(context, "it was changed, or written for another place");
  }
}

interface Envelope {
  readonly keyId: string;
  readonly iv: Buffer;
  readonly tag: Buffer;
  readonly ciphertext: Buffer;
}

function readEnvelope(text: string): Envelope | undefined {
  const [head, keyId, ...parts] = text.split(".");
  if (head !== version || keyId === undefined || parts.length !== 3) return undefined;
  const [iv, tag, ciphertext] = parts.map(exactBytes);
  if (iv?.length !== ivBytes || tag?.length !== tagBytes || ciphertext === undefined) return undefined;
  return { keyId, iv, tag, ciphertext };
}

/** The decoder skips what it does not know; only text that encodes back to itself is taken. */
function exactBytes(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes : undefined;
}

/** JSON, so that no two contexts make the same bytes. */
function boundData(keyId: string, { kind, id, field }: SealContext): Buffer {
  return Buffer.from(JSON.stringify([version, keyId, kind, id, field]), "utf8");
}

function unreadable({ kind, id, field }: SealContext, reason: string): Failure {
  return new Failure("internal", `Cannot read the secrets of ${kind} "${id}", field "${field}": ${reason}`);
}
