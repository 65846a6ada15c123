/**
 * TLS and mutual TLS of the control plane: a real server on certificates of `troupe certs`. Who is let in, as whom, by which protocol; who
 * is not; and that certificates are renewed while it runs.
 */
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import type http from "node:http";
import { type RequestOptions, request } from "node:https";
import net from "node:net";
import { join } from "node:path";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { makeCertificates } from "../../src/certs/make-certificates.ts";
import { tlsLookMs } from "../../src/limits.ts";
import { type CertificateFiles, day, filesIn, newFolder } from "../certs/certificate-files.ts";
import { runInProcess } from "../cli/run-in-process.ts";
import { type ForeignClient, openForeignClient } from "./foreign-client.ts";
import { type Server, startRefused, startServer } from "./server.ts";

const keys = "reader:agent:agent-key,admin:operator:operator-key,late:operator:late-key";

/** `expired` was made by the authority long ago; `rogue` is another authority whose client has a name that is known here. */
let files: CertificateFiles;
let rogue: CertificateFiles;
beforeAll(async () => {
  [files, rogue] = [filesIn(newFolder()), filesIn(newFolder())];
  const { folder } = files;
  await Promise.all([
    makeCertificates({ folder: rogue.folder, clients: ["admin"] }),
    makeCertificates({ folder, clients: ["late"], days: 1, nowMs: Date.now() - 700 * day }),
  ]);
  await makeCertificates({ folder, hosts: ["troupe.example.com"], force: true });
  await makeCertificates({ folder, clients: ["reader", "admin", "nobody"] });
});

interface Pair {
  readonly cert: string;
  readonly key: string;
}

function pair(name: string, from = files): Pair {
  return { cert: from.text(`${name}.crt`), key: from.text(`${name}.key`) };
}

const hostOf = (server: Server): { host: string; port: number } => {
  const { hostname, port } = new URL(`http://${server.grpc}`);
  return { host: hostname, port: Number(port) };
};

interface Answered {
  readonly status: number | undefined;
  readonly body: Record<string, unknown>;
}

/** Connect's JSON over HTTP/1.1. Rejects when there is no answer. */
async function post(server: Server, path: string, options: RequestOptions = {}): Promise<Answered> {
  const sent = request({
    ...hostOf(server),
    path: `/troupe.v1.${path}`,
    method: "POST",
    servername: "localhost",
    ca: files.text("ca.crt"),
    agent: false,
    ...options,
    headers: { "content-type": "application/json", ...options.headers },
  });
  sent.end("{}");
  const [response] = (await once(sent, "response")) as [http.IncomingMessage];
  return { status: response.statusCode, body: JSON.parse(Buffer.concat(await response.toArray()).toString()) };
}

function credentials(client?: Pair): grpc.ChannelCredentials {
  const ca = Buffer.from(files.text("ca.crt"));
  if (client === undefined) return grpc.credentials.createSsl(ca);
  return grpc.credentials.createSsl(ca, Buffer.from(client.key), Buffer.from(client.cert));
}

/** The health of the server over gRPC, which asks for no key; rejects when the connection is refused. */
function checkHealth(server: Server, using: grpc.ChannelCredentials): Promise<Buffer> {
  const client = new grpc.Client(server.grpc, using);
  const bytes = (given: Buffer): Buffer => given;
  return new Promise<Buffer>((resolve, reject) => {
    const options = { deadline: Date.now() + 20_000 };
    client.makeUnaryRequest("/grpc.health.v1.Health/Check", bytes, bytes, Buffer.alloc(0), options, (error, answer) => {
      if (error !== null) reject(error);
      else resolve(answer ?? Buffer.alloc(0));
    });
  }).finally(() => client.close());
}

const serving = Buffer.from([8, 1]);

/** Resolves when the handshake is done, with what came of it. */
async function handshake(server: Server, options: ConnectionOptions): Promise<TLSSocket | NodeJS.ErrnoException> {
  const socket = connect({ ...hostOf(server), servername: "localhost", ca: files.text("ca.crt"), ...options });
  return new Promise((resolve) => {
    socket.once("secureConnect", () => resolve(socket));
    socket.once("error", resolve);
  });
}

/** What TLS says when it breaks off: a record of this type, of seven bytes. */
const alert = 21;

