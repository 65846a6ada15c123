/** The settings of TLS: which go together, and what is told of files that will not do. */
import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import forge from "node-forge";
import { beforeAll, describe, expect, it } from "vitest";
import { settingNames } from "../../src/certs/tls-files.ts";
import { ConfigError, type Environment, type Problem, parseSettings } from "../../src/config.ts";
import { tlsFileBytesMax } from "../../src/limits.ts";
import { type CertificateFiles, certificateFiles, day, encryptedKey, filesIn, newFolder } from "./certificate-files.ts";

let files: CertificateFiles;
beforeAll(async () => {
  files = await certificateFiles();
  files.write("empty", "");
  files.write("broken.crt", files.text("server.crt").replace(/\n.{20}/, "\n####################"));
  files.write("der.crt", Buffer.from("3082010a0282", "hex"));
  files.write("encrypted.key", encryptedKey());
  files.write("two.crt", files.text("ca.crt") + files.text("server.crt"));
  files.write("chain.crt", files.text("server.crt") + files.text("ca.crt"));
  files.write("dead-chain.crt", files.text("server.crt") + files.text("dead/ca.crt"));
  files.write("authorities.crt", files.text("dead/ca.crt") + files.text("ca.crt"));
  files.write("commented.crt", `Made by hand\r\n${files.text("server.crt").replaceAll("\n", "\r\n")}`);
  writeFileSync(files.path("endless"), Buffer.alloc(tlsFileBytesMax + 1, "\n"));
  execFileSync("mkfifo", [files.path("pipe")]);
});

function problems(environment: Environment): readonly Problem[] {
  try {
    parseSettings(environment);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems;
  }
}

type Named = { readonly cert?: string; readonly key?: string; readonly clientCa?: string };

/** Files by their names; with keys. */
function settings(named: Named, more: Environment = { SERVICE_API_KEYS: "alice:agent:key" }): Environment {
  const all = Object.entries(named) as [keyof Named, string][];
  return { ...Object.fromEntries(all.map(([file, name]) => [settingNames[file], files.path(name)])), ...more };
}

const good = { cert: "server.crt", key: "server.key", clientCa: "ca.crt" };

