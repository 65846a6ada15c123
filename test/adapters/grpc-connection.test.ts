/** How a gRPC service is reached: whose addresses are dialled, TLS with a self-made authority, targets that go and come back, closing. */
import { connect as connectTo, createServer, type Server, type Socket } from "node:net";
import grpc from "@grpc/grpc-js";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Failure } from "../../src/errors/failure.ts";
import type { Adapter } from "../../src/ports/adapter.ts";
import { documentOf, failureOf, hydrated, loopbackJudge, openTestGrpc } from "./grpc-bench.ts";
import { type Certificate, certificate } from "./grpc-certificates.ts";
import { type Handlers, openServer, type ServerOptions, shopSet, type TestServer } from "./grpc-server.ts";

const chosen = { services: ["acme.shop.v1.Shop"] };
const handlers: Handlers = {
  GetItem: (_request, { call }) => ({ itemId: call.getPeer(), title: call.getHost() }),
  EchoTree: (request) => request,
  Sleep: () => new Promise((resolve) => setTimeout(() => resolve({}), 400)),
};

let addresses: string[] | Failure = ["127.0.0.1"];
let asked: string[] = [];
/** Answers with what a test says, so that names and moves can be played without DNS. */
const judge = {
  async approve(url: string) {
    asked.push(url);
    if (addresses instanceof Failure) throw addresses;
    return addresses;
  },
};

let adapter: Adapter;
const open: { close(): void }[] = [];
beforeAll(async () => {
  adapter = await openTestGrpc(judge);
});
afterEach(() => {
  for (const each of open.splice(0)) each.close();
  addresses = ["127.0.0.1"];
  asked = [];
});
afterAll(() => adapter.close());

async function serve(options: ServerOptions = {}): Promise<TestServer> {
  const server = await openServer({ handlers, ...options });
  open.push(server);
  return server;
}

async function shopAt(target: string, settings: Parameters<typeof hydrated>[2] = {}) {
  const shop = await hydrated(adapter, documentOf(target, shopSet, chosen), settings);
  open.push({ close: () => shop.service.close?.() });
  return shop;
}

describe("addresses", () => {
  it("the approved address is dialled, and the target hears its own name", async () => {
    const { port } = await serve();
    const shop = await shopAt(`grpc://shop.example:${port}`);
    expect((await shop.call("Shop_GetItem")).message.title).toBe(`shop.example:${port}`);
    expect(asked).toEqual([`http://shop.example:${port}`]);
  });

  it("of several approved addresses the next is dialled when one does not answer", async () => {
    const { port } = await serve();
    addresses = ["127.0.0.2", "::1", "127.0.0.1"];
    const shop = await shopAt(`grpc://shop.example:${port}`);
    expect((await shop.call("Shop_GetItem")).message.itemId).toMatch(/^127\.0\.0\.1:/);
  });

  it("a refused address fails the call with the judge's reason", async () => {
    const strict = await openTestGrpc(loopbackJudge());
    const shop = await hydrated(strict, documentOf("grpc://10.0.0.1:50051", shopSet, chosen));
    const failure = await failureOf(shop.call("Shop_GetItem"));
    expect(failure).toMatchObject({
      kind: "upstream_failed",
      message: expect.stringMatching(/it is a private address/),
    });
    shop.service.close?.();
    await strict.close();
  });

  it("a name without addresses fails the call", async () => {
    addresses = [];
    const shop = await shopAt("grpc://nowhere.example:1");
    const failure = await failureOf(shop.call("Shop_GetItem"));
    expect(failure).toMatchObject({ kind: "upstream_failed", message: expect.stringMatching(/has no address/) });
  });

  it("a refusal does not last: the judge is asked again", async () => {
    const { port } = await serve();
    addresses = new Failure("upstream_failed", "The name cannot be found");
    const shop = await shopAt(`grpc://shop.example:${port}`);
    expect((await failureOf(shop.call("Shop_GetItem"))).message).toMatch(/The name cannot be found/);
    addresses = ["127.0.0.1"];
    await expect
      .poll(
        () =>
          shop.call("Shop_GetItem").then(
            () => "works",
            () => "fails",
          ),
        { timeout: 15_000 },
      )
      .toBe("works");
    expect(asked.length).toBeGreaterThan(1);
  });

  it("a target that moved is dialled where the judge says it is now", async () => {
    const first = await serve();
    const shop = await shopAt(`grpc://shop.example:${first.port}`);
    await shop.call("Shop_GetItem");
    first.close();
    addresses = ["127.0.0.2"];
    await serve({ host: "127.0.0.2", port: first.port, handlers: { GetItem: () => ({ title: "moved" }) } });
    const title = () =>
      shop.call("Shop_GetItem").then(
        ({ message }) => message.title,
        () => "fails",
      );
    await expect.poll(title, { timeout: 15_000 }).toBe("moved");
  });

  it("a proxy of the environment is not used", async () => {
    const proxy = await listen((socket) => socket.destroy());
    const before = process.env.grpc_proxy;
    process.env.grpc_proxy = `http://127.0.0.1:${proxy.port}`;
    try {
      const { port } = await serve();
      const shop = await shopAt(`grpc://shop.example:${port}`);
      await shop.call("Shop_GetItem");
      expect(proxy.connections()).toBe(0);
    } finally {
      if (before === undefined) delete process.env.grpc_proxy;
      else process.env.grpc_proxy = before;
    }
  });
});

