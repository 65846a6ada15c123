/** The registry misbehaving on the wire, over real sockets: each fault does what its name says, where it was told to. */
import { execFile } from "node:child_process";
import { connect } from "node:net";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { Fault } from "../../src/dev-registry/faults.ts";
import { json, startRegistry, tokenOf } from "./client.ts";

async function faulty(fault: Fault) {
  const registry = await startRegistry({ faults: { definitions: fault } });
  return { registry, url: `${registry.url}v1/definitions` };
}

const honestPage = async () => (await fetch(`${(await startRegistry()).url}v1/definitions`)).text();

describe("slow", () => {
  test("a delayed answer comes late and whole", async () => {
    const { url } = await faulty({ do: "delay", ms: 150 });
    const started = performance.now();
    expect(await (await fetch(url)).text()).toBe(await honestPage());
    // Timers may be a millisecond early.
    expect(performance.now() - started).toBeGreaterThan(145);
  });

  test("a dripped answer comes in many pieces and is whole", async () => {
    const { url } = await faulty({ do: "drip", bytes: 100, everyMs: 2 });
    const response = await fetch(url);
    const pieces: Uint8Array[] = [];
    for await (const piece of response.body ?? []) pieces.push(piece as Uint8Array);
    expect(Buffer.concat(pieces).toString()).toBe(await honestPage());
    expect(pieces.length).toBeGreaterThan(3);
  });

  test("a stalled answer begins and never ends", async () => {
    const { url } = await faulty({ do: "stall" });
    const response = await fetch(url, { signal: AbortSignal.timeout(300) });
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow(/timeout/);
  });

  const held: readonly Fault[] = [
    { do: "delay", ms: 3_600_000 },
    { do: "drip", bytes: 1, everyMs: 3_600_000 },
    { do: "stall" },
  ];

  test.each(held)("closing does not wait for an answer held by $do", async (fault) => {
    const { registry, url } = await faulty(fault);
    const answer = fetch(url)
      .then((response) => response.text())
      .catch(() => "ended");
    await expect.poll(() => registry.requests.length).toBe(1);
    await registry.close();
    await registry.close();
    expect(await answer).toBe("ended");
  });

  test.each(held)("an answer held by $do keeps no process alive after closing", async (fault) => {
    const module = new URL("../../src/dev-registry/dev-registry.ts", import.meta.url).href;
    const program = `
      import { startDevRegistry } from ${JSON.stringify(module)};
      const registry = await startDevRegistry({ faults: { definitions: ${JSON.stringify(fault)} } });
      const answer = fetch(registry.url + "v1/definitions").then((response) => response.text()).catch(() => {});
      while (registry.requests.length === 0) await new Promise(setImmediate);
      await Promise.all([registry.close(), answer]);
    `;
    const args = ["--input-type=module", "-e", program];
    await expect(promisify(execFile)(process.execPath, args, { timeout: 20_000 })).resolves.toMatchObject({
      stderr: "",
    });
  });

  test("a client that goes away leaves the registry working", async () => {
    const { registry, url } = await faulty({ do: "drip", bytes: 1, everyMs: 1 });
    const leaving = Array.from({ length: 20 }, () =>
      fetch(url, { signal: AbortSignal.timeout(30) }).then((r) => r.text()),
    );
    const outcomes = await Promise.allSettled(leaving);
    expect(outcomes.filter(({ status }) => status === "rejected")).toHaveLength(20);
    registry.set({ faults: {} });
    expect((await fetch(url)).status).toBe(200);
  });
});

describe("broken connections", () => {
  test("a cut answer ends before its announced length", async () => {
    const { url } = await faulty({ do: "cut" });
    const response = await fetch(url);
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
  });

  test("hanging up gives no answer at all", async () => {
    const { registry } = await faulty({ do: "hang-up" });
    const { port } = new URL(registry.origin);
    const received = await new Promise<string>((resolve) => {
      let text = "";
      const socket = connect(Number(port), "127.0.0.1", () =>
        socket.write("GET /v1/definitions HTTP/1.1\r\nHost: x\r\n\r\n"),
      );
      socket.on("data", (data) => {
        text += data;
      });
      socket.on("error", () => {});
      socket.on("close", () => resolve(text));
    });
    expect(received).toBe("");
  });
});

describe("redirecting", () => {
  test.each([301, 302, 303, 307, 308])("with %i so many times, then the answer", async (status) => {
    const { registry, url } = await faulty({ do: "redirect", status, hops: 3 });
    const first = await fetch(`${url}?limit=1`, { redirect: "manual" });
    expect([first.status, first.headers.get("location")]).toEqual([status, "/v1/definitions?limit=1&hop=1"]);
    const response = await fetch(`${url}?limit=1`);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ definitions: [{ id: "petstore" }] });
    expect(registry.requests.map(({ query }) => query.hop)).toEqual([undefined, undefined, "1", "2", "3"]);
  });

  test("without an end", async () => {
    const { registry, url } = await faulty({ do: "redirect" });
    await expect(fetch(url)).rejects.toThrow();
    expect(registry.requests.length).toBeGreaterThan(15);
  });

  test("to another origin, which sees what the client sends there", async () => {
    const other = await startRegistry({ samples: 1 });
    const { url } = await faulty({ do: "redirect", origin: other.origin });
    expect(await json(url, { headers: { "X-Dev-Registry-Key": "dev-registry-key" } })).toHaveProperty("definitions");
    expect(other.requests).toMatchObject([
      { path: "/v1/definitions", headers: { "x-dev-registry-key": "dev-registry-key" } },
    ]);
  });

  test("between two origins without an end", async () => {
    const [one, two] = [await startRegistry(), await startRegistry()];
    one.set({ faults: { definitions: { do: "redirect", origin: two.origin } } });
    two.set({ faults: { definitions: { do: "redirect", origin: one.origin } } });
    await expect(fetch(`${one.url}v1/definitions`)).rejects.toThrow();
    expect(one.requests.length).toBeGreaterThan(5);
    expect(two.requests.length).toBeGreaterThan(5);
  });

  test("to a given place, word for word", async () => {
    const { url } = await faulty({ do: "redirect", to: "http://169.254.169.254/%2e%2e/x y" });
    const response = await fetch(url, { redirect: "manual" });
    expect(response.headers.get("location")).toBe("http://169.254.169.254/%2e%2e/x y");
  });
});

