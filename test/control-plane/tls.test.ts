/** TLS and mutual TLS: both HTTP versions on the port, and the certificate's name as the caller. */
import { generateKeyPairSync } from "node:crypto";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import forge from "node-forge";
import { afterEach, expect, it } from "vitest";
import { type ControlPlane, openControlPlane } from "../../src/control-plane/control-plane.ts";
import { ProcessService } from "../../src/gen/troupe/v1/process_service_pb.ts";
import { openAuthentication, parseApiKeys } from "../../src/operations/authentication.ts";
import { fakeDomain } from "./fake-processes.ts";
import { realClock, rememberingLog, SwitchedReadiness } from "./two-faces.ts";

interface Pair {
  readonly cert: string;
  readonly key: string;
}

function newKey(): string {
  return generateKeyPairSync("rsa", { modulusLength: 2048 })
    .privateKey.export({ type: "pkcs8", format: "pem" })
    .toString();
}

/** Keys are slow to make: all certificates of the good authority share one. */
const sharedKey = newKey();
let serial = 1;
function certificate(commonName: string, issuer?: Pair, key = sharedKey): Pair {
  const forgeKey = forge.pki.privateKeyFromPem(key);
  const cert = forge.pki.createCertificate();
  cert.publicKey = forge.pki.setRsaPublicKey(forgeKey.n, forgeKey.e);
  serial += 1;
  cert.serialNumber = `0${serial}`;
  cert.validity.notBefore = new Date(Date.now() - 60_000);
  cert.validity.notAfter = new Date(Date.now() + 3_600_000);
  const subject = [{ name: "commonName", value: commonName }];
  cert.setSubject(subject);
  cert.setIssuer(issuer === undefined ? subject : forge.pki.certificateFromPem(issuer.cert).subject.attributes);
  cert.setExtensions(
    issuer === undefined
      ? [{ name: "basicConstraints", cA: true }]
      : [
          {
            name: "subjectAltName",
            altNames: [
              { type: 7, ip: "127.0.0.1" },
              { type: 2, value: "localhost" },
            ],
          },
        ],
  );
  cert.sign(issuer === undefined ? forgeKey : forge.pki.privateKeyFromPem(issuer.key), forge.md.sha256.create());
  return { cert: forge.pki.certificateToPem(cert), key };
}

let plane: ControlPlane | undefined;
afterEach(() => plane?.close(500));

async function open(tls: { cert: string; key: string; clientCa?: string }) {
  const domain = fakeDomain();
  plane = await openControlPlane({
    operations: domain.operations,
    authentication: openAuthentication(
      parseApiKeys("reader:agent:agent-key,admin:operator:operator-key").keys,
      realClock,
    ),
    host: "127.0.0.1",
    port: 0,
    tls,
    allowedHosts: [],
    corsOrigins: [],
    clock: realClock,
    log: rememberingLog().log,
    readiness: new SwitchedReadiness(),
  });
  return { domain, baseUrl: `https://127.0.0.1:${plane.address.port}` };
}

const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => "ok",
    (error: unknown) => ConnectError.from(error).code,
  );

it("TLS serves both HTTP versions, and keys still say who calls", async () => {
  const ca = certificate("Test CA");
  const { baseUrl } = await open(certificate("server", ca));
  const nodeOptions = { ca: ca.cert };
  const headers = { authorization: "Bearer agent-key" };
  for (const transport of [
    createGrpcTransport({ baseUrl, nodeOptions }),
    createConnectTransport({ baseUrl, httpVersion: "1.1", nodeOptions }),
    createConnectTransport({ baseUrl, httpVersion: "2", nodeOptions }),
  ]) {
    const client = createClient(ProcessService, transport);
    expect(await codeOf(client.getProcess({ id: 1n }, { headers }))).toBe("ok");
    expect(await codeOf(client.getProcess({ id: 1n }))).toBe(Code.Unauthenticated);
  }
});

it("under mutual TLS the certificate's name is the caller, a key changes nothing, and strangers do not get in", async () => {
  const ca = certificate("Test CA");
  const { baseUrl, domain } = await open({ ...certificate("server", ca), clientCa: ca.cert });
  const client = (pair: Pair | undefined, httpVersion: "1.1" | "2") =>
    createClient(
      ProcessService,
      createConnectTransport({
        baseUrl,
        httpVersion,
        nodeOptions: { ca: ca.cert, ...(pair === undefined ? {} : pair) },
      }),
    );
  const reader = certificate("reader", ca);
  const rogue = certificate("Test CA", undefined, newKey());
  for (const httpVersion of ["1.1", "2"] as const) {
    expect(await codeOf(client(reader, httpVersion).getProcess({ id: 1n }))).toBe("ok");
    expect(domain.seen.at(-1)?.context.caller).toEqual({ name: "reader", role: "agent" });
    const headers = { authorization: "Bearer operator-key" };
    expect(await codeOf(client(reader, httpVersion).deleteProcess({ id: 1n }, { headers }))).toBe(
      Code.PermissionDenied,
    );
    expect(await codeOf(client(certificate("nobody", ca), httpVersion).getProcess({ id: 1n }))).toBe(
      Code.Unauthenticated,
    );
    const calls = domain.seen.length;
    expect(await codeOf(client(undefined, httpVersion).getProcess({ id: 1n }))).not.toBe("ok");
    expect(await codeOf(client(certificate("admin", rogue), httpVersion).getProcess({ id: 1n }))).not.toBe("ok");
    expect(domain.seen.length).toBe(calls);
  }
});