describe("the settings of TLS", () => {
  it.each<[string, Named]>([
    ["nothing", {}],
    ["a certificate and its key", { cert: "server.crt", key: "server.key" }],
    ["all three", good],
    ["a chain", { ...good, cert: "chain.crt" }],
    ["text around the certificate, in lines of Windows", { ...good, cert: "commented.crt" }],
    ["several authorities, one of them past its time", { ...good, clientCa: "authorities.crt" }],
  ])("may be %s", (_, named) => {
    expect(problems(settings(named))).toEqual([]);
  });

  it.each<[string, Named, Partial<Record<keyof Named, string>>]>([
    ["a certificate alone", { cert: "server.crt" }, { key: "is needed with SERVICE_GRPC_TLS_CERT_FILE" }],
    ["a key alone", { key: "server.key" }, { cert: "is needed with SERVICE_GRPC_TLS_KEY_FILE" }],
    [
      "a client authority alone",
      { clientCa: "ca.crt" },
      { clientCa: "needs SERVICE_GRPC_TLS_CERT_FILE and SERVICE_GRPC_TLS_KEY_FILE" },
    ],
    ["a client authority with half of it", { cert: "server.crt", clientCa: "ca.crt" }, { key: "is needed with" }],
    [
      "files that are not there",
      { cert: "a", key: "b", clientCa: "c" },
      { cert: "ENOENT", key: "ENOENT", clientCa: "ENOENT" },
    ],
    ["a folder", { ...good, cert: "old" }, { cert: "is not a file" }],
    ["a pipe", { ...good, key: "pipe" }, { key: "is not a file" }],
    ["a file too large", { ...good, clientCa: "endless" }, { clientCa: `more than ${tlsFileBytesMax} bytes` }],
    [
      "empty files",
      { cert: "empty", key: "empty", clientCa: "empty" },
      { cert: "no certificate", key: "no private key", clientCa: "no certificate" },
    ],
    ["a certificate in DER", { ...good, cert: "der.crt" }, { cert: "holds no certificate in PEM form" }],
    ["a damaged certificate", { ...good, cert: "broken.crt" }, { cert: "cannot be read" }],
    ["a damaged authority", { ...good, clientCa: "broken.crt" }, { clientCa: "cannot be read" }],
    [
      "certificate and key exchanged",
      { cert: "server.key", key: "server.crt" },
      { cert: "no certificate", key: "no private key" },
    ],
    ["the key of another", { ...good, key: "client-alice.key" }, { key: "does not fit the certificate" }],
    ["a chain that begins with the authority", { ...good, cert: "two.crt" }, { key: "comes first in its file" }],
    ["an encrypted key", { ...good, key: "encrypted.key" }, { key: "encrypted with a passphrase" }],
    ["an expired certificate", { cert: "old/server.crt", key: "old/server.key" }, { cert: "expired at 20" }],
    [
      "one that is not valid yet",
      { cert: "coming/server.crt", key: "coming/server.key" },
      { cert: "is not valid before 20" },
    ],
    ["a chain with an expired part", { ...good, cert: "dead-chain.crt" }, { cert: "expired at 20" }],
    ["no authority that is still good", { ...good, clientCa: "dead/ca.crt" }, { clientCa: "expired at 20" }],
    ["a client's certificate", { cert: "client-alice.crt", key: "client-alice.key" }, { cert: "not for servers" }],
    [
      "faults in all three",
      { cert: "old/server.crt", key: "empty", clientCa: "der.crt" },
      { cert: "expired", key: "no private key", clientCa: "no certificate" },
    ],
  ])("may not be %s", (_, named, expected) => {
    const found = problems(settings(named));
    const names = Object.entries(expected).map(([file, reason]) => ({
      name: settingNames[file as keyof Named],
      reason: expect.stringContaining(reason),
    }));
    expect(found).toEqual(names);
  });

  it("may not be a key too short for OpenSSL, and say so in its words", () => {
    const weak = filesIn(newFolder());
    const key = generateKeyPairSync("rsa", { modulusLength: 1_024 }).privateKey.export({
      type: "pkcs8",
      format: "pem",
    });
    const signer = forge.pki.privateKeyFromPem(key.toString());
    const certificate = forge.pki.createCertificate();
    certificate.publicKey = forge.pki.setRsaPublicKey(signer.n, signer.e);
    certificate.validity.notAfter = new Date(Date.now() + day);
    certificate.sign(signer, forge.md.sha256.create());
    const environment = {
      [settingNames.cert]: weak.write("crt", forge.pki.certificateToPem(certificate)),
      [settingNames.key]: weak.write("key", key.toString()),
    };
    expect(problems(environment)).toEqual([{ name: settingNames.cert, reason: "cannot be used: ee key too small" }]);
  });

  it.each<[string, Environment]>([
    ["", {}],
    [", whatever else is allowed", { SERVICE_ALLOW_ANONYMOUS: "1" }],
  ])("may be no mutual TLS without keys: no certificate would have the name of one%s", (_, more) => {
    expect(problems(settings(good, more))).toEqual([
      { name: settingNames.clientCa, reason: expect.stringContaining("needs SERVICE_API_KEYS") },
    ]);
  });

  it("do not open an address to callers without keys", () => {
    const { clientCa: _, ...tls } = good;
    expect(problems(settings(tls, { SERVICE_GRPC_HOST: "0.0.0.0" })).map(({ name }) => name)).toEqual([
      "SERVICE_GRPC_HOST",
    ]);
  });

  it("are told about together with all the others, and with nothing of a file's content", () => {
    const found = problems(
      settings({ ...good, key: "client-alice.key" }, { SERVICE_HTTP_PORT: "http", SERVICE_API_KEYS: "a:agent:k" }),
    );
    expect(found.map(({ name }) => name)).toEqual(["SERVICE_HTTP_PORT", settingNames.key]);
    const body = files.text("client-alice.key").split("\n")[1] ?? expect.unreachable();
    expect(JSON.stringify(found)).not.toContain(body);
  });
});
