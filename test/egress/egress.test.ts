/** The outbound client against real servers: where it connects, what it sends on which hop, and what ends an exchange. */
import { once } from "node:events";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { Failure } from "../../src/errors/failure.ts";
import { client, failureOf, get, serve, serveRaw, textOf } from "./fixtures.ts";

describe("an exchange", () => {
  test("brings status, headers, body and final URL", async () => {
    const origin = await serve((request, response) => {
      response.writeHead(201, { "content-type": "text/plain", "set-cookie": ["a=1", "b=2"], "x-many": ["1", "2"] });
      response.end(`${request.method} ${request.url}`);
    });
    const answer = await client().fetch(get(`${origin.url}/a/b?c=d#e`));
    expect(answer.status).toBe(201);
    expect(textOf(answer)).toBe("GET /a/b?c=d");
    expect(answer.url).toBe(`${origin.url}/a/b?c=d`);
    expect(answer.headers).toMatchObject({ "content-type": "text/plain", "set-cookie": "a=1\nb=2", "x-many": "1, 2" });
  });

  test("sends method, body and the caller's headers, and keeps the connection's own fields to itself", async () => {
    const origin = await serve(async (request, response) => {
      for await (const chunk of request) response.write(chunk);
      response.end();
    });
    const headers = {
      Authorization: "Bearer t",
      "X-Key": "k",
      Host: "evil.test",
      "Content-Length": "1",
      "Transfer-Encoding": "chunked",
      Connection: "close",
      "Proxy-Authorization": "p",
    };
    const answer = await client().fetch(get(`${origin.url}/`, { method: "POST", headers, body: "é=1" }));
    expect(textOf(answer)).toBe("é=1");
    const [received] = origin.requests;
    expect(received?.headers).toMatchObject({
      authorization: "Bearer t",
      "x-key": "k",
      host: `127.0.0.1:${origin.port}`,
      "content-length": "4",
      "user-agent": "troupe",
    });
    expect(received?.headers).not.toHaveProperty("proxy-authorization");
    expect(received?.headers).not.toHaveProperty("transfer-encoding");
  });

  test("HEAD, 204 and 304 have no body whatever their headers say", async () => {
    const origin = await serve((request, response) => {
      response.writeHead(request.url === "/304" ? 304 : request.url === "/204" ? 204 : 200, {
        "content-encoding": "gzip",
        ...(request.method === "HEAD" ? { "content-length": "99999999" } : {}),
      });
      response.end();
    });
    const egress = client();
    for (const request of [
      get(`${origin.url}/`, { method: "HEAD" }),
      get(`${origin.url}/204`),
      get(`${origin.url}/304`),
    ]) {
      expect((await egress.fetch(request)).body).toHaveLength(0);
    }
  });

  test("ignores the proxies of the environment", async () => {
    const proxy = await serve((_request, response) => void response.end("proxy"));
    const origin = await serve((_request, response) => void response.end("origin"));
    const before = { ...process.env };
    Object.assign(process.env, {
      HTTP_PROXY: proxy.url,
      http_proxy: proxy.url,
      HTTPS_PROXY: proxy.url,
      ALL_PROXY: proxy.url,
      NODE_USE_ENV_PROXY: "1",
    });
    try {
      expect(textOf(await client().fetch(get(`${origin.url}/`)))).toBe("origin");
    } finally {
      process.env = before;
    }
    expect(proxy.requests).toHaveLength(0);
  });

  test("two hundred at once all succeed", async () => {
    const origin = await serve((request, response) => void setTimeout(() => response.end(request.url), 5));
    const egress = client();
    const answers = await Promise.all(Array.from({ length: 200 }, (_, at) => egress.fetch(get(`${origin.url}/${at}`))));
    expect(answers.map(textOf)).toEqual(Array.from({ length: 200 }, (_, at) => `/${at}`));
  });
});

