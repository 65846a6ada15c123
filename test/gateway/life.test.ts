/** Probes, headers of rows, clients that leave, slow clients, and closing. */
import net from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { hangingId, slowId } from "../control-plane/fake-processes.ts";
import { openTwoFaces, type TwoFaces } from "../control-plane/two-faces.ts";
import { parseAnswer, rawRequest } from "./raw-http.ts";

let faces: TwoFaces;
afterEach(() => faces.close());

describe("probes", () => {
  it("healthz is alive whatever happens, readyz follows readiness", async () => {
    faces = await openTwoFaces();
    expect((await fetch(`${faces.rest}/readyz`)).status).toBe(200);
    faces.readiness.set(false);
    const notReady = await fetch(`${faces.rest}/readyz`);
    expect(notReady.status).toBe(503);
    expect(notReady.headers.get("retry-after")).toBe("1");
    expect(await notReady.json()).toEqual({ error: "The store is failing", code: "unavailable" });
    expect((await fetch(`${faces.rest}/healthz`)).status).toBe(200);
    faces.readiness.set(true);
    expect((await fetch(`${faces.rest}/readyz`)).status).toBe(200);
  });
});

describe("headers of rows", () => {
  const patch = (headers: Record<string, string>, body = "[]") =>
    fetch(`${faces.rest}/services/s/config`, {
      method: "PATCH",
      headers: { "content-type": "application/json", ...headers },
      body,
    });

  it("the tag of the output is a strong ETag and no field of the body", async () => {
    faces = await openTwoFaces();
    const config = await fetch(`${faces.rest}/services/s/config`);
    expect(config.headers.get("etag")).toBe('"abc"');
    expect(await config.json()).toEqual({ config: { a: 1 }, outdated: ["/b"] });
  });

  it.each([
    ['"abc"', { ifMatch: "abc" }],
    [' "abc" ', { ifMatch: "abc" }],
    ['""', { ifMatch: "" }],
    ["*", {}],
    [undefined, {}],
  ])("If-Match %j reaches the row as %j", async (header, expected) => {
    faces = await openTwoFaces();
    expect((await patch(header === undefined ? {} : { "if-match": header })).status).toBe(200);
    expect(faces.domain.seen.at(-1)?.input).toEqual({ serviceId: "s", patch: [], ...expected });
  });

  it.each([
    ['W/"abc"', 412],
    ["abc", 400],
    ['"a", "b"', 400],
    ['"a"b"', 400],
    ["", 400],
  ])("If-Match %j is %i", async (header, status) => {
    faces = await openTwoFaces();
    expect((await patch({ "if-match": header })).status).toBe(status);
    expect(faces.domain.seen).toEqual([]);
  });
});

describe("clients that leave", () => {
  it("aborts the signal of a call that looks at it, and the server goes on", async () => {
    faces = await openTwoFaces();
    const socket = net.connect(faces.gateway.address.port, "127.0.0.1");
    socket.write(`GET /processes/${hangingId} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await expect.poll(() => faces.domain.seen.length).toBe(1);
    socket.destroy();
    await expect.poll(() => faces.domain.aborted).toMatchObject([{ kind: "cancelled" }]);
    await expect
      .poll(() => faces.lines.filter((line) => line.event === "http-request"))
      .toMatchObject([{ fields: { status: 499 } }]);
    expect((await fetch(`${faces.rest}/processes/1`)).status).toBe(200);
  });

  it("a client that stays away in the middle of its headers or body is no error", async () => {
    faces = await openTwoFaces();
    for (const text of [
      "GET /pro",
      "POST /processes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
    ]) {
      const socket = net.connect(faces.gateway.address.port, "127.0.0.1");
      await new Promise((resolve) => socket.write(text, resolve));
      await new Promise((resolve) => setTimeout(resolve, 50));
      socket.resetAndDestroy();
    }
    expect((await fetch(`${faces.rest}/processes/1`)).status).toBe(200);
    expect(faces.lines.filter((line) => line.level === "error")).toEqual([]);
  });
});

describe("closing", () => {
  it("finishes admitted calls with Connection: close, refuses the rest, and ends idle connections", async () => {
    faces = await openTwoFaces();
    const { port } = faces.gateway.address;
    const idle = net.connect(port, "127.0.0.1");
    idle.on("error", () => undefined);
    const idleClosed = new Promise((resolve) => idle.on("close", resolve));
    const slow = rawRequest(port, `GET /processes/${slowId} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await expect.poll(() => faces.domain.seen.length).toBe(1);
    const started = performance.now();
    const closed = faces.gateway.close(5_000);
    await expect(rawRequest(port, "GET /processes/1 HTTP/1.1\r\nHost: localhost\r\n\r\n")).rejects.toThrow();
    const answer = await slow;
    expect(answer.status).toBe(200);
    expect(answer.headers.connection).toBe("close");
    await Promise.all([closed, idleClosed]);
    expect(performance.now() - started).toBeLessThan(4_000);
  });

  it("a call that does not end is cut at the limit", async () => {
    faces = await openTwoFaces();
    const { port } = faces.gateway.address;
    const hanging = rawRequest(port, `GET /processes/${hangingId} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    const cut = expect(hanging).rejects.toThrow();
    await expect.poll(() => faces.domain.seen.length).toBe(1);
    const started = performance.now();
    await faces.gateway.close(200);
    expect(performance.now() - started).toBeLessThan(3_000);
    await cut;
    await expect.poll(() => faces.domain.aborted).toMatchObject([{ kind: "cancelled" }]);
  });

  it("a call in flight is answered although another is pipelined behind it", async () => {
    faces = await openTwoFaces();
    const socket = net.connect(faces.gateway.address.port, "127.0.0.1");
    let received = "";
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      received += chunk;
    });
    socket.write(
      `GET /processes/${slowId} HTTP/1.1\r\nHost: localhost\r\n\r\nGET /processes/1 HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    );
    await expect.poll(() => faces.domain.seen.length).toBeGreaterThan(0);
    const ended = new Promise((resolve) => socket.on("close", resolve));
    await faces.gateway.close(5_000);
    await ended;
    expect(parseAnswer(received).status).toBe(200);
  });
});
