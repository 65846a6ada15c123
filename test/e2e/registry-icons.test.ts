/** Icons of registry entries over real sockets: what a registry serves, honestly or not, and what the server makes of it. */
import { createHash } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type DevRegistry, type DevRegistryOptions, startDevRegistry } from "../../src/dev-registry/dev-registry.ts";
import type { Fault } from "../../src/dev-registry/faults.ts";
import { pngIcon } from "../../src/dev-registry/offers/png-icon.ts";
import { iconBytesMax } from "../../src/limits.ts";
import { type ForeignClient, openForeignClient } from "./foreign-client.ts";
import { removeFolder, type Server, startServer } from "./server.ts";

let server: Server;
let client: ForeignClient;
const open: DevRegistry[] = [];
let count = 0;

beforeAll(async () => {
  server = await startServer();
  client = await openForeignClient(server.grpc);
});

afterEach(async () => {
  await Promise.all(open.splice(0).map((registry) => registry.close()));
});

afterAll(async () => {
  client.close();
  await server.kill("SIGTERM");
  await removeFolder(server.folder);
});

async function added(options: DevRegistryOptions = {}, auth?: unknown): Promise<{ remote: DevRegistry; id: string }> {
  const remote = await startDevRegistry({ id: `icons${++count}`, ...options });
  open.push(remote);
  const body = { baseUrl: remote.url, ...(auth === undefined ? {} : { auth }) };
  const answer = await server.post("/registries", body);
  expect(answer.status).toBe(201);
  return { remote, id: answer.body.id };
}

const iconPath = (id: string, entryId: string, kind = "definitions"): string =>
  `/registries/${id}/${kind}/${entryId}/icon`;
const icon = (id: string, entryId = "petstore") => server.get(iconPath(id, entryId));
const sha256 = (bytes: Uint8Array | string): string => createHash("sha256").update(bytes).digest("hex");

/** A page of one entry "pet", and these bytes as its icon. */
function oneEntry(body: string | Buffer, hash = sha256(body), mediaType = "image/png"): DevRegistryOptions {
  const definitions = [
    { id: "pet", source: "/v1/definitions/pet", icon: { url: "/v1/definitions/petstore/icon.png", hash } },
  ];
  const page: Fault = { do: "replace", mediaType: "application/json", body: JSON.stringify({ definitions }) };
  return { faults: { definitions: page, icon: { do: "replace", mediaType, body } } };
}

describe("the icon of an entry", () => {
  it.each([
    ["definitions", "petstore", "GetRegistryDefinitionIcon"],
    ["modules", "csv-table", "GetRegistryModuleIcon"],
  ])("of %s has the bytes, type and hash that the registry gives, through both faces", async (kind, entryId, rpc) => {
    const { id } = await added();
    const bytes = pngIcon(entryId);
    const answer = await fetch(server.http + iconPath(id, entryId, kind));
    expect(answer.status).toBe(200);
    expect(Buffer.from(await answer.arrayBuffer())).toEqual(bytes);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "image/png",
      "x-content-type-options": "nosniff",
      "cache-control": "private, max-age=86400",
      etag: `"${sha256(bytes)}"`,
    });
    expect(await client.call("RegistryService", rpc, { id, entryId })).toEqual({
      content: bytes.toString("base64"),
      mediaType: "image/png",
      hash: sha256(bytes),
    });
  });

  it("is found beyond the first page", async () => {
    const { id } = await added({ samples: 450 });
    expect((await icon(id, "sample-449")).status).toBe(200);
  });

  it("is fetched with the credentials of its registry", async () => {
    const { id, remote } = await added({ auth: "apikey", apiKey: "CANARY" }, { type: "apiKey", apiKey: "CANARY" });
    expect((await icon(id)).status).toBe(200);
    expect(remote.requests.at(-1)).toMatchObject({ route: "icon", headers: { "x-dev-registry-key": "CANARY" } });
  });

  it("that the client has is 304", async () => {
    const { id } = await added();
    const first = await icon(id);
    const tag = first.headers.get("etag") ?? "";
    const again = await server.call("GET", iconPath(id, "petstore"), undefined, { "if-none-match": tag });
    expect([again.status, again.text, again.headers.get("etag")]).toEqual([304, "", tag]);
    const other = await server.call("GET", iconPath(id, "weather-station"), undefined, { "if-none-match": tag });
    expect(other.status).toBe(200);
  });

  it("that is SVG is a download in a sandbox, and one that is WebP is shown, whatever the registry calls them", async () => {
    const svg = "<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>";
    const asSvg = await icon((await added(oneEntry(svg))).id, "pet");
    expect([asSvg.status, asSvg.text]).toEqual([200, svg]);
    expect(Object.fromEntries(asSvg.headers)).toMatchObject({
      "content-type": "image/svg+xml",
      "content-disposition": "attachment",
      "content-security-policy": "default-src 'none'; sandbox",
      "x-content-type-options": "nosniff",
    });
    const webp = Buffer.from("RIFF\u0004\u0000\u0000\u0000WEBP");
    const asWebp = await icon((await added(oneEntry(webp, sha256(webp), "text/html"))).id, "pet");
    expect([asWebp.status, asWebp.headers.get("content-type")]).toEqual([200, "image/webp"]);
    expect(asWebp.headers.get("content-disposition")).toBeNull();
  });

  it("of the largest size, with a hash in capitals, is taken, and its tag is in small letters", async () => {
    const largest = Buffer.concat([pngIcon("pet"), Buffer.alloc(iconBytesMax)]).subarray(0, iconBytesMax);
    const { id } = await added(oneEntry(largest, sha256(largest).toUpperCase()));
    const answer = await icon(id, "pet");
    expect([answer.status, answer.headers.get("etag")]).toEqual([200, `"${sha256(largest)}"`]);
    expect(answer.headers.get("content-length")).toBe(String(iconBytesMax));
  });
});