describe("addresses", () => {
  test.each([
    "http://10.0.0.1/",
    "http://169.254.169.254/latest/",
    "http://[::ffff:10.0.0.1]/",
    "http://[fe80::1]/",
    "http://0.0.0.0:1/",
    "http://0xa9fea9fe/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "https://100.100.100.200/",
  ])("%s is refused without a connection", async (url) => {
    expect(await failureOf(client().fetch(get(`${url}?secret=canary`)), "upstream_failed")).toMatch(
      /^Cannot reach "[^"]+": it is an? .* address/,
    );
  });

  test.each(["127.1", "0x7f.1", "2130706433", "0177.0.0.1"])("the spelling %s of loopback reaches it", async (host) => {
    const origin = await serve((request, response) => void response.end(request.headers.host));
    expect(textOf(await client().fetch(get(`http://${host}:${origin.port}/`)))).toBe(`127.0.0.1:${origin.port}`);
  });

  test("loopback can be forbidden, and a single address listed", async () => {
    const origin = await serve((_request, response) => void response.end("in"));
    await failureOf(client({ allowedCidrs: ["none"] }).fetch(get(origin.url)), "upstream_failed");
    expect(textOf(await client({ allowedCidrs: ["none", "127.0.0.1"] }).fetch(get(origin.url)))).toBe("in");
    await failureOf(
      client({ allowedCidrs: ["127.0.0.0/8"], blockedCidrs: ["127.0.0.1"] }).fetch(get(origin.url)),
      "upstream_failed",
    );
    expect(origin.requests).toHaveLength(1);
  });

  test("a name is judged by every address it has", async () => {
    const origin = await serve((request, response) => void response.end(request.headers.host));
    const egress = client({
      names: {
        "good.test": ["127.0.0.1"],
        "127.0.0.1.evil.test": ["10.77.0.5"],
        "mixed.test": ["127.0.0.1", "10.77.0.5"],
        "none.test": [],
        "odd.test": ["not an address"],
      },
    });
    expect(textOf(await egress.fetch(get(`http://good.test:${origin.port}/`)))).toBe(`good.test:${origin.port}`);
    const seen = await failureOf(egress.fetch(get(`http://mixed.test:${origin.port}/`)), "upstream_failed");
    expect(seen).toBe(
      `Cannot reach "mixed.test:${origin.port}": its address "10.77.0.5" is a private address, which SERVICE_EGRESS_ALLOWED_CIDRS does not list`,
    );
    for (const host of ["127.0.0.1.evil.test", "none.test", "odd.test", "absent.test"])
      await failureOf(egress.fetch(get(`http://${host}:${origin.port}/`)), "upstream_failed");
    expect(origin.requests).toHaveLength(1);
  });

  test("a name that changes its answer is connected only where it was judged", async () => {
    const allowed = await serve((_request, response) => void response.end("judged"));
    let asked = 0;
    const lookup = async (): Promise<readonly string[]> => [asked++ % 2 === 0 ? "127.0.0.1" : "127.0.0.9"];
    const egress = client({ blockedCidrs: ["127.0.0.9"], lookup });
    const outcomes = await Promise.allSettled(
      Array.from({ length: 100 }, () => egress.fetch(get(`http://reb.test:${allowed.port}/`))),
    );
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(50);
    expect(asked).toBe(100);
  });

  test("the next address is tried when one refuses the connection, and nothing is sent twice", async () => {
    const origin = await serve((request, response) => void request.resume().on("end", () => response.end("second")));
    const egress = client({ names: { "two.test": ["::1", "127.0.0.1"] } });
    const answer = await egress.fetch(get(`http://two.test:${origin.port}/`, { method: "POST", body: "once" }));
    expect(textOf(answer)).toBe("second");
    expect(origin.requests).toHaveLength(1);
    expect(
      await failureOf(
        client({ names: { "two.test": ["::1", "127.0.0.1"] } }).fetch(get("http://two.test:1/")),
        "upstream_failed",
      ),
    ).toContain("refused the connection");
  });

  test("approve gives the judged addresses of a URL", async () => {
    const egress = client({ names: { "a.test": ["127.0.0.1", "::1", "127.0.0.1"], "b.test": ["10.0.0.1"] } });
    expect(await egress.approve("https://a.test:8443/x")).toEqual(["127.0.0.1", "::1"]);
    await failureOf(egress.approve("http://b.test/"), "upstream_failed");
  });
});

