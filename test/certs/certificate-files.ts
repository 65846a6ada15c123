/** Certificate files for the tests, in folders that are gone after the test file that made them. */
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { makeCertificates } from "../../src/certs/make-certificates.ts";

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "troupe-certs-"));
  folders.push(folder);
  return folder;
}

export const day = 86_400_000;

export interface CertificateFiles {
  readonly folder: string;
  /** Path of a file of that name, such as `server.crt`. */
  path(name: string): string;
  text(name: string): string;
  /** Answers its path. */
  write(name: string, text: string | Buffer): string;
}

export function filesIn(folder: string): CertificateFiles {
  const path = (name: string): string => join(folder, name);
  return {
    folder,
    path,
    text: (name) => readFileSync(path(name), "utf8"),
    write(name, text) {
      writeFileSync(path(name), text);
      return path(name);
    },
  };
}

/** `server`, `ca`, `client-alice` and, beside them, `old/` that ended and `coming/` that has not begun. */
export async function certificateFiles(): Promise<CertificateFiles> {
  const folder = newFolder();
  const now = Date.now();
  await Promise.all([
    makeCertificates({ folder, clients: ["alice"] }),
    makeCertificates({ folder: join(folder, "old"), days: 1, nowMs: now - 2 * day }),
    makeCertificates({ folder: join(folder, "coming"), nowMs: now + 2 * day }),
    makeCertificates({ folder: join(folder, "dead"), days: 1, nowMs: now - 4_000 * day }),
  ]);
  return filesIn(folder);
}

export function encryptedKey(): string {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  return privateKey.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "secret" }).toString();
}
