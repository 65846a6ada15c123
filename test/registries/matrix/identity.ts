/** A throwaway certificate that this process alone trusts. */
import { generateKeyPairSync } from "node:crypto";
import { isIP } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import forge from "node-forge";

export interface Identity {
  readonly cert: string;
  readonly key: string;
}

const hourMs = 3_600_000;

export function trustedIdentity(names: readonly string[]): Identity {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const key = privateKey.export({ type: "pkcs1", format: "pem" }).toString();
  const forgeKey = forge.pki.privateKeyFromPem(key);
  const certificate = forge.pki.createCertificate();
  certificate.publicKey = forge.pki.setRsaPublicKey(forgeKey.n, forgeKey.e);
  certificate.serialNumber = "01";
  certificate.validity.notBefore = new Date(Date.now() - hourMs);
  certificate.validity.notAfter = new Date(Date.now() + hourMs);
  const subject = [{ name: "commonName", value: "matrix.test" }];
  certificate.setSubject(subject);
  certificate.setIssuer(subject);
  certificate.setExtensions([
    { name: "basicConstraints", cA: true },
    {
      name: "subjectAltName",
      altNames: names.map((name) => (isIP(name) === 0 ? { type: 2, value: name } : { type: 7, ip: name })),
    },
  ]);
  certificate.sign(forgeKey, forge.md.sha256.create());
  const cert = forge.pki.certificateToPem(certificate);
  setDefaultCACertificates([...getCACertificates("default"), cert]);
  return { cert, key };
}
