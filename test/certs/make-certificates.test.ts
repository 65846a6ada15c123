/** What `troupe certs` writes: certificates others accept, keys nobody else reads, and nothing replaced that was not to be. */
import { execFileSync } from "node:child_process";
import { createPrivateKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { makeCertificates } from "../../src/certs/make-certificates.ts";
import { runCerts } from "../../src/certs/run-certs.ts";
import { parseApiKeys } from "../../src/operations/authentication.ts";
import { type CertificateFiles, day, filesIn, newFolder } from "./certificate-files.ts";

const openssl = "/usr/bin/openssl";
const hosts = [
  "api.example.com",
  "API.example.com",
  "*.svc.example.com",
  "my_service",
  "10.1.2.3",
  "[fd00::5]",
  "bücher.example",
];

let files: CertificateFiles;
beforeAll(async () => {
  files = filesIn(join(newFolder(), "made", "here"));
  await makeCertificates({ folder: files.folder, hosts, clients: ["alice", "svc@x"] });
});

const certificate = (name: string): X509Certificate => new X509Certificate(files.text(`${name}.crt`));
const made = ["ca", "server", "client-alice", "client-svc@x"];

describe("the certificates", () => {
  it.each(made)("have a chain that verifies: %s", (name) => {
    const [cert, ca] = [certificate(name), certificate("ca")];
    expect(cert.checkIssued(ca)).toBe(true);
    expect(cert.verify(ca.publicKey)).toBe(true);
    if (!existsSync(openssl)) return;
    const purpose = name === "ca" ? [] : ["-purpose", name === "server" ? "sslserver" : "sslclient"];
    const words = ["verify", "-x509_strict", ...purpose, "-CAfile", files.path("ca.crt"), files.path(`${name}.crt`)];
    expect(execFileSync(openssl, words, { encoding: "utf8" })).toContain("OK");
  });

  it.each(made)("fit their keys, which only the owner may read: %s", (name) => {
    expect(certificate(name).checkPrivateKey(createPrivateKey(files.text(`${name}.key`)))).toBe(true);
    expect(statSync(files.path(`${name}.key`)).mode & 0o777).toBe(0o600);
    expect(statSync(files.folder).mode & 0o077).toBe(0);
  });

  it("leave no draft behind", () => {
    expect(readdirSync(files.folder).sort()).toEqual(made.flatMap((name) => [`${name}.crt`, `${name}.key`]).sort());
  });

  it.each([
    ["localhost", true],
    ["api.example.com", true],
    ["a.svc.example.com", true],
    ["my_service", true],
    ["xn--bcher-kva.example", true],
    ["svc.example.com", false],
    ["example.com", false],
    ["Troupe development server", false],
  ])("name the host %s: %s", (host, isNamed) => {
    expect(certificate("server").checkHost(host) !== undefined).toBe(isNamed);
  });

  it.each([
    ["127.0.0.1", true],
    ["::1", true],
    ["10.1.2.3", true],
    ["fd00::5", true],
    ["10.1.2.4", false],
  ])("name the address %s: %s", (address, isNamed) => {
    expect(certificate("server").checkIP(address) !== undefined).toBe(isNamed);
  });

  it("name a host that is given twice once", () => {
    expect(certificate("server").subjectAltName?.match(/DNS:api\.example\.com/g)).toHaveLength(1);
  });

  it("are for one purpose each", () => {
    const purposes = made.map((name) => [certificate(name).ca, certificate(name).keyUsage]);
    const [serverAuth, clientAuth] = [["1.3.6.1.5.5.7.3.1"], ["1.3.6.1.5.5.7.3.2"]];
    expect(purposes).toEqual([
      [true, undefined],
      [false, serverAuth],
      [false, clientAuth],
      [false, clientAuth],
    ]);
  });

  it("have the name of the key as common name, and a server's is the name of none", () => {
    expect(certificate("client-svc@x").subject).toBe("CN=svc@x");
    const serverName = certificate("server").subject.replace("CN=", "");
    expect(parseApiKeys(`${serverName}:agent:key`).problems).not.toEqual([]);
  });

  it("have serial numbers of 128 bits, no two alike", () => {
    const serials = made.map((name) => certificate(name).serialNumber);
    expect(new Set(serials).size).toBe(made.length);
    for (const serial of serials) expect(serial).toMatch(/^[4-7][0-9A-F]{31}$/);
  });

  it("are valid from a little before now", () => {
    for (const name of made) {
      const ageMs = Date.now() - certificate(name).validFromDate.getTime();
      expect(ageMs).toBeGreaterThan(4 * 60_000);
      expect(ageMs).toBeLessThan(60 * 60_000);
    }
  });

  it("do not outlive their authority", async () => {
    const folder = newFolder();
    const then = Date.now() - 3_600 * day;
    await makeCertificates({ folder, nowMs: then });
    const { server, authority } = await makeCertificates({ folder, days: 365, force: true });
    expect(server.untilMs).toBe(authority.untilMs);
    expect(new X509Certificate(readFileSync(server.cert)).validToDate.getTime()).toBe(authority.untilMs);
  });
});

describe("a folder with an authority", () => {
  const textsOf = (): Record<string, string> =>
    Object.fromEntries(readdirSync(files.folder).map((name) => [name, files.text(name)]));

  it("gets another client, and nothing else changes", async () => {
    const before = textsOf();
    const added = await makeCertificates({ folder: files.folder, clients: ["bob"] });
    expect([added.authority.outcome, added.server.outcome]).toEqual(["kept", "kept"]);
    expect(textsOf()).toMatchObject(before);
    expect(certificate("client-bob").verify(certificate("ca").publicKey)).toBe(true);
    for (const end of ["crt", "key"]) rmSync(files.path(`client-bob.${end}`));
  });

  it.each([
    ["nothing new", {}, "server.crt"],
    ["a host", { host: ["other.example.com"] }, "server.crt"],
    ["a client that is there", { client: ["carol", "alice"] }, "client-alice.crt"],
  ])("is left as it is when asked for %s", async (_, options, named) => {
    const before = textsOf();
    const { exitCode, text } = await runCerts({ into: files.folder, ...options });
    expect([exitCode, text]).toEqual([
      73,
      `Cannot make "${files.path(named)}": it is there already; --force replaces it`,
    ]);
    expect(textsOf()).toEqual(before);
  });

  it("keeps its authority even with --force, which replaces what was asked for", async () => {
    const folder = newFolder();
    const own = filesIn(folder);
    await makeCertificates({ folder, clients: ["alice", "bob"] });
    const before = ["ca.crt", "ca.key", "server.crt", "client-alice.crt", "client-alice.key", "client-bob.crt"].map(
      own.text,
    );
    const { exitCode } = await runCerts({ into: folder, client: ["alice"], host: ["new.example.com"], force: true });
    expect(exitCode).toBe(0);
    const after = ["ca.crt", "ca.key", "server.crt", "client-alice.crt", "client-alice.key", "client-bob.crt"].map(
      own.text,
    );
    expect(after.map((text, at) => text === before[at])).toEqual([true, true, false, false, false, true]);
    expect(new X509Certificate(own.text("server.crt")).checkHost("new.example.com")).toBe("new.example.com");
    expect(statSync(own.path("client-alice.key")).mode & 0o777).toBe(0o600);
  });

  it("of another tool, with a name of many parts, signs as well", async () => {
    if (!existsSync(openssl)) return expect(makeCertificates({ folder: newFolder() })).resolves.toBeDefined();
    const own = filesIn(newFolder());
    const subject = "/C=DE/O=Käse & Söhne/OU=Ops/CN=Own CA/emailAddress=ops@example.com";
    const words = ["req", "-x509", "-utf8", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", subject];
    execFileSync(openssl, [...words, "-keyout", own.path("ca.key"), "-out", own.path("ca.crt")], { stdio: "pipe" });
    await makeCertificates({ folder: own.folder, clients: ["alice"] });
    for (const name of ["server.crt", "client-alice.crt"]) {
      const words = ["verify", "-CAfile", own.path("ca.crt"), own.path(name)];
      expect(execFileSync(openssl, words, { encoding: "utf8" })).toContain("OK");
    }
  });
});

describe("what cannot be made is refused, and nothing is written", () => {
  it.each([
    ["a URL as host", { host: ["http://example.com"] }],
    ["a host with a port", { host: ["example.com:8081"] }],
    ["an empty host", { host: [""] }],
    ["a host with a space", { host: ["my host"] }],
    ["a host with an empty label", { host: ["a..b"] }],
    ["a label of 64 letters", { host: ["a".repeat(64)] }],
    ["a wildcard for all there is", { host: ["*"] }],
    ["a wildcard for all of a top level", { host: ["*.com"] }],
    ["a wildcard in the middle", { host: ["a.*.com"] }],
    ["half an address", { host: ["127.1"] }],
    ["an address with a zone", { host: ["fe80::1%eth0"] }],
    ["a name with a NUL", { host: ["a\0.example.com"] }],
    ["too many hosts", { host: Array.from({ length: 101 }, (_, at) => `h${at}`) }],
    ["a client that is a path", { client: ["../alice"] }],
    ["a client with a space", { client: ["alice b"] }],
    ["a client with a colon", { client: ["alice:operator"] }],
    ["a client without a name", { client: [""] }],
    ["a client of 65 letters", { client: ["a".repeat(65)] }],
    ["no days", { days: "0" }],
    ["days with a fraction", { days: "1.5" }],
    ["days in words", { days: "ten" }],
    ["more days than the authority has", { days: "3651" }],
  ])("%s", async (_, options) => {
    const into = join(newFolder(), "certs");
    const { exitCode, text } = await runCerts({ into, ...options });
    expect([exitCode, text]).toEqual([64, expect.stringMatching(/^Cannot make (a certificate|certificates) for /)]);
    expect(existsSync(into)).toBe(false);
  });

  it("but whatever may be the name of a key is a client", async () => {
    const names = ["A.b-c_d@e", "a".repeat(64), "..", "key-1"];
    for (const name of names) expect(parseApiKeys(`${name}:agent:key`).problems).toEqual([]);
    const folder = newFolder();
    const { clients } = await makeCertificates({ folder, clients: names });
    expect(clients.map(({ cert }) => new X509Certificate(readFileSync(cert)).subject)).toEqual(
      names.map((name) => `CN=${name}`),
    );
    expect(clients.every(({ cert, key }) => dirname(cert) === folder && dirname(key) === folder)).toBe(true);
  });

  const ec = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ type: "pkcs8", format: "pem" });
  it.each<[string, (own: CertificateFiles) => void, string]>([
    ["without its key", (own) => rmSync(own.path("ca.key")), "is missing"],
    ["without its certificate", (own) => rmSync(own.path("ca.crt")), "is missing"],
    ["that is no certificate", (own) => own.write("ca.crt", "none"), "it holds no certificate"],
    ["whose key is none", (own) => own.write("ca.key", "none"), "it holds no private key, or an encrypted one"],
    ["with the key of another", (own) => own.write("ca.key", files.text("server.key")), "it does not fit"],
    ["with a key that is not RSA", (own) => own.write("ca.key", ec.toString()), "only RSA keys can sign here"],
    [
      "that is a server",
      (own) => {
        own.write("ca.crt", own.text("server.crt"));
        own.write("ca.key", own.text("server.key"));
      },
      "it is no certificate of an authority",
    ],
  ])("with an authority %s", async (_, damage, why) => {
    const own = filesIn(newFolder());
    cpSync(files.folder, own.folder, { recursive: true });
    damage(own);
    const { exitCode, text } = await runCerts({ into: own.folder, client: ["carol"] });
    expect([exitCode, text]).toEqual([78, expect.stringContaining(why)]);
    expect(existsSync(own.path("client-carol.crt"))).toBe(false);
  });

  it("with an authority that has expired", async () => {
    const folder = newFolder();
    await makeCertificates({ folder, nowMs: Date.now() - 4_000 * day });
    expect(await runCerts({ into: folder, client: ["alice"] })).toMatchObject({
      exitCode: 78,
      text: expect.stringMatching(/it expired at 20.*; begin in another folder$/),
    });
  });

  it("into what is no folder", async () => {
    const file = filesIn(newFolder()).write("file", "");
    expect(await runCerts({ into: join(file, "certs") })).toMatchObject({ exitCode: 73 });
  });

  it("over a link that leads nowhere", async () => {
    const own = filesIn(newFolder());
    symlinkSync(own.path("elsewhere"), own.path("client-alice.key"));
    expect(await runCerts({ into: own.folder, client: ["alice"] })).toMatchObject({ exitCode: 73 });
    expect(existsSync(own.path("elsewhere"))).toBe(false);
  });
});

describe("the command", () => {
  it("says what it made and how to use it, with paths a shell takes", async () => {
    const folder = join(newFolder(), "it's mine");
    const { text, certificates } = await runCerts({ into: folder, client: ["alice"], days: "30" });
    const day30 = new Date(certificates?.server.untilMs ?? 0).toISOString().slice(0, 10);
    expect(text).toContain(`made server: ${folder}/server.crt, ${folder}/server.key, until ${day30}`);
    const assignment = /SERVICE_GRPC_TLS_CLIENT_CA_FILE=.*/.exec(text)?.[0] ?? "";
    const script = `${assignment}; printf %s "$SERVICE_GRPC_TLS_CLIENT_CA_FILE"`;
    expect(execFileSync("/bin/sh", ["-c", script], { encoding: "utf8" })).toBe(join(folder, "ca.crt"));
  });
});