/** Bytes the server answers before it closes. */
async function say(server: Server, text: string): Promise<Buffer> {
  const socket = net.connect(hostOf(server));
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.on("error", () => undefined);
  socket.write(text);
  await new Promise((resolve) => socket.once("close", resolve));
  return Buffer.concat(chunks);
}

describe("mutual TLS", () => {
  let server: Server;
  /** By the names of the keys. */
  let foreign: Record<"reader" | "admin" | "nobody", ForeignClient>;
  beforeAll(async () => {
    server = await startServer({
      settings: {
        SERVICE_API_KEYS: keys,
        SERVICE_LOG_LEVEL: "debug",
        SERVICE_GRPC_TLS_CERT_FILE: files.path("server.crt"),
        SERVICE_GRPC_TLS_KEY_FILE: files.path("server.key"),
        SERVICE_GRPC_TLS_CLIENT_CA_FILE: files.path("ca.crt"),
      },
    });
    const [reader, admin, nobody] = await Promise.all(
      ["reader", "admin", "nobody"].map((name) => openForeignClient(server.grpc, credentials(pair(`client-${name}`)))),
    );
    if (reader === undefined || admin === undefined || nobody === undefined) expect.unreachable();
    foreign = { reader, admin, nobody };
  });
  afterAll(async () => {
    for (const client of Object.values(foreign ?? {})) client.close();
    await server?.kill();
  });

  it("shows its rpcs by reflection to every certificate that is trusted", () => {
    for (const client of Object.values(foreign)) {
      expect(client.services).toEqual(expect.arrayContaining(["troupe.v1.ProcessService", "grpc.health.v1.Health"]));
    }
  });

  const operatorKey = { authorization: "Bearer operator-key" };
  it.each<[keyof typeof foreign, string, string, Record<string, string>, number]>([
    ["reader", "ProcessService", "ListProcesses", {}, grpc.status.OK],
    ["reader", "RegistryService", "ListRegistries", {}, grpc.status.OK],
    ["reader", "ModuleService", "ReloadModules", {}, grpc.status.PERMISSION_DENIED],
    ["reader", "ModuleService", "ReloadModules", operatorKey, grpc.status.PERMISSION_DENIED],
    ["admin", "ProcessService", "ListProcesses", {}, grpc.status.OK],
    ["admin", "ModuleService", "ReloadModules", {}, grpc.status.OK],
    ["admin", "ModuleService", "ReloadModules", { authorization: "Bearer wrong" }, grpc.status.OK],
    ["nobody", "ProcessService", "ListProcesses", {}, grpc.status.UNAUTHENTICATED],
    ["nobody", "ProcessService", "ListProcesses", operatorKey, grpc.status.UNAUTHENTICATED],
  ])(
    "gives the certificate of %s for %s/%s the role of its key, whatever key comes with it: %j",
    async (name, service, method, headers, status) => {
      const code = await foreign[name].call(service, method, {}, headers).then(
        () => grpc.status.OK,
        (error: grpc.ServiceError) => error.code,
      );
      expect(code).toBe(status);
    },
  );

  it.each<[string, string, number, string | undefined]>([
    ["reader", "ProcessService/ListProcesses", 200, undefined],
    ["reader", "ModuleService/ReloadModules", 403, "permission_denied"],
    ["admin", "ModuleService/ReloadModules", 200, undefined],
    ["nobody", "ProcessService/ListProcesses", 401, "unauthenticated"],
  ])("does so over HTTP/1.1 as well: %s for %s", async (name, path, status, code) => {
    const answered = await post(server, path, pair(`client-${name}`));
    expect([answered.status, answered.body.code]).toEqual([status, code]);
  });

  it.each<[string, () => Pair | undefined, string]>([
    ["no certificate", () => undefined, "ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE"],
    [
      "the certificate of a stranger's authority, with a name that is known",
      () => pair("client-admin", rogue),
      "UNABLE_TO_",
    ],
    ["an expired certificate", () => pair("client-late"), "CERT_HAS_EXPIRED"],
    ["the certificate of a server", () => pair("server"), "INVALID_PURPOSE"],
  ])("lets nobody in with %s, and says why in its log", async (_, client, reason) => {
    const told = (): number =>
      server.lines.filter((line) => line.includes("tls-refused") && line.includes(reason)).length;
    const before = told();
    await expect(checkHealth(server, credentials(client()))).rejects.toMatchObject({ code: grpc.status.UNAVAILABLE });
    for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
      const own = { ...client(), minVersion: version, maxVersion: version };
      await expect(post(server, "ProcessService/ListProcesses", own)).rejects.toThrow();
    }
    await vi.waitFor(() => expect(told()).toBeGreaterThanOrEqual(before + 3), { timeout: 10_000 });
    expect(await checkHealth(server, credentials(pair("client-reader")))).toEqual(serving);
  });

  it("tells operators whose certificates are in use, and until when", async () => {
    const { node } = (await foreign.admin.call("DiagnosticsService", "GetNode", {})) as {
      readonly node: { readonly certificates: unknown };
    };
    const told = (name: string, file: string) => {
      const { subject, validToDate } = new X509Certificate(files.text(file));
      return { name, subject, notAfter: validToDate.toISOString().replace(".000Z", "Z") };
    };
    const [certificate, authority] = [told("server", "server.crt"), told("client_ca", "ca.crt")];
    expect(node.certificates).toEqual([certificate, authority]);
    const environment = {
      TROUPE_SERVER: `https://${server.grpc}`,
      TROUPE_TLS_CA: files.path("ca.crt"),
      TROUPE_TLS_CERT: files.path("client-admin.crt"),
      TROUPE_TLS_KEY: files.path("client-admin.key"),
    };
    const { stdout } = await runInProcess(["status"], { environment });
    const line = ({ subject, notAfter }: typeof certificate) =>
      `${subject}, until ${new Date(notAfter).toISOString()} (`;
    expect(stdout).toContain(`server certificate  ${line(certificate)}364d 23h left)\n`);
    expect(stdout).toContain(`client authority    ${line(authority)}`);
  });

  it("leaves the REST face as it was", async () => {
    expect((await server.call("GET", "/processes", undefined, operatorKey)).status).toBe(200);
    expect((await server.call("GET", "/processes")).status).toBe(401);
  });
});

