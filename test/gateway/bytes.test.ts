/** Rows that answer bytes: what a browser is told about them, and what a cache may do. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { type Gateway, openGateway } from "../../src/gateway/gateway.ts";
import { openAuthentication } from "../../src/operations/authentication.ts";
import type { Operation } from "../../src/operations/operation.ts";
import { realClock, rememberingLog, SwitchedReadiness } from "../control-plane/two-faces.ts";

const tag = "a,b";
const every = Uint8Array.from({ length: 256 }, (_, byte) => byte);
const shape = z.object({ type: z.string() });

function row(path: string, route: Partial<Operation["route"]>): Operation {
  const operation: Operation<z.infer<typeof shape>, Record<string, unknown>> = {
    name: "getBytes",
    summary: "Bytes of a type that the caller names",
    rpcService: "NoService",
    route: { method: "GET", path, query: ["type"], body: "none", status: 200, etag: "tag", ...route },
    role: "agent",
    input: shape,
    output: z.record(z.string(), z.unknown()),
    // A view into a larger buffer: only what it shows may be sent.
    run: async ({ type }) => ({ content: new Uint8Array([1, ...every, 2]).subarray(1, 257), type, tag }),
  };
  return operation as Operation;
}

let gateway: Gateway;
let url: string;

beforeAll(async () => {
  gateway = await openGateway({
    operations: [
      row("/bytes", { bytes: { content: "content", mediaType: "type", freshSeconds: 60 } }),
      row("/text", { answer: { field: "type", mediaType: "text/plain" } }),
      row("/posted", { method: "POST", answer: { field: "type", mediaType: "text/plain" } }),
    ],
    authentication: openAuthentication([], realClock),
    host: "127.0.0.1",
    port: 0,
    allowedHosts: [],
    corsOrigins: [],
    clock: realClock,
    log: rememberingLog().log,
    readiness: new SwitchedReadiness(),
  });
  url = `http://127.0.0.1:${gateway.address.port}`;
});
afterAll(() => gateway.close(500));

const get = (path: string, headers: Record<string, string> = {}, method = "GET") =>
  fetch(url + path, { headers, method });
const bytesOf = (type: string, headers?: Record<string, string>, method?: string) =>
  get(`/bytes?type=${encodeURIComponent(type)}`, headers, method);

describe("bytes", () => {
  it("arrive unchanged, with their type, length and tag, for the cache of the caller alone", async () => {
    const answer = await bytesOf("image/png");
    expect(answer.status).toBe(200);
    expect(new Uint8Array(await answer.arrayBuffer())).toEqual(every);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "image/png",
      "content-length": "256",
      "x-content-type-options": "nosniff",
      "cache-control": "private, max-age=60",
      etag: `"${tag}"`,
    });
  });

  it.each(["image/png", "image/webp"])("of type %s are shown", async (type) => {
    const { headers } = await bytesOf(type);
    expect([headers.get("content-disposition"), headers.get("content-security-policy")]).toEqual([null, null]);
  });

  it.each(["image/svg+xml", "text/html", "application/json", "application/xhtml+xml", "IMAGE/PNG", ""])(
    "of type %j are a download in a sandbox",
    async (type) => {
      const { headers } = await bytesOf(type);
      expect(headers.get("content-disposition")).toBe("attachment");
      expect(headers.get("content-security-policy")).toBe("default-src 'none'; sandbox");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
    },
  );

  it("are not sent for HEAD, whose headers are the same", async () => {
    const answer = await bytesOf("image/png", {}, "HEAD");
    expect([answer.status, await answer.text()]).toEqual([200, ""]);
    expect(answer.headers.get("content-length")).toBe("256");
    expect(answer.headers.get("etag")).toBe(`"${tag}"`);
  });
});

describe("If-None-Match", () => {
  const held = [`"${tag}"`, `W/"${tag}"`, "*", " * ", `"x", "${tag}"`, `"x",W/"${tag}" , "y"`];
  const notHeld = [
    '"x"',
    tag,
    `"${tag}`,
    `x"${tag}`,
    `x"${tag}"`,
    `"${tag}"x`,
    `"x" "${tag}"`,
    `w/"${tag}"`,
    '""',
    '"a", "b"',
    '"A,B"',
    "**",
    `'${tag}'`,
  ];

  it.each(held)("%j names the tag: 304 without a body, with the headers a cache needs", async (condition) => {
    const answer = await bytesOf("image/png", { "if-none-match": condition });
    expect([answer.status, await answer.text()]).toEqual([304, ""]);
    expect(answer.headers.get("etag")).toBe(`"${tag}"`);
    expect(answer.headers.get("cache-control")).toBe("private, max-age=60");
    expect(answer.headers.get("content-type")).toBeNull();
  });

  it.each(notHeld)("%j does not: 200 with everything", async (condition) => {
    const answer = await bytesOf("image/png", { "if-none-match": condition });
    expect([answer.status, (await answer.arrayBuffer()).byteLength]).toEqual([200, 256]);
  });

  it("holds for every GET with a tag, and for HEAD, but not for a POST", async () => {
    const condition = { "if-none-match": `"${tag}"` };
    expect((await get("/text?type=x", condition)).status).toBe(304);
    expect((await bytesOf("image/png", condition, "HEAD")).status).toBe(304);
    expect((await get("/posted?type=x", condition, "POST")).status).toBe(200);
  });
});
