/** Well-formed HTTP that is not true, on purpose: each lie and each drift says what its name says, and nothing else changes. */
import { describe, expect, test } from "vitest";
import type { Behaviour, Drift, Lie } from "../../src/dev-registry/behaviour.ts";
import {
  advertisementOf,
  allDownloads,
  allEntries,
  descriptorOf,
  json,
  pageOf,
  requestToken,
  sha256,
  startRegistry,
  tokenOf,
} from "./client.ts";

describe("lying", () => {
  const foreign = "http://registry.invalid";

  async function lying(...lies: readonly Lie[]) {
    return startRegistry({ lies, samples: 5 });
  }

  test("about where the capabilities are", async () => {
    const { definitions, modules } = await advertisementOf(await lying("off-origin-capability"));
    expect([definitions.v1, modules.v1]).toEqual([`${foreign}/v1/definitions`, `${foreign}/v1/modules`]);
  });

  test("with a page that has no entries at all", async () => {
    const registry = await lying("page-without-entries");
    expect(await json(`${registry.url}v1/modules`)).toEqual({ nextCursor: null });
  });

  test("with a cursor that leads nowhere new", async () => {
    const registry = await lying("repeated-cursor");
    const first = await pageOf(registry, "definitions");
    const second = await pageOf(registry, "definitions", { cursor: String(first.nextCursor) });
    expect(first.nextCursor).toEqual(expect.any(String));
    expect(second).toEqual(first);
  });

  test.each<[Lie, (entry: Record<string, unknown> & { icon: { url: string } }) => boolean]>([
    ["entry-without-id", (entry) => !("id" in entry)],
    ["entry-without-source", (entry) => !("source" in entry)],
    ["off-origin-source", (entry) => String(entry.source).startsWith(`${foreign}/`)],
    ["off-origin-icon", (entry) => entry.icon.url.startsWith(`${foreign}/`)],
  ])("%s concerns the first entry of a page and no other", async (lie, isBad) => {
    for (const kind of ["definitions", "modules"] as const) {
      const { entries } = await pageOf(await lying(lie), kind);
      const bad = entries.map((entry) => isBad(entry as unknown as Parameters<typeof isBad>[0]));
      expect(bad).toEqual([true, ...entries.slice(1).map(() => false)]);
    }
  });

  test("about the hashes of downloads and icons", async () => {
    const registry = await lying("wrong-hash", "wrong-icon-hash");
    for (const { bytes, described } of await allDownloads(registry, "modules")) {
      expect(described.hash).toMatch(/^[0-9a-f]{64}$/);
      expect(sha256(bytes)).not.toBe(described.hash);
    }
    for (const { icon } of await allEntries(registry, "definitions")) {
      const bytes = await (await fetch(new URL(icon.url, registry.origin))).arrayBuffer();
      expect(sha256(new Uint8Array(bytes))).not.toBe(icon.hash);
    }
  });

  test("by leaving hashes out, listing odd versions, or a latest version that is not there", async () => {
    const registry = await lying("no-hash", "odd-versions", "missing-latest");
    const [entry] = await allEntries(registry, "modules");
    if (entry === undefined) throw new Error("There is no module");
    const { latestVersion, versions } = await descriptorOf(registry, entry);
    expect(Object.values(versions).filter(({ hash }) => hash !== undefined)).toEqual([]);
    expect(Object.keys(versions)).toEqual(expect.arrayContaining(["1.1.0", "latest", "1.0", "v2.0.0", ""]));
    expect(versions).not.toHaveProperty([latestVersion]);
  });

  test("by pointing beside the base path, where no credentials are asked for", async () => {
    const registry = await startRegistry({ basePath: "/a", auth: "apikey", lies: ["sibling-path"] });
    const { definitions } = await advertisementOf(registry);
    expect(definitions.v1).toBe("/a-sibling/v1/definitions");
    const { entries } = await pageOf(registry, "definitions");
    expect(entries[0]?.source).toBe("/a-sibling/v1/definitions/petstore");
    expect((await fetch(`${registry.url}v1/definitions`)).status).toBe(401);
  });
});

describe("drift", () => {
  const key = { "X-Dev-Registry-Key": "dev-registry-key" };

  test.each<[Behaviour["auth"], Drift, object | undefined]>([
    ["apikey", "values", { type: "apiKey", name: "X-Dev-Registry-Key-Drift" }],
    ["apikey", "type", { type: "oauth2", scopes: [{ id: "definitions:read" }, { id: "modules:read" }] }],
    ["apikey", "removed", undefined],
    ["oauth2", "values", { type: "oauth2", tokenEndpoint: expect.stringMatching(/^http:.*\/oauth\/drift-token$/) }],
    ["oauth2", "type", { type: "apiKey", name: "X-Dev-Registry-Key" }],
    ["oauth2", "removed", undefined],
    ["none", "type", { type: "apiKey", name: "X-Dev-Registry-Key" }],
    ["none", "values", undefined],
  ])("in mode %s by %s changes what is advertised and not what is enforced", async (auth, drift, advertised) => {
    const registry = await startRegistry({ auth, drift });
    const found = (await advertisementOf(registry)).auth;
    if (advertised === undefined) expect(found).toBeUndefined();
    else expect(found).toMatchObject(advertised);
    const headers =
      auth === "apikey"
        ? key
        : auth === "oauth2"
          ? { Authorization: `Bearer ${(await tokenOf(registry)).access_token}` }
          : {};
    expect((await fetch(`${registry.url}v1/definitions`, { headers })).status).toBe(200);
    expect((await fetch(`${registry.url}v1/definitions`)).status).toBe(auth === "none" ? 200 : 401);
  });

  test("the advertised header and token endpoint of a drift by values get nobody in", async () => {
    const registry = await startRegistry({ auth: "apikey", drift: "values" });
    const headers = { "X-Dev-Registry-Key-Drift": "dev-registry-key" };
    expect((await fetch(`${registry.url}v1/definitions`, { headers })).status).toBe(401);
    registry.set({ auth: "oauth2" });
    const advertised = String((await advertisementOf(registry)).auth?.tokenEndpoint);
    expect((await fetch(advertised, { method: "POST", body: new URLSearchParams() })).status).toBe(404);
    expect((await requestToken(registry)).status).toBe(200);
  });

  test("any other auth can be advertised word for word", async () => {
    const advertisedAuth = { type: "apiKey", name: "key", in: "query" };
    const registry = await startRegistry({ auth: "apikey", advertisedAuth });
    expect((await advertisementOf(registry)).auth).toEqual(advertisedAuth);
    registry.set({ advertisedAuth: undefined });
    expect((await advertisementOf(registry)).auth).toMatchObject({ in: "header" });
  });
});
