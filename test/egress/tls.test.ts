/**
 * TLS of outbound requests. The client runs in a process of its own, because trust in an extra authority is given by an
 * environment variable at its start.
 */
import { execFile } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import forge from "node-forge";
import { afterAll, beforeAll, expect, test } from "vitest";

interface Identity {
  readonly cert: string;
  readonly key: string;
}

/** A certificate for itself that names `tls.test` and 127.0.0.1. */
function makeIdentity(): Identity {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const key = privateKey.export({ type: "pkcs1", format: "pem" }).toString();
  const forgeKey = forge.pki.privateKeyFromPem(key);
  const certificate = forge.pki.createCertificate();
  certificate.publicKey = forge.pki.setRsaPublicKey(forgeKey.n, forgeKey.e);
  certificate.serialNumber = "01";
  certificate.validity.notBefore = new Date(Date.now() - 3_600_000);
  certificate.validity.notAfter = new Date(Date.now() + 3_600_000);
  const name = [{ name: "commonName", value: "tls.test" }];
  certificate.setSubject(name);
  certificate.setIssuer(name);
  certificate.setExtensions([
    { name: "basicConstraints", cA: true },
    {
      name: "subjectAltName",
      altNames: [
        { type: 2, value: "tls.test" },
        { type: 7, ip: "127.0.0.1" },
      ],
    },
  ]);
  certificate.sign(forgeKey, forge.md.sha256.create());
  return { cert: forge.pki.certificateToPem(certificate), key };
}

let folder = "";
let server: Server;
let port = 0;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "egress-tls-"));
  const identity = makeIdentity();
  writeFileSync(join(folder, "cert.pem"), identity.cert);
  server = createServer(identity, (request, response) => response.end(`hello ${request.headers.host}`));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  port = (server.address() as AddressInfo).port;
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

const source = (specifier: string): string => JSON.stringify(new URL(`../../src/${specifier}`, import.meta.url).href);

/** Body, or the failure's message. */
async function ask(host: string, environment: Readonly<Record<string, string>>): Promise<string> {
  const program = `
    import { openEgress } from ${source("egress/egress.ts")};
    const quiet = () => {};
    const clock = { now: Date.now, monotonic: () => performance.now(), after: (ms, act) => { const t = setTimeout(act, ms); return () => clearTimeout(t); } };
    const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };
    const egress = openEgress({ allowedCidrs: [], blockedCidrs: [], clock, log, lookup: async () => ["127.0.0.1"] });
    const request = { method: "GET", url: process.argv[1], headers: {}, redirectsMax: 0, bodyBytesMax: 1000, timeoutMs: 10000 };
    console.log(await egress.fetch(request).then(({ body }) => new TextDecoder().decode(body), (error) => error.message));
    await egress.close();`;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--input-type=module", "-e", program, `https://${host}:${port}/`],
    { env: { PATH: process.env.PATH, ...environment } },
  );
  return stdout.trim();
}

const trusting = (): Record<string, string> => ({ NODE_EXTRA_CA_CERTS: join(folder, "cert.pem") });

test("a trusted certificate is checked against the host of the URL, not the address dialled", async () => {
  expect(await ask("tls.test", trusting())).toBe(`hello tls.test:${port}`);
  expect(await ask("127.0.0.1", trusting())).toBe(`hello 127.0.0.1:${port}`);
  expect(await ask("other.test", trusting())).toBe(
    `Cannot reach "other.test:${port}": its certificate is not trusted (ERR_TLS_CERT_ALTNAME_INVALID)`,
  );
});

test("an unknown certificate is refused, also where the environment says not to check", async () => {
  const refusal = `Cannot reach "tls.test:${port}": its certificate is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)`;
  expect(await ask("tls.test", {})).toBe(refusal);
  expect(await ask("tls.test", { NODE_TLS_REJECT_UNAUTHORIZED: "0" })).toBe(refusal);
});
