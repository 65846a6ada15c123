/** Certificate files that change while a server runs: what is noticed and told by a clock held still, and what it means to connections. */
import { once } from "node:events";
import { mkdirSync, renameSync, rmSync, statSync, symlinkSync, utimesSync } from "node:fs";
import http2 from "node:http2";
import net from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { makeCertificates } from "../../src/certs/make-certificates.ts";
import { judgeTlsFiles, readTlsFilesNow, type TlsFiles, type TlsPaths } from "../../src/certs/tls-files.ts";
import { watchTlsFiles } from "../../src/certs/tls-watch.ts";
import { listenForRpcs, type RpcServer } from "../../src/control-plane/rpc-server.ts";
import { headerBytesMax, tlsLookMs } from "../../src/limits.ts";
import { realClock, rememberingLog } from "../control-plane/two-faces.ts";
import { ManualClock } from "../runtime/manual-clock.ts";
import { type CertificateFiles, day, filesIn, newFolder } from "./certificate-files.ts";

/** Two authorities, each with a server and a client. */
let one: CertificateFiles;
let other: CertificateFiles;
beforeAll(async () => {
  [one, other] = [filesIn(newFolder()), filesIn(newFolder())];
  await Promise.all([one, other].map(({ folder }) => makeCertificates({ folder, clients: ["alice"], days: 100 })));
});

function pathsIn({ path }: CertificateFiles): TlsPaths {
  return { cert: path("server.crt"), key: path("server.key"), clientCa: path("ca.crt") };
}

function clientOf({ text }: CertificateFiles): { readonly cert: string; readonly key: string } {
  return { cert: text("client-alice.crt"), key: text("client-alice.key") };
}

function filesOf(files: CertificateFiles): TlsFiles {
  const verdict = judgeTlsFiles(readTlsFilesNow(pathsIn(files)), Date.now());
  return "files" in verdict ? verdict.files : expect.unreachable();
}

function turnIntoFolder(path: string): void {
  rmSync(path);
  mkdirSync(path);
}