describe("URLs", () => {
  test.each([
    "ftp://127.0.0.1/",
    "file:///etc/passwd",
    "data:text/plain,x",
    "javascript:1",
    "http://user:canary@127.0.0.1/",
    "http://canary@127.0.0.1/",
    "/canary",
    "",
    "http://",
    "http://[::1",
  ])("%j is refused and not repeated", async (url) => {
    expect(await failureOf(client().fetch(get(url)), "upstream_failed")).not.toMatch(/canary|passwd/);
  });
});

describe("redirects", () => {
  const redirect =
    (status: number, location: string): Parameters<typeof serve>[0] =>
    (_request, response) =>
      void response.writeHead(status, { location }).end("moved");

  test.each([301, 302, 303, 307, 308])(
    "a %i is followed for GET, and its relative location resolved",
    async (status) => {
      const origin = await serve((request, response) => {
        if (request.url === "/a/from") return redirect(status, "../to?x=1")(request, response);
        return void response.end(request.url);
      });
      const answer = await client().fetch(get(`${origin.url}/a/from`));
      expect(textOf(answer)).toBe("/to?x=1");
      expect(answer.url).toBe(`${origin.url}/to?x=1`);
    },
  );

  test("a redirect is an answer for POST, at a bound of 0, and without a location", async () => {
    const origin = await serve(
      (request, response) =>
        void (request.url === "/bare" ? response.writeHead(302).end("moved") : redirect(302, "/b")(request, response)),
    );
    const egress = client();
    for (const request of [
      get(`${origin.url}/a`, { method: "POST", body: "x" }),
      get(`${origin.url}/a`, { redirectsMax: 0 }),
      get(`${origin.url}/bare`),
    ]) {
      const answer = await egress.fetch(request);
      expect([answer.status, textOf(answer)]).toEqual([302, "moved"]);
    }
    expect(origin.requests).toHaveLength(3);
  });

  test("a body goes to the first hop only", async () => {
    const bodies: string[] = [];
    const origin = await serve(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      bodies.push(body);
      response.writeHead(request.url === "/" ? 307 : 200, { location: "/next" }).end();
    });
    await client().fetch(get(`${origin.url}/`, { body: "canary" }));
    expect(bodies).toEqual(["canary", ""]);
  });

  test("as many are followed as allowed, and one more is refused", async () => {
    const origin = await serve((request, response) => {
      const left = Number(request.url?.slice(1));
      if (left === 0) return void response.end("end");
      return redirect(302, `/${left - 1}`)(request, response);
    });
    expect(textOf(await client().fetch(get(`${origin.url}/5`)))).toBe("end");
    expect(await failureOf(client().fetch(get(`${origin.url}/6`)), "upstream_failed")).toBe(
      `"127.0.0.1:${origin.port}" redirects more than 5 times`,
    );
    expect(origin.requests).toHaveLength(6 + 6);
  });

  test.each([
    "http://169.254.169.254/",
    "http://10.0.0.1/",
    "http://internal.test/",
    "file:///etc/passwd",
    "http://user:pass@127.0.0.1/",
    "http://[",
    "gopher://127.0.0.1/",
  ])("a hop to %s is refused", async (location) => {
    const origin = await serve(redirect(302, location));
    await failureOf(client({ names: { "internal.test": ["10.0.0.1"] } }).fetch(get(origin.url)), "upstream_failed");
  });

  const callerHeaders = {
    Authorization: "Bearer canary",
    Cookie: "c=canary",
    "X-Api-Key": "canary",
    "X-Anything": "canary",
    Accept: "application/json",
    "Accept-Language": "de",
    "User-Agent": "me",
  };

  test("within the origin the caller's headers go along", async () => {
    const origin = await serve(
      (request, response) => void (request.url === "/" ? redirect(302, "/next")(request, response) : response.end()),
    );
    await client().fetch(get(`${origin.url}/`, { headers: callerHeaders }));
    expect(origin.requests[1]?.headers).toMatchObject({
      authorization: "Bearer canary",
      cookie: "c=canary",
      "x-api-key": "canary",
    });
  });

  test.each(["another port", "another host", "another name"])(
    "across origins (%s) only harmless ones do, also after coming back",
    async (kind) => {
      const home = await serve(
        (request, response) =>
          void (request.url === "/" ? redirect(307, `${awayUrl}/away`)(request, response) : response.end("home")),
      );
      const away = await serve(
        (request, response) => redirect(307, `${home.url}/back`)(request, response),
        kind === "another host" ? "127.0.0.2" : "127.0.0.1",
      );
      const awayUrl = kind === "another name" ? `http://away.test:${away.port}` : away.url;
      const answer = await client({ names: { "away.test": ["127.0.0.1"] } }).fetch(
        get(`${home.url}/`, { headers: callerHeaders }),
      );
      expect(textOf(answer)).toBe("home");
      for (const request of [...away.requests, home.requests[1]]) {
        expect(JSON.stringify(request?.rawHeaders)).not.toContain("canary");
        expect(request?.headers).toMatchObject({
          accept: "application/json",
          "accept-language": "de",
          "user-agent": "me",
        });
      }
      expect(away.requests).toHaveLength(1);
    },
  );
});

