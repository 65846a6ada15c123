/** An honest, open registry over real sockets: discovery, pages, descriptors, downloads, icons. */
import { prerelease, valid } from "semver";
import { describe, expect, test } from "vitest";
import {
  advertisementOf,
  allDownloads,
  allEntries,
  capabilityOf,
  descriptorOf,
  json,
  pageOf,
  sha256,
  startRegistry,
} from "./client.ts";

const kinds = ["definitions", "modules"] as const;

describe("discovery", () => {
  test("the well-known document names the registry and its capabilities, and no auth in mode none", async () => {
    expect(await advertisementOf(await startRegistry())).toEqual({
      id: "dev-registry",
      name: "Development registry",
      definitions: { v1: "/v1/definitions" },
      modules: { v1: "/v1/modules" },
    });
  });

  test("it stays at the root of the origin when the registry is below a path, and everything else is below it", async () => {
    const registry = await startRegistry({ basePath: "/some/path", auth: "oauth2", samples: 2 });
    expect(registry.url).toBe(`${registry.origin}/some/path/`);
    const { definitions, modules, auth } = await advertisementOf(registry);
    expect([definitions.v1, modules.v1]).toEqual(["/some/path/v1/definitions", "/some/path/v1/modules"]);
    expect(auth?.tokenEndpoint).toBe(registry.tokenEndpoint);
    expect(registry.tokenEndpoint).toBe(`${registry.origin}/some/path/oauth/token`);
    registry.set({ auth: "none" });
    for (const kind of kinds) {
      for (const entry of await allEntries(registry, kind)) {
        const { versions } = await descriptorOf(registry, entry);
        const urls = Object.values(versions).map(({ downloadUrl }) => downloadUrl);
        for (const url of [entry.source, entry.icon.url, ...urls]) {
          expect(new URL(url, registry.origin).href).toMatch(`${registry.url}v1/${kind}/`);
        }
      }
    }
    expect((await fetch(`${registry.origin}/v1/definitions`)).status).toBe(404);
  });

  test.each(["some/path", "/some/path/", "/", "/a//b", "/a?b", "/ä"])(
    "the base path %j is refused",
    async (basePath) => {
      await expect(startRegistry({ basePath })).rejects.toThrow(`Base path "${basePath}" must be like "/some/path"`);
    },
  );

  test("an IPv6 host has a usable origin", async () => {
    const registry = await startRegistry({ host: "::1" });
    expect(registry.origin).toMatch(/^http:\/\/\[::1\]:\d+$/);
    expect((await advertisementOf(registry)).id).toBe("dev-registry");
  });
});

describe.each(kinds)("pages of %s", (kind) => {
  test.each([7, 50, 200])("of %i lead to the end, each entry once and in the same order", async (limit) => {
    const registry = await startRegistry({ samples: 250 });
    const ids = (await allEntries(registry, kind, { limit: String(limit) })).map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.slice(-250)).toEqual(Array.from({ length: 250 }, (_, index) => `sample-${index + 1}`));
    const pages = registry.requests.filter(({ route }) => route === kind).length;
    expect(pages).toBe(Math.ceil(ids.length / limit));
  });

  test("hold 50 entries without a limit and 200 at most", async () => {
    const registry = await startRegistry({ samples: 300 });
    expect((await pageOf(registry, kind)).entries).toHaveLength(50);
    expect((await pageOf(registry, kind, { limit: "100000" })).entries).toHaveLength(200);
  });

  test("that end exactly at a page's end have no further cursor", async () => {
    const registry = await startRegistry({ samples: 20 });
    const { length } = await allEntries(registry, kind);
    expect((await pageOf(registry, kind, { limit: String(length) })).nextCursor).toBeNull();
    expect((await pageOf(registry, kind, { limit: String(length - 1) })).nextCursor).toEqual(expect.any(String));
  });

  test.each([
    ["limit", "0", "invalid_request"],
    ["limit", "-1", "invalid_request"],
    ["limit", "1.5", "invalid_request"],
    ["limit", "ten", "invalid_request"],
    ["limit", "", "invalid_request"],
    ["cursor", "", "invalid_cursor"],
    ["cursor", "50", "invalid_cursor"],
    ["cursor", "%%%", "invalid_cursor"],
    ["cursor", `${Buffer.from("at:2").toString("base64url")}==`, "invalid_cursor"],
    ["cursor", Buffer.from("at:-2").toString("base64url"), "invalid_cursor"],
  ])("are refused for %s=%j", async (name, value, error) => {
    const registry = await startRegistry();
    const url = new URL(await capabilityOf(registry, kind));
    url.searchParams.set(name, value);
    const response = await fetch(url);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error });
  });

  test("are empty when nothing matches, and past the end", async () => {
    const registry = await startRegistry();
    const past = Buffer.from("at:1000").toString("base64url");
    const empty = { entries: [], nextCursor: null };
    expect(await pageOf(registry, kind, { query: "no such thing" })).toEqual(empty);
    expect(await pageOf(registry, kind, { cursor: past })).toEqual(empty);
  });
});