describe("TLS", () => {
  let authority: Certificate;
  let server: Certificate;
  let client: Certificate;
  let stranger: Certificate;
  beforeAll(() => {
    authority = certificate("Test authority");
    server = certificate("shop.example", authority);
    client = certificate("agent", authority);
    stranger = certificate("Another authority");
  });

  const credentials = (demandsClient = false) =>
    grpc.ServerCredentials.createSsl(
      Buffer.from(authority.cert),
      [{ private_key: Buffer.from(server.key), cert_chain: Buffer.from(server.cert) }],
      demandsClient,
    );

  it("a target with a certificate of the configured authority is called", async () => {
    const { port } = await serve({ credentials: credentials() });
    const shop = await shopAt(`grpcs://shop.example:${port}`, { secrets: { caCertificate: authority.cert } });
    expect((await shop.call("Shop_GetItem")).message.title).toBe(`shop.example:${port}`);
    expect(asked).toEqual([`https://shop.example:${port}`]);
  });

  it("a target that demands a certificate gets it", async () => {
    const { port } = await serve({ credentials: credentials(true) });
    const secrets = { caCertificate: authority.cert, clientCertificate: client.cert, clientKey: client.key };
    const shop = await shopAt(`grpcs://shop.example:${port}`, { secrets });
    expect((await shop.call("Shop_GetItem")).message.title).toBe(`shop.example:${port}`);
  });

  it.each<[string, string, () => Record<string, string>, RegExp]>([
    ["another name", "other.example", () => ({ caCertificate: authority.cert }), /other\.example|altnames/],
    ["an unknown authority", "shop.example", () => ({}), /certificate/],
    ["another authority", "shop.example", () => ({ caCertificate: stranger.cert }), /certificate/],
  ])("a target with a certificate for %s is not called", async (_what, host, secrets, why) => {
    const { port } = await serve({ credentials: credentials() });
    const shop = await shopAt(`grpcs://${host}:${port}`, { secrets: secrets() });
    const failure = await failureOf(shop.call("Shop_GetItem"));
    expect(failure).toMatchObject({ kind: "upstream_failed", message: expect.stringMatching(why) });
  });

  it("a target that demands a certificate refuses who has none", async () => {
    const { port } = await serve({ credentials: credentials(true) });
    const shop = await shopAt(`grpcs://shop.example:${port}`, { secrets: { caCertificate: authority.cert } });
    expect((await failureOf(shop.call("Shop_GetItem"))).kind).toBe("upstream_failed");
  });

  it.each<[string, string, () => Record<string, string>, RegExp]>([
    [
      "a certificate for a plain target",
      "grpc",
      () => ({ caCertificate: authority.cert }),
      /"caCertificate" needs a "grpcs"/,
    ],
    ["a certificate without its key", "grpcs", () => ({ clientCertificate: client.cert }), /set together/],
    ["a key without its certificate", "grpcs", () => ({ clientKey: client.key }), /set together/],
    ["text that is no PEM", "grpcs", () => ({ caCertificate: "-----BEGIN nonsense" }), /"caCertificate" must be PEM/],
    [
      "a key of another certificate",
      "grpcs",
      () => ({ clientCertificate: client.cert, clientKey: stranger.key }),
      /belong together/,
    ],
  ])("%s is refused when the service is made ready, without the secret", async (_what, scheme, secrets, why) => {
    const failure = await failureOf(shopAt(`${scheme}://shop.example:1`, { secrets: secrets() }));
    expect(failure).toMatchObject({ kind: "invalid_request", message: expect.stringMatching(why) });
    expect(failure.message).not.toMatch(/BEGIN|nonsense/);
  });

  it("plain text to a target with TLS fails, and so does TLS to one without", async () => {
    const secure = await serve({ credentials: credentials() });
    const plain = await serve();
    const calls = [shopAt(`grpc://shop.example:${secure.port}`), shopAt(`grpcs://shop.example:${plain.port}`)];
    for (const shop of await Promise.all(calls)) {
      const failure = await failureOf(shop.call("Shop_GetItem", {}, { timeoutMs: 3_000 }));
      expect(["upstream_failed", "timeout"]).toContain(failure.kind);
    }
  });
});

