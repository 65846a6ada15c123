/**
 * A development authority, and what it signs: the certificate of a server and those of its clients. A folder has one authority, which is
 * made once and kept, so that a client added later is known to the servers there are; nothing replaces it but another folder.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { Failure } from "../errors/failure.ts";
import { certificateDaysDefault, certificateDaysMax, certificateNamesMax } from "../limits.ts";
import { alternativeNames } from "./alternative-names.ts";
import { authorityName, makeCertificate, type Pair, type Purpose, type Validity, validityFor } from "./certificate.ts";
import {
  alreadyThere,
  isThere,
  type PairPaths,
  type PairToWrite,
  pairPaths,
  readPair,
  writePairs,
} from "./certificate-files.ts";

export interface CertificatesOptions {
  readonly folder: string;
  /** Names and addresses of the server beside localhost, 127.0.0.1 and ::1. */
  readonly hosts?: readonly string[] | undefined;
  /** Names of keys in SERVICE_API_KEYS. */
  readonly clients?: readonly string[] | undefined;
  /** That server and clients are valid; the authority is for ten years. */
  readonly days?: number | undefined;
  /** Replace a server's or client's certificate that is there. */
  readonly force?: boolean | undefined;
  /** Epoch milliseconds; absent: this moment. */
  readonly nowMs?: number | undefined;
}

export interface MadePair extends PairPaths {
  readonly outcome: "made" | "kept";
  /** Epoch milliseconds. */
  readonly untilMs: number;
}

export interface Certificates {
  readonly authority: MadePair;
  readonly server: MadePair;
  readonly clients: readonly (MadePair & { readonly name: string })[];
}

/**
 * Writes `ca`, `server` and `client-NAME`, each `.crt` and `.key`. Without hosts, a server that is there is kept when clients are asked for.
 * Rejects with Failure: invalid_request (a name, days), already_exists (and nothing was written), refused (the authority that is there cannot
 * sign), unavailable (files that cannot be read or written).
 */
export async function makeCertificates(options: CertificatesOptions): Promise<Certificates> {
  const { folder, hosts = [], days = certificateDaysDefault, force = false, nowMs = Date.now() } = options;
  const clients = [...new Set(options.clients ?? [])];
  checkOptions(hosts, clients, days);
  const names = alternativeNames(["localhost", "127.0.0.1", "::1", ...hosts]);
  const serverPaths = pairPaths(folder, "server");
  const keptServer = !force && hosts.length === 0 && clients.length > 0 ? await untilOf(serverPaths) : undefined;
  const wanted = [
    ...(keptServer === undefined ? [wantedServer(serverPaths, names)] : []),
    ...clients.map((name) => wantedClient(folder, name)),
  ];
  if (!force) await refuseReplacing(wanted.map(({ paths }) => paths));
  const authority = await authorityOf(folder, nowMs);
  const validity = within(validityFor(days, nowMs), authority.untilMs);
  const made = await Promise.all(wanted.map((one) => sign(one, authority.pair, validity)));
  if (authority.outcome === "made") await writePairs(folder, [authority], false);
  await writePairs(folder, made, force);
  const told = ({ paths }: Wanted): MadePair => ({ ...paths, outcome: "made", untilMs: validity.untilMs });
  return {
    authority: { ...authority.paths, outcome: authority.outcome, untilMs: authority.untilMs },
    server:
      keptServer === undefined
        ? { ...serverPaths, outcome: "made", untilMs: validity.untilMs }
        : { ...serverPaths, outcome: "kept", untilMs: keptServer },
    clients: clients.map((name) => ({ name, ...told(wantedClient(folder, name)) })),
  };
}

/** As in SERVICE_API_KEYS. */
const clientName = /^[A-Za-z0-9._@-]{1,64}$/;

function checkOptions(hosts: readonly string[], clients: readonly string[], days: number): void {
  const refuse = (why: string): never => {
    throw new Failure("invalid_request", why);
  };
  if (!Number.isInteger(days) || days < 1 || days > certificateDaysMax) {
    refuse(`Cannot make certificates for ${days} days: expected a whole number from 1 to ${certificateDaysMax}`);
  }
  for (const [what, given] of [["hosts", hosts] as const, ["clients", clients] as const]) {
    if (given.length > certificateNamesMax)
      refuse(`Cannot make certificates for more than ${certificateNamesMax} ${what}`);
  }
  for (const name of clients) {
    if (clientName.test(name)) continue;
    refuse(`Cannot make a certificate for client "${name}": a name is 1 to 64 letters, digits or any of . _ @ -`);
  }
}