describe("untrue or broken answers", () => {
  test.each<[string, Fault, number, string, string]>([
    ["a 500", { do: "replace", status: 500, mediaType: "text/plain", body: "broken" }, 500, "text/plain", "broken"],
    ["HTML", { do: "replace", mediaType: "text/html", body: "<html></html>" }, 200, "text/html", "<html></html>"],
    ["half of a JSON text", { do: "replace", body: '{"definitions": [' }, 200, "application/json", '{"definitions": ['],
    ["nothing", { do: "replace", body: "" }, 200, "application/json", ""],
  ])("%s", async (_, fault, status, mediaType, text) => {
    const { url } = await faulty(fault);
    const response = await fetch(url);
    expect([response.status, response.headers.get("content-type"), await response.text()]).toEqual([
      status,
      mediaType,
      text,
    ]);
  });

  test("headers of a replaced answer are sent too", async () => {
    const { url } = await faulty({ do: "replace", status: 429, headers: { "Retry-After": "7" }, body: "{}" });
    expect((await fetch(url)).headers.get("retry-after")).toBe("7");
  });

  test("the honest bytes under a wrong content type", async () => {
    const { url } = await faulty({ do: "mislabel", mediaType: "image/svg+xml" });
    const response = await fetch(url);
    expect([response.headers.get("content-type"), await response.text()]).toEqual([
      "image/svg+xml",
      await honestPage(),
    ]);
  });

  test("a body that is larger by so much and still JSON", async () => {
    const { url } = await faulty({ do: "pad", bytes: 256 * 1024 + 1 });
    const text = await (await fetch(url)).text();
    expect(text.length).toBe((await honestPage()).length + 256 * 1024 + 1);
    expect(JSON.parse(text)).toEqual(JSON.parse(await honestPage()));
  });

  test.each(["gzip", "br"] as const)("a %s bomb is small on the wire and large after it", async (encoding) => {
    const { url } = await faulty({ do: "compress", encoding, bytes: 20_000_000 });
    const response = await fetch(url);
    expect(response.headers.get("content-encoding")).toBe(encoding);
    expect(Number(response.headers.get("content-length"))).toBeLessThan(100_000);
    expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(20_000_000);
  });

  test("a compressed answer without a bomb is the honest answer", async () => {
    const { url } = await faulty({ do: "compress", encoding: "gzip", bytes: 0 });
    expect(await (await fetch(url)).text()).toBe(await honestPage());
  });
});

describe("faults", () => {
  test("end after so many requests, and begin again when set again", async () => {
    const { registry, url } = await faulty({ do: "replace", status: 401, body: "{}", times: 2 });
    const statuses = async () => [await fetch(url), await fetch(url), await fetch(url)].map(({ status }) => status);
    expect(await statuses()).toEqual([401, 401, 200]);
    registry.set({ samples: 1 });
    expect(await statuses()).toEqual([200, 200, 200]);
    registry.set({ faults: { definitions: { do: "replace", status: 503, body: "", times: 1 } } });
    expect(await statuses()).toEqual([503, 200, 200]);
  });

  test("hit their own route only", async () => {
    const spoilt: Fault = { do: "replace", status: 500, body: "" };
    const urls = {
      advertisement: "/.well-known/registry.json",
      definitions: "/v1/definitions",
      modules: "/v1/modules",
      descriptor: "/v1/modules/csv-table",
      download: "/v1/definitions/petstore/1.0.0/openapi.json",
      icon: "/v1/definitions/petstore/icon.png",
      unknown: "/elsewhere",
    } as const;
    const registry = await startRegistry();
    for (const name of Object.keys(urls) as (keyof typeof urls)[]) {
      registry.set({ faults: { [name]: spoilt } });
      const answers = Object.values(urls).map((path) => fetch(registry.origin + path));
      const failed = (await Promise.all(answers)).map(({ status }) => status === 500);
      expect(failed).toEqual(Object.keys(urls).map((other) => other === name));
    }
  });

  test("do not keep a token from being issued", async () => {
    const registry = await startRegistry({ auth: "oauth2", faults: { token: { do: "delay", ms: 20 } } });
    const { access_token } = await tokenOf(registry);
    const headers = { Authorization: `Bearer ${access_token}` };
    expect((await fetch(`${registry.url}v1/definitions`, { headers })).status).toBe(200);
  });
});

test("gzip made here is read by others", async () => {
  const { url } = await faulty({ do: "compress", encoding: "gzip", bytes: 1 });
  const { port } = new URL(url);
  const raw = await new Promise<Buffer>((resolve) => {
    const parts: Buffer[] = [];
    const socket = connect(Number(port), "127.0.0.1", () =>
      socket.write("GET /v1/definitions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
    );
    socket.on("data", (data) => parts.push(data));
    socket.on("close", () => resolve(Buffer.concat(parts)));
  });
  expect(gunzipSync(raw.subarray(raw.indexOf("\r\n\r\n") + 4)).toString()).toBe(`${await honestPage()} `);
});
