/** The reader against the development registry: two programs written from the same document, each by itself. */
import { describe, expect, onTestFinished, test } from "vitest";
import type { Lie } from "../../src/dev-registry/behaviour.ts";
import { type DevRegistry, type DevRegistryOptions, startDevRegistry } from "../../src/dev-registry/dev-registry.ts";
import type {
  Advertisement,
  EntryKind,
  RegistryAccess,
  RegistryCredential,
  RegistryEntry,
  RegistryReader,
} from "../../src/ports/registry-reader.ts";
import { failureOf } from "../egress/fixtures.ts";
import { accessTo, noSignal, openReading } from "./fixtures.ts";

async function start(options: DevRegistryOptions = {}): Promise<DevRegistry> {
  const registry = await startDevRegistry(options);
  onTestFinished(() => registry.close());
  return registry;
}

/** As an actor would set them up: from what is advertised. */
async function credentialFor(reader: RegistryReader, { auth }: Advertisement): Promise<RegistryCredential | null> {
  switch (auth?.type) {
    case "apiKey":
      return { type: "apiKey", headerName: auth.headerName, key: "dev-registry-key" };
    case "oauth2": {
      const { tokenEndpoint } = auth;
      await reader.requireSafeTransport(tokenEndpoint, noSignal());
      const scopes = auth.scopes.map(({ id }) => id);
      const request = { tokenEndpoint, clientId: "dev-client", clientSecret: "dev-secret", scopes };
      return { type: "oauth2", accessToken: (await reader.exchange(request, noSignal())).accessToken };
    }
    default:
      return null;
  }
}

async function walk(reader: RegistryReader, access: RegistryAccess, kind: EntryKind, url: string) {
  const entries: RegistryEntry[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < 20; pages += 1) {
    const page = await reader.page(access, kind, url, { limit: 5, cursor });
    entries.push(...page.entries);
    if (page.nextCursor === null) return entries;
    cursor = page.nextCursor;
  }
  return expect.unreachable("The pages do not end");
}

describe.each(["none", "apikey", "oauth2"] as const)("with auth %s, below a path", (auth) => {
  test("everything it offers can be read and has the hash it says", async () => {
    const registry = await start({ auth, basePath: "/some/path", samples: 12 });
    const { reader } = openReading();
    const advertised = await reader.advertisement(registry.url, noSignal());
    const access = accessTo(registry.url, await credentialFor(reader, advertised));
    let downloads = 0;
    for (const kind of ["definitions", "modules"] as const) {
      const entries = await walk(reader, access, kind, advertised[kind] ?? "");
      expect(entries.length).toBeGreaterThan(12);
      for (const { source, icon } of entries) {
        if (icon !== undefined) await reader.artifact(access, icon.url, 256 * 1024, icon.hash);
        const { versions, latestVersion } = await reader.descriptor(access, source);
        const { downloadUrl, hash } = versions[latestVersion] ?? expect.unreachable("No latest version");
        expect(hash).not.toBeNull();
        await reader.artifact(access, downloadUrl, 10 * 1024 * 1024, hash);
        downloads += 1;
      }
    }
    expect(downloads).toBeGreaterThan(24);
  });
});

test("a wrong secret, an unknown scope and a revoked token end in the failures they should", async () => {
  const registry = await start({ auth: "oauth2" });
  const { reader } = openReading();
  const request = {
    tokenEndpoint: registry.tokenEndpoint,
    clientId: "dev-client",
    clientSecret: "dev-secret",
    scopes: [],
  };
  const refused = (more: object) => failureOf(reader.exchange({ ...request, ...more }, noSignal()), "upstream_failed");
  expect(await refused({ clientSecret: "wrong" })).toBe("The token endpoint answered with status 401");
  expect(await refused({ scopes: ["unknown"] })).toBe("The token endpoint answered with status 400");
  const advertised = await reader.advertisement(registry.url, noSignal());
  const access = accessTo(registry.url, await credentialFor(reader, advertised));
  registry.revoke();
  expect(
    await failureOf(reader.page(access, "definitions", advertised.definitions ?? "", { limit: 5 }), "upstream_failed"),
  ).toBe('The definitions page of registry "r" was answered with status 401');
});

test.each<[Lie, RegExp]>([
  [
    "off-origin-capability",
    /^The well-known document of "[^"]+" is malformed: in "definitions", "v1" leaves the origin/,
  ],
  ["page-without-entries", /^The definitions page of registry "r" is malformed: "definitions" is missing$/],
  ["entry-without-id", /is malformed: in entry \d+, "id" is missing$/],
  ["entry-without-source", /is malformed: in entry \d+ \("[\w-]+"\), "source" is missing$/],
  ["off-origin-source", /is malformed: in entry \d+ \("[\w-]+"\), "source" leaves the origin/],
  ["off-origin-icon", /is malformed: in entry \d+ \("[\w-]+"\), in "icon", "url" leaves the origin/],
  ["missing-latest", /^The entry descriptor of registry "r" is malformed: "latestVersion" is not among/],
  ["wrong-hash", /^The download from registry "r" does not have the SHA-256/],
])("the lie %s is found out", async (lie, message) => {
  const registry = await start({ lies: [lie] });
  const { reader } = openReading();
  const readAll = async (): Promise<void> => {
    const { definitions } = await reader.advertisement(registry.url, noSignal());
    const access = accessTo(registry.url);
    const { entries } = await reader.page(access, "definitions", definitions ?? "", { limit: 50 });
    const { versions, latestVersion } = await reader.descriptor(access, entries[0]?.source ?? "");
    const { downloadUrl, hash } = versions[latestVersion] ?? expect.unreachable("No latest version");
    await reader.artifact(access, downloadUrl, 10 * 1024 * 1024, hash);
  };
  expect(await failureOf(readAll(), "upstream_failed")).toMatch(message);
});
