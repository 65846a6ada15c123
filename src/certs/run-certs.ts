/** `troupe certs`: certificates for development in a folder, and what to do with them next. */
import { resolve } from "node:path";
import { isFailure } from "../errors/failure.ts";
import { type Certificates, type CertificatesOptions, type MadePair, makeCertificates } from "./make-certificates.ts";

export interface CertsOptions {
  /** Default: `certs`. */
  readonly into?: string | undefined;
  readonly host?: readonly string[] | undefined;
  readonly client?: readonly string[] | undefined;
  /** As typed. */
  readonly days?: string | undefined;
  readonly force?: boolean | undefined;
}

export interface CertsResult {
  /** 0; 64 a word that cannot be used; 73 a file that is there, or cannot be written; 78 an authority that cannot sign. */
  readonly exitCode: 0 | 64 | 73 | 78;
  /** Without a line break at the end. For stdout when the exit code is 0, else for stderr. */
  readonly text: string;
  /** What was made, for --json. */
  readonly certificates?: Certificates | undefined;
}

export async function runCerts({ into = "certs", host, client, days, force }: CertsOptions): Promise<CertsResult> {
  const options: CertificatesOptions = {
    folder: resolve(into),
    hosts: host,
    clients: client,
    days: days === undefined ? undefined : wholeNumber(days),
    force,
  };
  try {
    const certificates = await makeCertificates(options);
    return { exitCode: 0, text: textOf(certificates), certificates };
  } catch (error) {
    if (!isFailure(error)) throw error;
    const exitCode = exitCodes[error.kind] ?? 73;
    return { exitCode, text: error.message };
  }
}

const exitCodes: Readonly<Record<string, 64 | 73 | 78>> = { invalid_request: 64, refused: 78 };

function wholeNumber(text: string): number {
  return /^[0-9]+$/.test(text) ? Number(text) : Number.NaN;
}

function textOf({ authority, server, clients }: Certificates): string {
  const first = clients[0];
  const pairs: [string, MadePair][] = [
    ["authority", authority],
    ["server", server],
    ...clients.map((client): [string, MadePair] => [`client ${client.name}`, client]),
  ];
  const serve = [
    `SERVICE_GRPC_TLS_CERT_FILE=${quoted(server.cert)}`,
    `SERVICE_GRPC_TLS_KEY_FILE=${quoted(server.key)}`,
    ...(first === undefined ? [] : [`SERVICE_GRPC_TLS_CLIENT_CA_FILE=${quoted(authority.cert)}`]),
  ];
  const call = [
    `troupe --tls-ca ${quoted(authority.cert)}`,
    ...(first === undefined ? [] : [`--tls-cert ${quoted(first.cert)}`, `--tls-key ${quoted(first.key)}`]),
    "processes list",
  ];
  return [
    ...pairs.map(([what, pair]) => `${pair.outcome} ${what}: ${pair.cert}, ${pair.key}, until ${dayOf(pair.untilMs)}`),
    "",
    "Serve with:",
    ...serve.map((line) => `  ${line}`),
    ...(first === undefined
      ? []
      : [`  and an entry NAME:ROLE:KEY in SERVICE_API_KEYS for each client, as ${first.name}:agent:KEY`]),
    "",
    "Call with:",
    `  ${call.join(" ")}`,
  ].join("\n");
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** For a shell. */
function quoted(path: string): string {
  return /^[\w./@:+-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
