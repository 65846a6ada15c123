/**
 * The files a TLS server is given: its certificate, its key, and the authorities of its clients' certificates. They are read and judged
 * in one place, at the start and whenever they change, so that what is served is known to work: readable, a key that fits, not expired.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFileSync, type Stats, statSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { tlsFileBytesMax } from "../limits.ts";

export interface TlsPaths {
  readonly cert: string;
  readonly key: string;
  readonly clientCa?: string | undefined;
}

/** PEM. */
export interface TlsFiles {
  /** The server's certificate first, then those between it and its authority. */
  readonly cert: string;
  readonly key: string;
  readonly clientCa?: string | undefined;
}

export const settingNames = {
  cert: "SERVICE_GRPC_TLS_CERT_FILE",
  key: "SERVICE_GRPC_TLS_KEY_FILE",
  clientCa: "SERVICE_GRPC_TLS_CLIENT_CA_FILE",
} as const satisfies Record<keyof TlsPaths, string>;

export interface TlsProblem {
  readonly file: keyof TlsPaths;
  /** Goes on where the name of a setting ends; never anything of what is in a file. */
  readonly reason: string;
}

export type TlsVerdict = { readonly files: TlsFiles } | { readonly problems: readonly TlsProblem[] };

/** Text of a file, or why there is none. */
type Reading = { readonly text: string } | { readonly reason: string };
export type TlsReadings = Readonly<Partial<Record<keyof TlsPaths, Reading>>>;

/** Blocking: for the start only. */
export function readTlsFilesNow(paths: TlsPaths): TlsReadings {
  return Object.fromEntries(given(paths).map(([file, path]) => [file, readNow(path)]));
}

export async function readTlsFiles(paths: TlsPaths): Promise<TlsReadings> {
  return Object.fromEntries(await Promise.all(given(paths).map(async ([file, path]) => [file, await read(path)])));
}

/** `nowMs`: epoch milliseconds. */
export function judgeTlsFiles(readings: TlsReadings, nowMs: number): TlsVerdict {
  const problems: TlsProblem[] = [];
  const textOf = (file: keyof TlsPaths): string | undefined => {
    const reading = readings[file];
    if (reading !== undefined && "reason" in reading) problems.push({ file, reason: reading.reason });
    return reading !== undefined && "text" in reading ? reading.text : undefined;
  };
  const tell = (file: keyof TlsPaths, reason: string | undefined): void => {
    if (reason !== undefined) problems.push({ file, reason });
  };
  const [cert, key, clientCa] = [textOf("cert"), textOf("key"), textOf("clientCa")];
  const chain = cert === undefined ? undefined : readCertificates(cert);
  const privateKey = key === undefined ? undefined : readPrivateKey(key);
  if (chain !== undefined) tell("cert", chainProblem(chain, nowMs));
  if (typeof privateKey === "string") tell("key", privateKey);
  else if (privateKey !== undefined && Array.isArray(chain)) tell("key", fitProblem(chain, privateKey));
  if (clientCa !== undefined) tell("clientCa", authoritiesProblem(readCertificates(clientCa), nowMs));
  if (problems.length > 0) return { problems };
  if (cert === undefined || key === undefined) throw new Error("A certificate and its key are read together");
  const files: TlsFiles = { cert, key, ...(clientCa === undefined ? {} : { clientCa }) };
  const refusal = contextProblem(files);
  return refusal === undefined ? { files } : { problems: [refusal] };
}

function given(paths: TlsPaths): [keyof TlsPaths, string][] {
  return (["cert", "key", "clientCa"] as const).flatMap((file) => {
    const path = paths[file];
    return path === undefined ? [] : [[file, path] as [keyof TlsPaths, string]];
  });
}

function readNow(path: string): Reading {
  try {
    return { text: readFileSync(checkFile(path, statSync(path)), "utf8") };
  } catch (error) {
    return { reason: readFault(path, error) };
  }
}