describe("renewed files", () => {
  let stop = (): void => undefined;
  afterEach(() => stop());

  function watched() {
    const own = filesIn(newFolder());
    copy(one, own);
    const clock = new ManualClock(Date.now());
    const { log, lines } = rememberingLog();
    const used: TlsFiles[] = [];
    stop = watchTlsFiles({ paths: pathsIn(own), inUse: filesOf(one), clock, log, use: (files) => used.push(files) });
    const look = async (times = 1): Promise<void> => {
      for (let time = 0; time < times; time += 1) {
        await clock.advance(tlsLookMs);
        await vi.waitFor(() => expect(clock.timers).toBe(1));
      }
    };
    return { own, clock, used, look, told: () => lines.map(({ level, event }) => `${level} ${event}`), lines };
  }

  function copy(from: CertificateFiles, to: CertificateFiles): void {
    for (const name of ["server.crt", "server.key", "ca.crt"]) to.write(name, from.text(name));
  }

  it("are taken at the next look, once", async () => {
    const { own, used, look, told } = watched();
    await look(2);
    expect(used).toEqual([]);
    copy(other, own);
    await look(3);
    expect(used).toEqual([filesOf(other)]);
    expect(told()).toEqual(["info tls-files-renewed"]);
  });

  it("are found although their dates and sizes are those of the old ones", async () => {
    const { own, used, look } = watched();
    const before = statSync(own.path("ca.crt"));
    own.write("ca.crt", `${other.text("ca.crt").trimEnd()}\n`);
    utimesSync(own.path("ca.crt"), before.atime, before.mtime);
    await look();
    expect(used).toEqual([{ ...filesOf(one), clientCa: other.text("ca.crt") }]);
  });

  it("are found behind links that are moved, as Kubernetes does it", async () => {
    const root = newFolder();
    const at = filesIn(root);
    for (const [name, from] of [["first", one] as const, ["second", other] as const]) {
      mkdirSync(at.path(name));
      copy(from, filesIn(at.path(name)));
    }
    symlinkSync("first", at.path("data"));
    const clock = new ManualClock(Date.now());
    const used: TlsFiles[] = [];
    const paths = pathsIn(filesIn(at.path("data")));
    stop = watchTlsFiles({
      paths,
      inUse: filesOf(one),
      clock,
      log: rememberingLog().log,
      use: (files) => used.push(files),
    });
    symlinkSync("second", at.path("data.new"));
    renameSync(at.path("data.new"), at.path("data"));
    await clock.advance(tlsLookMs);
    await vi.waitFor(() => expect(used).toEqual([filesOf(other)]));
  });

  it("that come one after the other are taken when they fit together, and nothing is told of the moment between", async () => {
    const { own, used, look, told } = watched();
    own.write("server.crt", other.text("server.crt"));
    await look();
    own.write("server.key", other.text("server.key"));
    await look();
    expect(used).toHaveLength(1);
    expect(told()).toEqual(["info tls-files-renewed"]);
  });

  it.each<[string, (own: CertificateFiles) => void, string]>([
    ["a certificate without its key", (own) => own.write("server.crt", other.text("server.crt")), "does not fit"],
    ["half a certificate", (own) => own.write("server.crt", one.text("server.crt").slice(0, 500)), "no certificate"],
    ["an empty file", (own) => own.write("server.key", ""), "no private key"],
    ["no file", (own) => rmSync(own.path("ca.crt")), "ENOENT"],
    ["a folder", (own) => turnIntoFolder(own.path("ca.crt")), "is not a file"],
  ])("that are %s change nothing, and are told of once", async (_, damage, why) => {
    const { own, used, look, lines } = watched();
    damage(own);
    await look(5);
    expect(used).toEqual([]);
    expect(lines).toEqual([
      { level: "warn", event: "tls-files-unusable", message: expect.stringContaining(why), fields: {} },
    ]);
    expect(lines[0]?.message).toMatch(/: SERVICE_GRPC_TLS_(CERT|KEY|CLIENT_CA)_FILE /);
  });

  it("that are repaired are as if nothing had been, and told of when they break again", async () => {
    const { own, used, look, told } = watched();
    own.write("server.key", "");
    await look(2);
    own.write("server.key", one.text("server.key"));
    await look(2);
    expect(used).toEqual([]);
    own.write("server.key", "");
    await look(2);
    expect(told()).toEqual(["warn tls-files-unusable", "warn tls-files-unusable"]);
  });

  it("are asked for in the last tenth of a certificate's time, once a day, until they come", async () => {
    const { own, clock, look, told } = watched();
    await clock.advance(89 * day);
    await vi.waitFor(() => expect(clock.timers).toBe(1));
    await look();
    expect(told()).toEqual([]);
    for (let days = 0; days < 3; days += 1) {
      await clock.advance(day - tlsLookMs);
      await vi.waitFor(() => expect(clock.timers).toBe(1));
      await look(3);
    }
    expect(told()).toEqual(Array.from({ length: 3 }, () => "warn tls-certificate-expires"));
    own.write("ca.key", one.text("ca.key"));
    await makeCertificates({ folder: own.folder, force: true, nowMs: clock.now() });
    await look(2);
    expect(told().slice(3)).toEqual(["info tls-files-renewed"]);
  });

  it("are asked for when an authority of clients ends, with its name and its file", async () => {
    const { own, clock, look, lines } = watched();
    const aging = filesIn(newFolder());
    await makeCertificates({ folder: aging.folder, nowMs: clock.now() - 3_640 * day });
    own.write("ca.crt", aging.text("ca.crt"));
    await look(3);
    expect(lines.map(({ event, message }) => ({ event, message }))).toEqual([
      { event: "tls-files-renewed", message: expect.stringContaining("SERVICE_GRPC_TLS_CLIENT_CA_FILE until 20") },
      {
        event: "tls-certificate-expires",
        message: expect.stringMatching(
          /^"CN=Troupe development CA \w+" of SERVICE_GRPC_TLS_CLIENT_CA_FILE expires at 20.*ca\.crt"$/,
        ),
      },
    ]);
  });

  it("are not looked for any more afterwards", async () => {
    const { clock } = watched();
    stop();
    expect(clock.timers).toBe(0);
  });
});

