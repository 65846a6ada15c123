/**
 * One X.509 certificate. Keys are made by node:crypto, which is fast at it and keeps them out of JavaScript until they are written; the
 * certificate is put together and signed by node-forge, as Node reads certificates and makes none. node-forge signs with RSA alone, so
 * all keys are RSA. What comes out is held against Node's own reading of it before anybody gets it.
 */
import { createPublicKey, generateKeyPair, randomBytes, X509Certificate } from "node:crypto";
import { promisify } from "node:util";
import forge from "node-forge";
import { Failure } from "../errors/failure.ts";
import { certificateBackdateMs } from "../limits.ts";
import type { AlternativeName } from "./alternative-names.ts";

/** PEM. */
export interface Pair {
  readonly cert: string;
  readonly key: string;
}

export interface Validity {
  /** Epoch milliseconds. */
  readonly fromMs: number;
  readonly untilMs: number;
}

export type Purpose =
  | { readonly is: "authority" }
  | { readonly is: "server"; readonly names: readonly AlternativeName[] }
  | { readonly is: "client" };

export interface CertificateOptions {
  readonly commonName: string;
  readonly purpose: Purpose;
  /** Absent: it signs itself. */
  readonly issuer?: Pair | undefined;
  readonly validity: Validity;
}

/** Authorities bundled during a change of one are told apart by their names, so no two have the same. */
export function authorityName(): string {
  return `Troupe development CA ${randomBytes(4).toString("hex")}`;
}

/** Begins a little in the past, for clocks that are behind. */
export function validityFor(days: number, nowMs: number): Validity {
  return { fromMs: nowMs - certificateBackdateMs, untilMs: nowMs + days * 86_400_000 };
}

export async function makeCertificate(options: CertificateOptions): Promise<Pair> {
  const { key, publicKey } = await makeKey();
  const { issuer = { cert: undefined, key } } = options;
  const cert = forge.pki.createCertificate();
  cert.publicKey = forge.pki.publicKeyFromPem(publicKey) as forge.pki.rsa.PublicKey;
  cert.serialNumber = serialNumber();
  cert.validity.notBefore = new Date(options.validity.fromMs);
  cert.validity.notAfter = new Date(options.validity.untilMs);
  const subject = [{ name: "commonName", value: options.commonName, valueTagClass: forge.asn1.Type.UTF8 }];
  const signer = issuer.cert === undefined ? undefined : forge.pki.certificateFromPem(issuer.cert);
  cert.setSubject(subject as unknown as forge.pki.CertificateField[]);
  cert.setIssuer(signer === undefined ? cert.subject.attributes : nameOf(signer));
  cert.setExtensions([
    ...extensionsFor(options.purpose),
    { name: "subjectKeyIdentifier" },
    authorityKey(signer ?? cert),
  ]);
  cert.sign(forge.pki.privateKeyFromPem(issuer.key), forge.md.sha256.create());
  const pem = forge.pki.certificateToPem(cert).replaceAll("\r\n", "\n");
  check(pem, issuer.cert ?? pem);
  return { cert: pem, key };
}

async function makeKey(): Promise<{ readonly key: string; readonly publicKey: string }> {
  const { privateKey } = await promisify(generateKeyPair)("rsa", { modulusLength: keyBits });
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    publicKey: createPublicKey(privateKey).export({ type: "spki", format: "pem" }).toString(),
  };
}

const keyBits = 2_048;

/** 128 random bits but for the first two, which make it a positive number of full length. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString("hex");
}

function extensionsFor(purpose: Purpose): object[] {
  if (purpose.is === "authority") {
    return [
      { name: "basicConstraints", cA: true, pathLenConstraint: 0, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    ];
  }
  const common = [
    { name: "basicConstraints", cA: false, critical: true },
    // Encipherment is for RSA key exchange of TLS 1.2, which servers alone take part in.
    { name: "keyUsage", digitalSignature: true, keyEncipherment: purpose.is === "server", critical: true },
  ];
  if (purpose.is === "client") return [...common, { name: "extKeyUsage", clientAuth: true }];
  return [...common, { name: "extKeyUsage", serverAuth: true }, { name: "subjectAltName", altNames: purpose.names }];
}

/** The reader leaves the bytes of UTF-8 as they are, and the writer would encode them once more. */
function nameOf({ subject }: forge.pki.Certificate): forge.pki.CertificateField[] {
  return subject.attributes.map((field) =>
    Number(field.valueTagClass) === Number(forge.asn1.Type.UTF8) && typeof field.value === "string"
      ? { ...field, value: forge.util.decodeUtf8(field.value) }
      : field,
  );
}

/** The identifier the issuer has for itself: another tool may have made it in another way than forge does. */
function authorityKey(issuer: forge.pki.Certificate): object {
  const own = issuer.getExtension("subjectKeyIdentifier") as { readonly subjectKeyIdentifier?: string } | undefined;
  const keyIdentifier =
    own?.subjectKeyIdentifier === undefined
      ? issuer.generateSubjectKeyIdentifier().getBytes()
      : forge.util.hexToBytes(own.subjectKeyIdentifier);
  return { name: "authorityKeyIdentifier", keyIdentifier };
}

/**
 * That an authority made by another tool has a name forge writes in another way would show at the first handshake only. Throws Failure
 * refused.
 */
function check(cert: string, issuer: string): void {
  const [made, signer] = [new X509Certificate(cert), new X509Certificate(issuer)];
  if (made.checkIssued(signer) && made.verify(signer.publicKey)) return;
  throw new Failure(
    "refused",
    `Cannot sign with the authority "${signer.subject.replaceAll("\n", ", ")}": what it signs does not verify`,
  );
}
