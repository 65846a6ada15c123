/** Registries that send too much, too slowly or nothing: the caller gets a 502 in bounded time, and memory stays flat. */
import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { failureOf, serve, serveRaw } from "../egress/fixtures.ts";
import {
  accessTo,
  apiKey,
  byPath,
  credentials,
  noSignal,
  openReading,
  type Reading,
  sends,
  token,
} from "./fixtures.ts";

const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;

/** Each way to read, at one URL. */
function readings({ reader }: Reading, url: string): Readonly<Record<string, () => Promise<unknown>>> {
  const access = accessTo(url, apiKey);
  const request = { tokenEndpoint: `${url}/t`, clientId: "c", clientSecret: "s", scopes: [] };
  return {
    advertisement: () => reader.advertisement(url, noSignal()),
    page: () => reader.page(access, "definitions", `${url}/d`, { limit: 50 }),
    descriptor: () => reader.descriptor(access, `${url}/e`),
    artifact: () => reader.artifact(access, `${url}/a`, mebibyte, null),
    exchange: () => reader.exchange(request, noSignal()),
  };
}

const bounds = {
  advertisement: 256 * kibibyte,
  page: mebibyte,
  descriptor: mebibyte,
  artifact: mebibyte,
  exchange: 64 * kibibyte,
} as const;

describe("too much", () => {
  test("a body of exactly the bound is read, one byte more is refused", async () => {
    const padded = (value: object, size: number) => JSON.stringify(value).padEnd(size, " ");
    const good = {
      id: "r",
      definitions: { v1: "/d" },
      access_token: "t",
    };
    const version = { latestVersion: "1.0.0", versions: { "1.0.0": { downloadUrl: "/d" } } };
    let extra = 0;
    const origin = await serve(
      byPath({
        "/.well-known/registry.json": (...both) => sends(padded(good, bounds.advertisement + extra))(...both),
        "/d": (...both) => sends(padded({ definitions: [] }, bounds.page + extra))(...both),
        "/e": (...both) => sends(padded(version, bounds.descriptor + extra))(...both),
        "/a": (...both) => sends(padded({}, bounds.artifact + extra))(...both),
        "/t": (...both) => sends(padded(good, bounds.exchange + extra))(...both),
      }),
    );
    for (const read of Object.values(readings(openReading(), origin.url))) await read();
    extra = 1;
    for (const [name, read] of Object.entries(readings(openReading(), origin.url))) {
      const message = await failureOf(read(), "upstream_failed");
      expect(message).toMatch(new RegExp(`larger than ${bounds[name as keyof typeof bounds]} bytes$`));
    }
  });

  test("compressed bodies that unfold to hundreds of megabytes are refused without unfolding them", async () => {
    const zeros = Buffer.alloc(64 * mebibyte);
    const member = gzipSync(zeros);
    const bombs = {
      // A body of several members is one stream: close to 200 MiB on 195 KiB of wire.
      gzip: Buffer.concat([member, member, member]),
      br: brotliCompressSync(zeros),
      "gzip, gzip": gzipSync(member),
    };
    for (const [encoding, bomb] of Object.entries(bombs)) {
      const origin = await serve(sends(bomb, 200, { "content-encoding": encoding }));
      const before = process.memoryUsage().rss;
      for (const read of Object.values(readings(openReading(), origin.url)))
        expect(await failureOf(read(), "upstream_failed")).toMatch(/is larger than \d+ bytes$/);
      expect(process.memoryUsage().rss - before).toBeLessThan(64 * mebibyte);
    }
  });

  test("a body without end is cut at the bound, and a false length refused before it is read", async () => {
    const endless = await serve((_request, response) => {
      const spaces = Buffer.alloc(64 * kibibyte, " ");
      const more = (): void => {
        while (!response.destroyed && response.write(spaces));
      };
      response.writeHead(200).on("drain", more);
      more();
    });
    const announced = await serveRaw((socket) => {
      socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 600000000000\r\n\r\n"));
    });
    const before = process.memoryUsage().rss;
    for (const { url } of [endless, announced])
      for (const read of Object.values(readings(openReading(), url)))
        expect(await failureOf(read(), "upstream_failed")).toMatch(/is larger than \d+ bytes$/);
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * mebibyte);
  });
});

