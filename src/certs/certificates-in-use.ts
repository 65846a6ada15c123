/** The certificates of files in use and when they end: from then on nobody gets in over TLS, so whoever watches the server wants to know before. */
import type { X509Certificate } from "node:crypto";
import { readCertificates, type TlsFiles } from "./tls-files.ts";

export interface CertificateInUse {
  /** Of the server, with the chain to its authority; of the authorities of clients. */
  readonly name: "server" | "client_ca";
  /** `CN=troupe.example.com` */
  readonly subject: string;
  /** Epoch milliseconds. */
  readonly fromMs: number;
  readonly untilMs: number;
}

/** For each file the certificate that ends next. `nowMs`: epoch milliseconds. The files are read once, however often is asked. */
export function certificatesInUse({ cert, clientCa }: TlsFiles): (nowMs: number) => readonly CertificateInUse[] {
  const chain = certificatesOf("server", cert);
  const authorities = clientCa === undefined ? [] : certificatesOf("client_ca", clientCa);
  return (nowMs) => {
    // A chain holds as long as the first of it to end. Authorities come and go: one that has ended is of no interest while another is good.
    const good = authorities.filter(({ untilMs }) => untilMs > nowMs);
    return [...chain.slice(0, 1), ...(good.length > 0 ? good.slice(0, 1) : authorities.slice(-1))];
  };
}

/** Those that end first come first. */
function certificatesOf(name: CertificateInUse["name"], text: string): readonly CertificateInUse[] {
  const certificates = readCertificates(text);
  if (typeof certificates === "string") throw new Error(`A file in use ${certificates}`);
  return certificates.map((one) => inUse(name, one)).sort((one, other) => one.untilMs - other.untilMs);
}

function inUse(
  name: CertificateInUse["name"],
  { subject, validFromDate, validToDate }: X509Certificate,
): CertificateInUse {
  return {
    name,
    // Absent when it is empty, whatever the type says.
    subject: ((subject as string | undefined) ?? "").split("\n").join(", "),
    fromMs: validFromDate.getTime(),
    untilMs: validToDate.getTime(),
  };
}
