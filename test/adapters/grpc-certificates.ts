/** A certificate authority of the tests' own, and certificates it signed. */
import { generateKeyPairSync } from "node:crypto";
import forge from "node-forge";

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

let serial = 1;

function newKey(): string {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

/** Without issuer: an authority. With one: a certificate for the name. */
export function certificate(name: string, issuer?: Certificate): Certificate {
  const key = newKey();
  const forgeKey = forge.pki.privateKeyFromPem(key);
  const cert = forge.pki.createCertificate();
  cert.publicKey = forge.pki.setRsaPublicKey(forgeKey.n, forgeKey.e);
  serial += 1;
  cert.serialNumber = `0${serial}`;
  cert.validity.notBefore = new Date(Date.now() - 60_000);
  cert.validity.notAfter = new Date(Date.now() + 3_600_000);
  const subject = [{ name: "commonName", value: name }];
  cert.setSubject(subject);
  cert.setIssuer(issuer === undefined ? subject : forge.pki.certificateFromPem(issuer.cert).subject.attributes);
  cert.setExtensions(
    issuer === undefined
      ? [{ name: "basicConstraints", cA: true }]
      : [{ name: "subjectAltName", altNames: [{ type: 2, value: name }] }],
  );
  cert.sign(issuer === undefined ? forgeKey : forge.pki.privateKeyFromPem(issuer.key), forge.md.sha256.create());
  return { cert: forge.pki.certificateToPem(cert), key };
}