describe("credentials by hop", () => {
  test("are asked for each hop with its address, sent there only, and can come back", async () => {
    const home = await serve(
      (request, response) =>
        void (request.url === "/"
          ? response.writeHead(302, { location: `${away.url}/x` }).end()
          : response.end("home")),
    );
    const away = await serve(
      (_request, response) => void response.writeHead(302, { location: `${home.url}/back` }).end(),
    );
    const hops: string[] = [];
    const answer = await client().fetchAs(
      get(`${home.url}/`, { headers: { "x-key": "callers" } }),
      ({ url, address }) => {
        hops.push(`${url.pathname} ${address}`);
        return url.origin === home.url ? { "X-Key": `for ${url.pathname}` } : {};
      },
    );
    expect(textOf(answer)).toBe("home");
    expect(hops).toEqual(["/ 127.0.0.1", "/x 127.0.0.1", "/back 127.0.0.1"]);
    expect(home.requests.map(({ headers }) => headers["x-key"])).toEqual(["for /", "for /back"]);
    expect(away.requests[0]?.headers).not.toHaveProperty("x-key");
  });

  test("a refusal ends the exchange as it is, before anything is sent", async () => {
    const origin = await serve((_request, response) => void response.end());
    const refuse = (): never => {
      throw new Failure(
        "upstream_failed",
        "Registry authentication requires https: credentials are not sent over plaintext http",
      );
    };
    expect(await failureOf(client().fetchAs(get(origin.url), refuse), "upstream_failed")).toContain("requires https");
    expect(origin.requests).toHaveLength(0);
  });

  test.each([
    { "X-Key": "a\r\nX-Evil: 1" },
    { "X-K\r\nX-Evil": "1" },
    { "X Key": "1" },
    { "": "1" },
    { "X-Key": "a\u0000" },
  ])("a header that would break the framing is never sent: %j", async (headers) => {
    const origin = await serve((_request, response) => void response.end());
    expect(
      await failureOf(
        client().fetch(get(origin.url, { headers: headers as unknown as Record<string, string> })),
        "upstream_failed",
      ),
    ).not.toContain("Evil");
    expect(origin.requests).toHaveLength(0);
  });
});