describe("a server whose files are renewed", () => {
  let server: RpcServer;
  let renew: (files: TlsFiles) => void;
  const refused: string[] = [];
  afterEach(() => server.close(0));

  async function open(): Promise<void> {
    refused.length = 0;
    server = await listenForRpcs({
      host: "127.0.0.1",
      port: 0,
      clock: realClock,
      stream: () => false,
      handler: (_, response) => void response.end("served"),
      tls: {
        ...filesOf(one),
        onRenewed: (use) => {
          renew = use;
          return () => undefined;
        },
        onRefused: (reason) => refused.push(reason),
      },
    });
  }

  function openSession(files: CertificateFiles, ca = files): http2.ClientHttp2Session {
    return http2.connect(`https://127.0.0.1:${server.address.port}`, {
      ca: ca.text("ca.crt"),
      ...clientOf(files),
    });
  }

  /** `served`, or why not. */
  async function ask(session: http2.ClientHttp2Session): Promise<string> {
    const closed = new Promise<string>((resolve) => {
      session.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      session.once("close", () => resolve("closed"));
    });
    const stream = session.request({ ":path": "/" });
    stream.setEncoding("utf8");
    stream.on("error", () => undefined);
    return Promise.race([closed, once(stream, "data").then(([text]) => String(text))]).catch(() => closed);
  }

  it("keeps the connections there are when the certificate alone is new, and shows that to the next", async () => {
    await open();
    const before = openSession(one);
    expect(await ask(before)).toBe("served");
    renew({ ...filesOf(other), clientCa: one.text("ca.crt") });
    expect(await ask(before)).toBe("served");
    const after = openSession(one, other);
    expect(await ask(after)).toBe("served");
    expect((after.socket as TLSSocket).getPeerCertificate().serialNumber).not.toBe(
      (before.socket as TLSSocket).getPeerCertificate().serialNumber,
    );
    before.destroy();
    after.destroy();
  });

  it("asks who came in by another authority to come again, and does not let them in", async () => {
    await open();
    const before = openSession(one);
    expect(await ask(before)).toBe("served");
    const closed = once(before, "close");
    renew({ ...filesOf(one), clientCa: other.text("ca.crt") });
    await closed;
    expect(await ask(openSession(one))).not.toBe("served");
    expect(refused).toEqual(["SELF_SIGNED_CERT_IN_CHAIN"]);
    const newcomer = openSession(other, one);
    expect(await ask(newcomer)).toBe("served");
    newcomer.destroy();
  });

  it.each(["TLSv1.2", "TLSv1.3"] as const)(
    "takes no session of %s from before as proof of a certificate",
    async (version) => {
      await open();
      const options = {
        host: "127.0.0.1",
        port: server.address.port,
        ca: one.text("ca.crt"),
        cert: one.text("client-alice.crt"),
        key: one.text("client-alice.key"),
        minVersion: version,
        maxVersion: version,
      };
      const get = async (
        session?: Buffer,
      ): Promise<{ text: string; session: Buffer | undefined; isReused: boolean }> => {
        const socket = connect({ ...options, ...(session === undefined ? {} : { session }) });
        let kept: Buffer | undefined;
        socket.on("session", (given) => {
          kept = given;
        });
        let text = "";
        socket.on("data", (chunk) => {
          text += String(chunk);
        });
        let isReused = false;
        socket.on("secureConnect", () => {
          isReused = socket.isSessionReused();
        });
        socket.on("error", () => undefined);
        socket.write("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        await new Promise((resolve) => socket.once("close", resolve));
        return { text, session: kept, isReused };
      };
      const first = await get();
      expect(first.text).toContain("served");
      const again = await get(first.session);
      expect([again.text.includes("served"), again.isReused]).toEqual([true, true]);
      renew({ ...filesOf(one), clientCa: other.text("ca.crt") });
      expect((await get(again.session ?? first.session)).text).not.toContain("served");
    },
  );

  it("closes at once what is idle: HTTP/1.1, HTTP/2, and who has not said a word", async () => {
    await open();
    const options = { host: "127.0.0.1", port: server.address.port, ca: one.text("ca.crt"), ...clientOf(one) };
    const silent = net.connect(server.address.port, "127.0.0.1");
    const [h1, h2] = [connect(options), openSession(one)];
    const answered = once(h1, "data");
    h1.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await answered;
    expect(await ask(h2)).toBe("served");
    await server.close(60_000);
    await vi.waitFor(() => expect([silent.destroyed, h1.destroyed, h2.destroyed]).toEqual([true, true, true]));
  });

  it("takes headers over HTTP/1.1 up to the same bound as without TLS", async () => {
    await open();
    const statusFor = async (headerBytes: number): Promise<string> => {
      const socket = connect({
        host: "127.0.0.1",
        port: server.address.port,
        ca: one.text("ca.crt"),
        ...clientOf(one),
      });
      socket.on("error", () => undefined);
      socket.write(`GET / HTTP/1.1\r\nhost: localhost\r\nx-large: ${"a".repeat(headerBytes)}\r\n\r\n`);
      const [chunk] = (await once(socket, "data")) as [Buffer];
      socket.destroy();
      return chunk.toString("latin1").slice("HTTP/1.1 ".length).slice(0, 3);
    };
    expect(await statusFor(headerBytesMax - 1_024)).toBe("200");
    expect(await statusFor(headerBytesMax + 1_024)).toBe("431");
  });
});