describe("filters", () => {
  const idsOf = async (kind: "definitions" | "modules", query: Record<string, string>) => {
    const registry = await startRegistry({ samples: 4 });
    return (await allEntries(registry, kind, query)).map(({ id }) => id);
  };

  test.each([
    ["part of an id", { query: "-station" }, ["weather-station"]],
    ["part of a name in another case", { query: "pET sT" }, ["petstore"]],
    ["part of a description", { query: "reservations" }, ["lending-library"]],
    ["a kind", { kind: "openapi@3.0.3" }, ["weather-station"]],
    ["a kind and a text that exclude each other", { kind: "openapi@3.0.3", query: "pet" }, []],
    ["a part of a kind, which is not one", { kind: "openapi" }, []],
    ["a type, which definitions do not have", { type: "adapter" }, []],
  ])("definitions are found by %s", async (_, query, ids) => {
    expect(await idsOf("definitions", query as Record<string, string>)).toEqual(ids);
  });

  test("modules are found by type, across pages", async () => {
    expect(await idsOf("modules", { type: "environment", limit: "1" })).toEqual(["sample-2", "sample-4"]);
    expect(await idsOf("modules", { type: "adapter", limit: "1" })).toEqual(["csv-table", "sample-1", "sample-3"]);
  });
});

describe("entries", () => {
  test("of definitions have a kind and no type, of modules a type and no kind", async () => {
    const registry = await startRegistry({ samples: 3 });
    for (const entry of await allEntries(registry, "definitions")) {
      expect(entry).toEqual({ ...entry, kind: expect.stringMatching(/^openapi@3\.[01]\.\d$/), type: undefined });
    }
    for (const entry of await allEntries(registry, "modules")) {
      expect(entry).toEqual({ ...entry, type: expect.stringMatching(/^(adapter|environment)$/), kind: undefined });
    }
  });

  test.each(kinds)("the descriptors of all %s list semver releases with the latest among them", async (kind) => {
    const registry = await startRegistry({ samples: 2 });
    for (const entry of await allEntries(registry, kind)) {
      const { latestVersion, versions } = await descriptorOf(registry, entry);
      expect(Object.keys(versions).filter((version) => valid(version) !== version)).toEqual([]);
      expect(Object.keys(versions)).toContain(latestVersion);
      expect(prerelease(latestVersion)).toBeNull();
    }
  });

  test("a definition and a module have several releases and a pre-release above the latest", async () => {
    const registry = await startRegistry();
    for (const [kind, id, latest] of [
      ["definitions", "petstore", "1.1.0"],
      ["modules", "csv-table", "1.1.0"],
    ] as const) {
      const descriptor = await json<{ latestVersion: string; versions: object }>(`${registry.url}v1/${kind}/${id}`);
      expect(descriptor.latestVersion).toBe(latest);
      expect(Object.keys(descriptor.versions)).toEqual(expect.arrayContaining(["1.0.0", "1.1.0", "2.0.0-beta.1"]));
    }
  });

  test.each(kinds)("all downloads of %s have the hash and a hash of their own", async (kind) => {
    const registry = await startRegistry({ samples: 3 });
    const downloads = await allDownloads(registry, kind);
    expect(downloads.length).toBeGreaterThan(5);
    for (const { bytes, described } of downloads) expect(sha256(bytes)).toBe(described.hash);
    expect(new Set(downloads.map(({ described }) => described.hash)).size).toBe(downloads.length);
  });

  test("two fixtures offer the same bytes, so one can serve the downloads of the other", async () => {
    const foreign = await startRegistry();
    const registry = await startRegistry({ downloadOrigin: foreign.origin });
    for (const { bytes, described } of await allDownloads(registry, "modules")) {
      expect(new URL(described.downloadUrl).origin).toBe(foreign.origin);
      expect(sha256(bytes)).toBe(described.hash);
    }
    expect(registry.requests.map(({ route }) => route)).not.toContain("download");
    expect(foreign.requests.map(({ route }) => route)).toEqual(["download", "download", "download"]);
  });

  test.each(kinds)("all icons of %s are PNGs with the hash, and differ", async (kind) => {
    const registry = await startRegistry({ samples: 3 });
    const entries = await allEntries(registry, kind);
    for (const { icon } of entries) {
      const response = await fetch(new URL(icon.url, registry.origin));
      expect(response.headers.get("content-type")).toBe("image/png");
      expect(sha256(Buffer.from(await response.arrayBuffer()))).toBe(icon.hash);
    }
    expect(new Set(entries.map(({ icon }) => icon.hash)).size).toBe(entries.length);
  });
});