describe("bodies", () => {
  const text = "hello ".repeat(1_000);
  const codings: readonly [string, Buffer][] = [
    ["gzip", gzipSync(text)],
    ["x-gzip", gzipSync(text)],
    ["GZIP", gzipSync(text)],
    ["br", brotliCompressSync(text)],
    ["deflate", deflateSync(text)],
    ["deflate", deflateRawSync(text)],
    ["identity", Buffer.from(text)],
    ["gzip, br", brotliCompressSync(gzipSync(text))],
    ["gzip", Buffer.concat([gzipSync(text.slice(0, 3_000)), gzipSync(text.slice(3_000))])],
  ];

  test.each(codings)("%s is undone, and the answer does not claim it any more", async (coding, bytes) => {
    const origin = await serve(
      (_request, response) =>
        void response.writeHead(200, { "content-encoding": coding, "content-length": bytes.length }).end(bytes),
    );
    const answer = await client().fetch(get(origin.url));
    expect(textOf(answer)).toBe(text);
    expect(answer.headers).not.toHaveProperty("content-encoding");
  });

  const bomb = Buffer.alloc(64 * 1024 * 1024);
  test.each<[string, Buffer]>([
    ["gzip", gzipSync(bomb)],
    ["br", brotliCompressSync(bomb)],
    ["deflate", deflateSync(bomb)],
    ["gzip, gzip", gzipSync(gzipSync(bomb))],
    ["gzip", Buffer.concat(Array.from({ length: 64 }, () => gzipSync(Buffer.alloc(1024 * 1024))))],
  ])("a bomb in %s is stopped at the bound", async (coding, bytes) => {
    const origin = await serve(
      (_request, response) => void response.writeHead(200, { "content-encoding": coding }).end(bytes),
    );
    const before = process.memoryUsage().rss;
    const message = await failureOf(client().fetch(get(origin.url, { bodyBytesMax: 2 * 1024 * 1024 })), "too_large");
    expect(message).toBe(`The answer of "127.0.0.1:${origin.port}" is larger than 2097152 bytes`);
    expect(process.memoryUsage().rss - before).toBeLessThan(48 * 1024 * 1024);
  });

  test("a body of exactly the bound is taken, one byte more is not, declared or chunked", async () => {
    const origin = await serve((request, response) => {
      const size = Number(request.url?.split("/")[2]);
      if (request.url?.startsWith("/declared") === true) response.setHeader("content-length", size);
      response.write("x".repeat(size - 1));
      response.end("x");
    });
    for (const way of ["declared", "chunked"]) {
      expect((await client().fetch(get(`${origin.url}/${way}/1000`, { bodyBytesMax: 1_000 }))).body).toHaveLength(
        1_000,
      );
      await failureOf(client().fetch(get(`${origin.url}/${way}/1001`, { bodyBytesMax: 1_000 })), "too_large");
    }
  });

  test("an endless body is ended at the bound and its connection closed", async () => {
    let closed: Promise<unknown> = Promise.resolve();
    const origin = await serve((_request, response) => {
      closed = once(response, "close");
      const write = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536)));
      };
      response.on("drain", write);
      write();
    });
    await failureOf(client().fetch(get(origin.url)), "too_large");
    await closed;
  });

  test.each<[string, string, Buffer]>([
    ["cut short", "gzip", gzipSync(text).subarray(0, 40)],
    ["not what it says", "gzip", Buffer.from(text)],
    ["in a coding nobody asked for", "zstd", Buffer.from(text)],
    ["in too many codings", "gzip, gzip, gzip", gzipSync(gzipSync(gzipSync(text)))],
    ["named like a prototype", "constructor", Buffer.from(text)],
  ])("a body %s is a broken answer", async (_name, coding, bytes) => {
    const origin = await serve(
      (_request, response) => void response.writeHead(200, { "content-encoding": coding }).end(bytes),
    );
    await failureOf(client().fetch(get(origin.url)), "upstream_failed");
  });
});