async function read(path: string): Promise<Reading> {
  try {
    return { text: await readFile(checkFile(path, await stat(path)), "utf8") };
  } catch (error) {
    return { reason: readFault(path, error) };
  }
}

class UnusableFile extends Error {}

/** Answers the path. A pipe would hold up the start, and be empty the second time. */
function checkFile(path: string, found: Stats): string {
  if (!found.isFile()) throw new UnusableFile(`"${path}" is not a file`);
  if (found.size > tlsFileBytesMax) throw new UnusableFile(`"${path}" has more than ${tlsFileBytesMax} bytes`);
  return path;
}

function readFault(path: string, error: unknown): string {
  if (error instanceof UnusableFile) return error.message;
  return `cannot read "${path}" (${(error as NodeJS.ErrnoException).code ?? "unknown error"})`;
}

const certificatePem = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** A text is why there are none. */
export function readCertificates(text: string): X509Certificate[] | string {
  const blocks = text.match(certificatePem) ?? [];
  if (blocks.length === 0) return "holds no certificate in PEM form";
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    return "holds a certificate that cannot be read";
  }
}

function readPrivateKey(text: string): KeyObject | string {
  if (/-----BEGIN ENCRYPTED|^Proc-Type:.*ENCRYPTED/m.test(text)) {
    return "is encrypted with a passphrase, which there is no setting for: store the key without one, mode 0600";
  }
  try {
    return createPrivateKey(text);
  } catch {
    return "holds no private key in PEM form";
  }
}

const serverPurposes = ["1.3.6.1.5.5.7.3.1", "2.5.29.37.0"]; // serverAuth, anyExtendedKeyUsage

function chainProblem(chain: X509Certificate[] | string, nowMs: number): string | undefined {
  if (typeof chain === "string") return chain;
  for (const certificate of chain) {
    const problem = dateProblem(certificate, nowMs);
    if (problem !== undefined) return problem;
  }
  const purposes = chain[0]?.keyUsage as readonly string[] | undefined;
  if (purposes?.some((purpose) => serverPurposes.includes(purpose)) === false) {
    return "holds a certificate that is not for servers (extended key usage without serverAuth)";
  }
  return undefined;
}

function fitProblem(chain: readonly X509Certificate[], key: KeyObject): string | undefined {
  if (chain[0]?.checkPrivateKey(key) === true) return undefined;
  return chain.some((certificate) => certificate.checkPrivateKey(key))
    ? "does not fit the first certificate, but a later one: the server's own certificate comes first in its file"
    : "does not fit the certificate";
}

/** Authorities come and go while others are in use: it is enough that one is good. */
function authoritiesProblem(authorities: X509Certificate[] | string, nowMs: number): string | undefined {
  if (typeof authorities === "string") return authorities;
  const problems = authorities.map((authority) => dateProblem(authority, nowMs));
  return problems.includes(undefined) ? undefined : problems[0];
}

function dateProblem({ validFromDate, validToDate }: X509Certificate, nowMs: number): string | undefined {
  if (validToDate.getTime() < nowMs) return `holds a certificate that expired at ${validToDate.toISOString()}`;
  if (validFromDate.getTime() > nowMs)
    return `holds a certificate that is not valid before ${validFromDate.toISOString()}`;
  return undefined;
}

/** What only OpenSSL knows, such as which keys are too short. */
function contextProblem({ cert, key, clientCa }: TlsFiles): TlsProblem | undefined {
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    return { file: "cert", reason: `cannot be used: ${opensslReason(error)}` };
  }
  try {
    createSecureContext({ ca: clientCa });
    return undefined;
  } catch (error) {
    return { file: "clientCa", reason: `cannot be used: ${opensslReason(error)}` };
  }
}

function opensslReason(error: unknown): string {
  const { reason, code } = error as { readonly reason?: unknown; readonly code?: unknown };
  return typeof reason === "string" ? reason : String(code ?? "unknown error");
}