interface Wanted {
  readonly paths: PairPaths;
  readonly commonName: string;
  readonly purpose: Purpose;
}

/** No key in SERVICE_API_KEYS can have a name with spaces, so a server's certificate is never a caller. */
function wantedServer(paths: PairPaths, names: ReturnType<typeof alternativeNames>): Wanted {
  return { paths, commonName: "Troupe development server", purpose: { is: "server", names } };
}

function wantedClient(folder: string, name: string): Wanted {
  return { paths: pairPaths(folder, `client-${name}`), commonName: name, purpose: { is: "client" } };
}

async function refuseReplacing(all: readonly PairPaths[]): Promise<void> {
  for (const path of all.flatMap(({ cert, key }) => [cert, key])) {
    if (await isThere(path)) throw alreadyThere(path);
  }
}

interface FolderAuthority extends PairToWrite {
  readonly outcome: "made" | "kept";
  readonly untilMs: number;
}

async function authorityOf(folder: string, nowMs: number): Promise<FolderAuthority> {
  const paths = pairPaths(folder, "ca");
  const [hasCert, hasKey] = [await isThere(paths.cert), await isThere(paths.key)];
  if (hasCert || hasKey) {
    if (hasCert !== hasKey) {
      const [there, missing] = hasCert ? [paths.cert, paths.key] : [paths.key, paths.cert];
      throw new Failure("refused", `Cannot sign with "${there}": "${missing}" is missing`);
    }
    const pair = await readPair(paths);
    return { paths, pair, outcome: "kept", untilMs: checkAuthority(pair, paths, nowMs) };
  }
  const validity = validityFor(certificateDaysMax, nowMs);
  const pair = await makeCertificate({ commonName: authorityName(), purpose: { is: "authority" }, validity });
  return { paths, pair, outcome: "made", untilMs: validity.untilMs };
}

/** Answers until when it is valid, in epoch milliseconds. */
function checkAuthority({ cert, key }: Pair, paths: PairPaths, nowMs: number): number {
  const refuse = (path: string, why: string): Failure => new Failure("refused", `Cannot sign with "${path}": ${why}`);
  const certificate = parsed(() => new X509Certificate(cert)) ?? refuse(paths.cert, "it holds no certificate");
  const privateKey =
    parsed(() => createPrivateKey(key)) ?? refuse(paths.key, "it holds no private key, or an encrypted one");
  if (certificate instanceof Failure) throw certificate;
  if (privateKey instanceof Failure) throw privateKey;
  if (privateKey.asymmetricKeyType !== "rsa") throw refuse(paths.key, "only RSA keys can sign here");
  if (!certificate.checkPrivateKey(privateKey)) throw refuse(paths.key, `it does not fit "${paths.cert}"`);
  if (!certificate.ca) throw refuse(paths.cert, "it is no certificate of an authority");
  const untilMs = certificate.validToDate.getTime();
  if (untilMs <= nowMs)
    throw refuse(paths.cert, `it expired at ${certificate.validToDate.toISOString()}; begin in another folder`);
  return untilMs;
}

function parsed<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** What is signed does not outlive who signed it. */
function within({ fromMs, untilMs }: Validity, latestMs: number): Validity {
  return { fromMs, untilMs: Math.min(untilMs, latestMs) };
}

async function sign({ paths, commonName, purpose }: Wanted, issuer: Pair, validity: Validity): Promise<PairToWrite> {
  return { paths, pair: await makeCertificate({ commonName, purpose, issuer, validity }) };
}

/** Undefined unless both files are there. */
async function untilOf(paths: PairPaths): Promise<number | undefined> {
  if (!(await isThere(paths.cert)) || !(await isThere(paths.key))) return undefined;
  const { cert } = await readPair(paths);
  return parsed(() => new X509Certificate(cert))?.validToDate.getTime();
}