describe("what ends an exchange", () => {
  test.each<[string, (socket: import("node:net").Socket) => void]>([
    ["is no HTTP", (socket) => void socket.end("SSH-2.0-canary\r\n\r\n")],
    ["is empty", (socket) => void socket.end()],
    ["is a reset", (socket) => void socket.resetAndDestroy()],
    ["ends in the header", (socket) => void socket.end("HTTP/1.1 200 OK\r\nX-A: canary")],
    ["ends in the body", (socket) => void socket.end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ncanary")],
    [
      "has two lengths",
      (socket) => void socket.end("HTTP/1.1 200 OK\r\nContent-Length: 6\r\nContent-Length: 5\r\n\r\ncanary"),
    ],
    ["has a huge header", (socket) => void socket.end(`HTTP/1.1 200 OK\r\nX-A: ${"canary".repeat(20_000)}\r\n\r\n`)],
    ["has endless headers", (socket) => void socket.end(`HTTP/1.1 200 OK\r\n${"X-A: canary\r\n".repeat(10_000)}\r\n`)],
    [
      "breaks its chunks",
      (socket) => void socket.end("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\ncanary"),
    ],
  ])("an answer that %s is upstream_failed, and not repeated", async (_name, onSocket) => {
    const origin = await serveRaw((socket) => void socket.once("data", () => onSocket(socket)));
    expect(await failureOf(client().fetch(get(origin.url)), "upstream_failed")).not.toMatch(/canary|undefined/);
  });

  const within = async (ms: number, work: () => Promise<unknown>): Promise<void> => {
    const started = performance.now();
    await work();
    expect(performance.now() - started).toBeLessThan(ms);
  };

  test("silence, a slow header, a slow body and a slow name all end at the deadline", async () => {
    const silent = await serveRaw(() => undefined);
    const drip = (head: string): Promise<{ url: string }> =>
      serveRaw((socket) => {
        socket.write(head);
        const timer = setInterval(() => socket.write("x"), 20);
        socket.on("close", () => clearInterval(timer));
      });
    const slowHeader = await drip("HTTP/1.1 200 OK\r\nX-A: ");
    const slowBody = await drip("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
    for (const url of [silent.url, slowHeader.url, slowBody.url]) {
      await within(2_000, async () => {
        const message = await failureOf(client().fetch(get(url, { timeoutMs: 200 })), "timeout");
        expect(message).toBe(`"${new URL(url).host}" did not answer within 200 ms`);
      });
    }
    const never = client({ lookup: () => new Promise(() => undefined) });
    await within(2_000, () => failureOf(never.fetch(get("http://slow.test/", { timeoutMs: 100 })), "timeout"));
  });

  test("the deadline covers all hops together", async () => {
    const origin = await serve(
      (request, response) => void setTimeout(() => response.writeHead(302, { location: `${request.url}x` }).end(), 150),
    );
    await within(2_000, () => failureOf(client().fetch(get(`${origin.url}/`, { timeoutMs: 400 })), "timeout"));
    expect(origin.requests.length).toBeLessThan(5);
  });

  test("the caller's signal ends it as cancelled, before and during", async () => {
    const gone = new AbortController();
    const origin = await serve(() => setTimeout(() => gone.abort(), 50));
    expect(await failureOf(client().fetch(get(origin.url, { signal: gone.signal })), "cancelled")).toContain(
      "was cancelled",
    );
    await failureOf(client().fetch(get(origin.url, { signal: AbortSignal.abort() })), "cancelled");
    expect(origin.requests).toHaveLength(1);
  });

  test("a failed exchange leaves no open connection behind", async () => {
    const closed: Promise<unknown>[] = [];
    const origin = await serveRaw((socket) => {
      // Unread, a socket never notices that its peer left.
      closed.push(once(socket.resume(), "close"));
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nx");
    });
    await failureOf(client().fetch(get(origin.url, { timeoutMs: 100 })), "timeout");
    await Promise.all(closed);
    expect(closed).toHaveLength(1);
  });

  test("after closing nothing is sent, and what was under way ends", async () => {
    const origin = await serve(() => undefined);
    const egress = client();
    const under = failureOf(egress.fetch(get(origin.url)), "upstream_failed");
    await new Promise((resolve) => setTimeout(resolve, 100));
    await egress.close();
    await under;
    await failureOf(egress.fetch(get(origin.url)), "unavailable");
    expect(origin.requests).toHaveLength(1);
  });
});