describe("life", () => {
  it("a target that restarts is called again", async () => {
    const first = await serve();
    const shop = await shopAt(first.target);
    await shop.call("Shop_GetItem");
    first.close();
    await expect.poll(() => failureOf(shop.call("Shop_GetItem")).then(({ kind }) => kind)).toBe("upstream_failed");
    await serve({ port: first.port });
    await expect
      .poll(
        () =>
          shop.call("Shop_GetItem").then(
            () => "works",
            () => "fails",
          ),
        { timeout: 15_000 },
      )
      .toBe("works");
  });

  it("a service made ready while its target is down works once that is up", async () => {
    const first = await serve();
    first.close();
    const shop = await shopAt(first.target);
    expect((await failureOf(shop.call("Shop_GetItem"))).kind).toBe("upstream_failed");
    await serve({ port: first.port });
    await expect
      .poll(
        () =>
          shop.call("Shop_GetItem").then(
            () => "works",
            () => "fails",
          ),
        { timeout: 15_000 },
      )
      .toBe("works");
  });

  it("closing lets a call that has begun end, and refuses new ones", async () => {
    const { target } = await serve();
    const shop = await shopAt(target);
    await shop.call("Shop_GetItem");
    // One that waits for the target, and one whose parameters are not even checked.
    const slow = shop.call("Shop_Sleep");
    await new Promise((resolve) => setTimeout(resolve, 150));
    const fresh = shop.call("Shop_EchoTree", {});
    shop.service.close?.();
    expect((await failureOf(shop.call("Shop_GetItem"))).kind).toBe("unavailable");
    expect((await slow).message).toEqual({});
    expect((await fresh).message).toEqual({ name: "", children: [] });
  });

  it("closing ends the connection", async () => {
    const { target } = await serve();
    const relay = await listen((socket) => {
      const { port } = new URL(target.replace("grpc", "http"));
      const out = connectTo(Number(port), "127.0.0.1");
      socket.pipe(out).pipe(socket);
      socket.on("error", () => out.destroy());
      out.on("error", () => socket.destroy());
    });
    const shop = await shopAt(`grpc://127.0.0.1:${relay.port}`);
    await shop.call("Shop_GetItem");
    expect(relay.openNow()).toBe(1);
    shop.service.close?.();
    await expect.poll(relay.openNow).toBe(0);
  });

  it.each<[string, (socket: Socket) => void]>([
    ["closes every connection", (socket) => socket.destroy()],
    ["speaks HTTP/1", (socket) => socket.end("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")],
    ["sends noise", (socket) => socket.write(Buffer.alloc(100_000, 0xff))],
    ["says nothing", () => {}],
  ])("a target that %s fails the call", async (_what, behave) => {
    const { port } = await listen(behave);
    const shop = await shopAt(`grpc://127.0.0.1:${port}`);
    const failure = await failureOf(shop.call("Shop_GetItem", {}, { timeoutMs: 1_500 }));
    expect(["upstream_failed", "timeout"]).toContain(failure.kind);
  });
});

describe("a service without a target", () => {
  const document = JSON.stringify({ descriptorSet: shopSet.toString("base64"), ...chosen });

  it("is refused when it is made ready, naming the setting", async () => {
    const failure = await failureOf(hydrated(adapter, document));
    expect(failure).toMatchObject({ kind: "invalid_request", message: expect.stringMatching(/set config "target"/) });
  });

  it("goes where its configuration says", async () => {
    const { target } = await serve();
    const shop = await hydrated(adapter, document, { config: { target } });
    open.push({ close: () => shop.service.close?.() });
    expect((await shop.call("Shop_GetItem")).message.itemId).toMatch(/^127/);
  });
});

async function listen(onConnection: (socket: Socket) => void) {
  let connections = 0;
  let openNow = 0;
  const server: Server = createServer((socket) => {
    connections += 1;
    openNow += 1;
    socket.on("error", () => {});
    socket.on("close", () => {
      openNow -= 1;
    });
    onConnection(socket);
  });
  const port = await new Promise<number>((resolve) =>
    server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port)),
  );
  open.push({ close: () => server.close() });
  return { port, connections: () => connections, openNow: () => openNow };
}