describe("TLS", () => {
  let server: Server;
  let own: CertificateFiles;
  beforeAll(async () => {
    own = filesIn(join(newFolder(), "in use"));
    await mkdir(own.folder);
    for (const name of ["server.crt", "server.key"]) own.write(name, files.text(name));
    server = await startServer({
      settings: {
        SERVICE_API_KEYS: keys,
        SERVICE_GRPC_TLS_CERT_FILE: own.path("server.crt"),
        SERVICE_GRPC_TLS_KEY_FILE: own.path("server.key"),
      },
    });
  });
  afterAll(() => server?.kill());

  it.each<[string, number, string, string | undefined]>([
    ["ProcessService/ListProcesses", 200, "Bearer agent-key", undefined],
    ["ModuleService/ReloadModules", 403, "Bearer agent-key", "permission_denied"],
    ["ModuleService/ReloadModules", 200, "Bearer operator-key", undefined],
    ["ProcessService/ListProcesses", 401, "Bearer wrong", "unauthenticated"],
    ["ProcessService/ListProcesses", 401, "", "unauthenticated"],
  ])("takes bearer keys over HTTP/1.1: %s answers %i to %j", async (path, status, authorization, code) => {
    const answered = await post(server, path, { headers: authorization === "" ? {} : { authorization } });
    expect([answered.status, answered.body.code]).toEqual([status, code]);
  });

  it("takes bearer keys over gRPC, and shows its rpcs by reflection", async () => {
    const client = await openForeignClient(server.grpc, credentials());
    try {
      expect(client.services).toContain("troupe.v1.ProcessService");
      const list = (headers: Record<string, string>) => client.call("ProcessService", "ListProcesses", {}, headers);
      expect(await list({ authorization: "Bearer agent-key" })).toMatchObject({ items: [] });
      await expect(list({})).rejects.toMatchObject({ code: grpc.status.UNAUTHENTICATED });
    } finally {
      client.close();
    }
  });

  it("makes nothing of a client certificate: its key says who calls", async () => {
    const answered = await post(server, "ProcessService/ListProcesses", pair("client-admin"));
    expect(answered.status).toBe(401);
  });

  it.each([
    ["h2", "TLSv1.2"] as const,
    ["h2", "TLSv1.3"] as const,
    ["http/1.1", "TLSv1.2"] as const,
    ["http/1.1", "TLSv1.3"] as const,
  ])("speaks %s by %s", async (protocol, version) => {
    const options = { ALPNProtocols: [protocol], minVersion: version, maxVersion: version };
    const socket = await handshake(server, options);
    if (socket instanceof Error) throw socket;
    expect([socket.alpnProtocol, socket.getProtocol(), socket.authorized]).toEqual([protocol, version, true]);
    socket.destroy();
  });

  it.each(["TLSv1", "TLSv1.1"] as const)("refuses %s", async (version) => {
    // Without the cipher word the client would not even ask.
    const options = { minVersion: version, maxVersion: version, ciphers: "DEFAULT@SECLEVEL=0" };
    expect(await handshake(server, options)).toMatchObject({ code: "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION" });
  });

  it("refuses a client that speaks neither of its protocols", async () => {
    const refused = await handshake(server, { ALPNProtocols: ["spdy/3"] });
    expect(refused).toMatchObject({ code: "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL" });
  });

  it("is known by the names in its certificate, and by no other", async () => {
    for (const servername of ["troupe.example.com", "localhost"]) {
      const socket = await handshake(server, { servername });
      if (socket instanceof Error) throw socket;
      socket.destroy();
    }
    const refused = await handshake(server, { servername: "other.example.com" });
    expect(refused).toMatchObject({ code: "ERR_TLS_CERT_ALTNAME_INVALID" });
  });

  it.each([
    [
      "HTTP/1.1",
      "POST /troupe.v1.ProcessService/ListProcesses HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}",
    ],
    ["HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"],
    ["a text of its own", "hello\r\n\r\n".repeat(500)],
  ])("closes a connection in plain text (%s) with an alert at most, and goes on", async (_, text) => {
    const [type = alert, ...rest] = await say(server, text);
    expect([type, rest.length <= 6]).toEqual([alert, true]);
    expect(await checkHealth(server, credentials())).toEqual(serving);
  });

  it("is no server to a gRPC client in plain text", async () => {
    await expect(checkHealth(server, grpc.credentials.createInsecure())).rejects.toMatchObject({
      code: grpc.status.UNAVAILABLE,
    });
  });

  it("takes renewed files while it runs: the next connection gets them, the one that is open stays", async () => {
    const serialOf = async (): Promise<string> => {
      const socket = await handshake(server, {});
      if (socket instanceof Error) throw socket;
      const { serialNumber } = socket.getPeerCertificate();
      socket.destroy();
      return serialNumber;
    };
    const client = await openForeignClient(server.grpc, credentials());
    const list = () => client.call("ProcessService", "ListProcesses", {}, { authorization: "Bearer agent-key" });
    const endOf = async (): Promise<string | undefined> =>
      /^troupe_certificate_expires_timestamp_seconds\{certificate="server"\} (\d+)$/m.exec(
        (await server.get("/metrics")).text,
      )?.[1];
    const secondsOf = (): string => String(new X509Certificate(files.text("server.crt")).validToDate.getTime() / 1_000);
    const before = await serialOf();
    expect(await endOf()).toBe(secondsOf());
    await makeCertificates({ folder: files.folder, force: true, days: 90 });
    for (const name of ["server.crt", "server.key"]) own.write(name, files.text(name));
    await vi.waitFor(async () => expect(await serialOf()).not.toBe(before), { timeout: 6 * tlsLookMs, interval: 200 });
    expect(await list()).toMatchObject({ items: [] });
    expect(await endOf()).toBe(secondsOf());
    client.close();
    await vi.waitFor(() => expect(server.lines.join("\n")).toContain("tls-files-renewed"));
  });
});

it("settings of TLS that cannot work end the start with 78, all of them named, before anything is opened", async () => {
  const { code, said } = await startRefused({
    settings: {
      SERVICE_HTTP_PORT: "http",
      SERVICE_GRPC_TLS_CERT_FILE: files.path("client-late.crt"),
      SERVICE_GRPC_TLS_KEY_FILE: files.path("server.key"),
      SERVICE_GRPC_TLS_CLIENT_CA_FILE: files.path("no-such-file"),
      SERVICE_API_KEYS: keys,
    },
  });
  expect(code).toBe(78);
  expect(said).toMatch(/SERVICE_HTTP_PORT: must be a whole number/);
  expect(said).toMatch(/SERVICE_GRPC_TLS_CERT_FILE: holds a certificate that expired at 20/);
  expect(said).toMatch(/SERVICE_GRPC_TLS_KEY_FILE: does not fit the certificate/);
  expect(said).toMatch(/SERVICE_GRPC_TLS_CLIENT_CA_FILE: cannot read ".*" \(ENOENT\)/);
  expect(said).not.toContain("listening");
});