describe("no icon", () => {
  it.each([
    ["of an entry that is not there", "nothing", /^Registry "icons\d+" has no definition "nothing"$/],
    ["of an entry whose id only begins so", "pet", /has no definition "pet"$/],
    ["of a module asked for among the definitions", "csv-table", /has no definition "csv-table"$/],
  ])("%s is 404", async (_title, entryId, message) => {
    const { id } = await added();
    const answer = await icon(id, entryId);
    expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
    expect(answer.body.error).toMatch(message);
  });

  it("in a registry whose pages lead in a circle is 404, after a look at each once", async () => {
    const { id, remote } = await added({ samples: 450, lies: ["repeated-cursor"] });
    expect((await icon(id, "nothing")).status).toBe(404);
    expect(remote.requests.filter(({ route }) => route === "definitions").length).toBeLessThan(6);
  });

  it("of an entry without one is 404, through both faces", async () => {
    const definitions = [{ id: "plain", source: "/v1/definitions/petstore" }];
    const { id } = await added({ faults: { definitions: { do: "replace", body: JSON.stringify({ definitions }) } } });
    const answer = await icon(id, "plain");
    expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
    expect(answer.body.error).toBe(`Entry "plain" of registry "${id}" has no icon`);
    const call = client.call("RegistryService", "GetRegistryDefinitionIcon", { id, entryId: "plain" });
    await expect(call).rejects.toMatchObject({ code: 5, details: answer.body.error });
  });

  it("of a registry that is not there is 404, and an id that can be none is 400", async () => {
    expect((await icon("nowhere")).status).toBe(404);
    expect((await icon("nowhere", "a.b")).status).toBe(400);
    expect((await icon("a%2Fb")).status).toBe(400);
  });

  it("among modules says so", async () => {
    const { id } = await added();
    const answer = await server.get(iconPath(id, "petstore", "modules"));
    expect([answer.status, answer.body.error]).toEqual([404, `Registry "${id}" has no module "petstore"`]);
  });
});

describe("a registry that does wrong is 502, and nothing of its bytes is passed on", () => {
  const gif = "GIF89a-foreign";
  const html = "<!DOCTYPE html><script>foreign</script>";
  const tooLarge = Buffer.concat([pngIcon("pet"), Buffer.alloc(iconBytesMax)]);
  it.each<[string, DevRegistryOptions, RegExp]>([
    ["a wrong hash", { lies: ["wrong-icon-hash"] }, /does not have the SHA-256 that the registry gives for it$/],
    ["an icon elsewhere", { lies: ["off-origin-icon"], foreignOrigin: "http://127.0.0.1:1" }, /leaves the origin/],
    ["a hash that is none", oneEntry(pngIcon("pet"), "sha256-abc"), /does not have the SHA-256/],
    ["an icon that is not there", { faults: { icon: { do: "replace", status: 404, body: "" } } }, /status 404$/],
    ["a redirect without end", { faults: { icon: { do: "redirect" } } }, /redirects more than 5 times$/],
    ["a connection that ends", { faults: { icon: { do: "cut" } } }, /closed the connection$/],
    ["another kind of image", oneEntry(gif), /^The icon of entry "pet" .* is not a PNG, WebP or SVG image$/],
    ["a page", oneEntry(html, sha256(html), "image/svg+xml"), /is not a PNG, WebP or SVG image$/],
    ["nothing", oneEntry(""), /is not a PNG, WebP or SVG image$/],
    ["more than 256 KiB", oneEntry(tooLarge), /is larger than 262144 bytes$/],
    [
      "less that unpacks to more",
      { faults: { icon: { do: "compress", encoding: "gzip", bytes: 300_000 } } },
      /is larger than 262144 bytes$/,
    ],
    ["a page of entries that is none", { lies: ["page-without-entries"] }, /"definitions" is missing$/],
  ])("%s", async (_title, options, message) => {
    const { id } = await added(options);
    const entryId = options.faults?.definitions === undefined ? "petstore" : "pet";
    const answer = await icon(id, entryId);
    expect([answer.status, answer.body.code]).toEqual([502, "upstream_failed"]);
    expect(answer.body.error).toMatch(message);
    expect(answer.text).not.toContain("foreign");
    expect(answer.headers.get("etag")).toBeNull();
    expect(answer.headers.get("cache-control")).toBeNull();
  });
});