describe("everything else", () => {
  test.each([
    "/",
    "/v1",
    "/v1/definitions/",
    "/v1/definitions/nothing",
    "/v1/modules/petstore",
    "/v1/definitions/petstore/1.0.0",
    "/v1/definitions/petstore/9.9.9/openapi.json",
    "/v1/definitions/petstore/1.0.0/other.json",
    "/v1/definitions/petstore/icon.jpg",
    "/v1/definitions/sample-1",
    "/v1/definitions/%70etstore",
    "/v1/definitions/__proto__",
    "/oauth/token",
    "//v1/definitions",
  ])("%s is not found", async (path) => {
    const registry = await startRegistry();
    const response = await fetch(registry.origin + path);
    expect(response.status).toBe(404);
    expect(await response.json()).toEqual({ error: "not_found", message: `There is nothing at "${path}"` });
  });

  test.each(["/.well-known/registry.json", "/v1/definitions", "/v1/modules/csv-table"])(
    "%s takes GET and HEAD only",
    async (path) => {
      const registry = await startRegistry();
      const refused = await fetch(registry.origin + path, { method: "POST", body: "{}" });
      expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
      const [got, head] = [
        await fetch(registry.origin + path),
        await fetch(registry.origin + path, { method: "HEAD" }),
      ];
      expect(head.status).toBe(200);
      expect(head.headers.get("content-length")).toBe(got.headers.get("content-length"));
      expect(await head.text()).toBe("");
    },
  );

  test("a body that no request needs is refused and not kept", async () => {
    const registry = await startRegistry({ auth: "oauth2" });
    const outcome = await fetch(registry.tokenEndpoint, { method: "POST", body: "x".repeat(64 * 1024 + 1) })
      .then(({ status }) => status)
      // The answer may overtake the body; the client then finds the connection closed.
      .catch(() => 413);
    expect(outcome).toBe(413);
    expect(registry.requests.map(({ body }) => body)).toEqual([""]);
  });
});

test("requests are recorded as they were sent", async () => {
  const registry = await startRegistry();
  const path = "/v1/a%2fb/..;/x";
  await fetch(`${registry.origin}${path}?a=1&b=2&a=3&c=%20+`, { headers: { "X-Test": "yes" } });
  await fetch(`${registry.origin}/v1/modules?query=x`, { method: "POST", body: "text" });
  expect(registry.requests).toMatchObject([
    { route: "unknown", method: "GET", path, query: { a: ["1", "3"], b: "2", c: "  " }, body: "" },
    { route: "modules", method: "POST", path: "/v1/modules", query: { query: "x" }, body: "text" },
  ]);
  expect(registry.requests[0]?.headers).toMatchObject({ "x-test": "yes" });
});