describe("too slow", () => {
  /** Ten seconds pass in half a second. */
  const speed = 20;

  const drips: Readonly<Record<string, string>> = {
    "headers at once, then a byte at a time": "HTTP/1.1 200 OK\r\ncontent-length: 60000\r\n\r\n",
    "a header byte at a time": "",
  };

  test.each(Object.entries(drips))("%s: over at the deadline, and the connection is closed", async (_name, start) => {
    let closed = 0;
    const origin = await serveRaw((socket) => {
      socket.once("data", () => {
        if (start !== "") socket.write(start);
        const text = start === "" ? `HTTP/1.1 200 OK\r\nx-slow: ${"x".repeat(10_000)}` : " ".repeat(10_000);
        let at = 0;
        const timer = setInterval(() => socket.write(text.charAt(at++)), 20);
        socket.on("close", () => {
          closed += 1;
          clearInterval(timer);
        });
      });
    });
    const reads = Object.entries(readings(openReading({ speed }), origin.url));
    const messages = await Promise.all(
      reads.map(async ([name, read]) => [name, await failureOf(read(), "upstream_failed")] as const),
    );
    for (const [name, message] of messages) {
      const limitMs = name === "artifact" ? 30_000 : 10_000;
      expect(message).toBe(`"127.0.0.1:${origin.port}" did not answer within ${limitMs} ms`);
    }
    await expect.poll(() => closed).toBe(5);
  });

  test("forty registries that say nothing keep no other waiting", async () => {
    const silent = await serveRaw(() => undefined);
    const healthy = await serve(sends({ definitions: [] }));
    const reading = openReading({ speed });
    const stuck = Array.from({ length: 40 }, () =>
      failureOf(readings(reading, silent.url).page?.() ?? Promise.resolve(), "upstream_failed"),
    );
    let isOver = false;
    const all = Promise.all(stuck).then((messages) => {
      isOver = true;
      return messages;
    });
    await readings(reading, healthy.url).page?.();
    expect(isOver).toBe(false);
    expect(new Set(await all)).toEqual(new Set([`"127.0.0.1:${silent.port}" did not answer within 10000 ms`]));
  });

  test("a wait for credentials and a second attempt share one limit", async () => {
    const origin = await serve(sends({}, 401));
    const never = new Promise<never>(() => undefined);
    const page = (source: ReturnType<typeof credentials>) =>
      openReading({ speed }).reader.page(accessTo(origin.url, source), "definitions", `${origin.url}/d`, { limit: 1 });
    const late = 'The definitions page of registry "r" did not end within 15000 ms';
    expect(await failureOf(page({ ...credentials(null), current: () => never }), "upstream_failed")).toBe(late);
    expect(origin.requests).toHaveLength(0);
    expect(await failureOf(page({ ...credentials(token("t")), renewed: () => never }), "upstream_failed")).toBe(late);
    expect(origin.requests).toHaveLength(1);
  });

  test("the second attempt gets what is left of the time", async () => {
    const origin = await serve((request, response) => {
      if (request.headers.authorization === "Bearer t1") setTimeout(() => sends({}, 401)(request, response), 300);
    });
    const source = credentials(token("t1"), token("t2"));
    const read = openReading({ speed }).reader.descriptor(accessTo(origin.url, source), `${origin.url}/e`);
    const message = await failureOf(read, "upstream_failed");
    const leftMs = Number(/did not answer within ([0-9]+) ms$/.exec(message)?.[1]);
    expect(leftMs).toBeLessThanOrEqual(9_000);
    expect(leftMs).toBeGreaterThan(0);
  });
});

describe("a caller that goes away", () => {
  test("ends the read, in the wait for credentials as in the exchange", async () => {
    const silent = await serveRaw(() => undefined);
    const { reader } = openReading();
    const waiting = { ...credentials(null), current: () => new Promise<never>(() => undefined) };
    for (const source of [waiting, credentials(apiKey)]) {
      const caller = new AbortController();
      const read = reader.descriptor(accessTo(silent.url, source, caller.signal), `${silent.url}/e`);
      const failed = failureOf(read, "cancelled");
      await pause(50);
      caller.abort();
      await failed;
    }
    const gone = AbortSignal.abort();
    await failureOf(reader.descriptor(accessTo(silent.url, apiKey, gone), `${silent.url}/e`), "cancelled");
    await failureOf(reader.advertisement(silent.url, gone), "cancelled");
    await failureOf(reader.requireSafeTransport(silent.url, gone), "cancelled");
  });
});

test("a closed port is an unreachable registry", async () => {
  const origin = await serve(sends({}));
  const port = origin.port;
  const closed = await serveRaw((socket) => socket.destroy());
  expect(port).not.toBe(closed.port);
  for (const read of Object.values(readings(openReading(), closed.url)))
    expect(await failureOf(read(), "upstream_failed")).toBe(
      `Cannot reach "127.0.0.1:${closed.port}": it closed the connection`,
    );
  for (const read of Object.values(readings(openReading(), "http://127.0.0.1:1")))
    expect(await failureOf(read(), "upstream_failed")).toBe('Cannot reach "127.0.0.1:1": it refused the connection');
});

test("what is not HTTP is an unreachable registry", async () => {
  const ssh = await serveRaw((socket) => socket.once("data", () => socket.write("SSH-2.0-OpenSSH_9.9\r\n")));
  for (const read of Object.values(readings(openReading(), ssh.url)))
    expect(await failureOf(read(), "upstream_failed")).toMatch(/^Cannot reach "127\.0\.0\.1:\d+": /);
});

test("a registry that was hostile once is read normally later", async () => {
  let isHostile = true;
  const body = "fine";
  const origin = await serve((request, response) => {
    if (isHostile) sends(Buffer.alloc(2 * mebibyte))(request, response);
    else sends(body)(request, response);
  });
  const { reader } = openReading();
  const hash = createHash("sha256").update(body).digest("hex");
  const get = () => reader.artifact(accessTo(origin.url, apiKey), `${origin.url}/a`, mebibyte, hash);
  await failureOf(get(), "upstream_failed");
  isHostile = false;
  expect(Buffer.from(await get()).toString()).toBe(body);
});
