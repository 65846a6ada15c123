/** What a test puts on offer while the fixture runs: releases, untrue hashes, broken packages, hundreds of modules. */
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import type { DevRegistry } from "../../src/dev-registry/dev-registry.ts";
import { moduleArchive } from "../../src/dev-registry/offers/modules.ts";
import { brokenModuleSources, sampleModuleSource } from "../../src/dev-registry/offers/sample-modules.ts";
import { Recording, requestsKeptMax } from "../../src/dev-registry/recording.ts";
import { allEntries, descriptorOf, type Entry, pageOf, sha256, startRegistry } from "./client.ts";

const about = { id: "echo", name: "Echo", type: "adapter", description: "Says what it was asked" } as const;

function archive(version: string, id: string = about.id): Buffer {
  return moduleArchive({ ...about, id, version, source: sampleModuleSource("adapter", version) });
}

async function entryOf(registry: DevRegistry, kind: "definitions" | "modules", id: string): Promise<Entry> {
  const entry = (await allEntries(registry, kind)).find((one) => one.id === id);
  return entry ?? expect.unreachable(`"${id}" is not on offer`);
}

describe("publishing", () => {
  test("offers a module that was not there, with everything an entry has", async () => {
    const registry = await startRegistry({ basePath: "/r" });
    registry.publish("modules", { ...about, version: "1.0.0", content: archive("1.0.0"), engines: "^0.1.0" });
    const entry = await entryOf(registry, "modules", "echo");
    expect(entry).toMatchObject({ name: "Echo", type: "adapter", description: "Says what it was asked" });
    const { latestVersion, versions } = await descriptorOf(registry, entry);
    expect(latestVersion).toBe("1.0.0");
    const described = versions["1.0.0"];
    expect(described).toMatchObject({ hash: sha256(archive("1.0.0")), engines: "^0.1.0" });
    const response = await fetch(described?.downloadUrl ?? "");
    expect(Buffer.from(await response.arrayBuffer())).toEqual(archive("1.0.0"));
    expect((await fetch(new URL(entry.icon.url, registry.origin))).status).toBe(200);
  });

  test("adds releases to what is there, shipped or published, and moves the latest version", async () => {
    const registry = await startRegistry();
    registry.publish("modules", { id: "csv-table", version: "1.2.0", content: archive("1.2.0") });
    registry.publish("modules", { id: "csv-table", version: "3.0.0-rc.1", content: archive("3.0.0-rc.1") });
    registry.publish("modules", { id: "csv-table", version: "1.0.1", content: archive("1.0.1"), isLatest: false });
    const entry = await entryOf(registry, "modules", "csv-table");
    expect(entry).toMatchObject({ name: "CSV tables", type: "adapter" });
    const { latestVersion, versions } = await descriptorOf(registry, entry);
    expect(latestVersion).toBe("1.2.0");
    expect(Object.keys(versions)).toEqual(["1.0.0", "1.1.0", "2.0.0-beta.1", "1.2.0", "3.0.0-rc.1", "1.0.1"]);
  });

  test("the same version again puts other bytes in its place", async () => {
    const registry = await startRegistry();
    registry.publish("modules", { id: "echo", version: "1.0.0", content: "first" });
    registry.publish("modules", { id: "echo", version: "1.0.0", content: "second" });
    const { versions } = await descriptorOf(registry, await entryOf(registry, "modules", "echo"));
    expect(Object.keys(versions)).toEqual(["1.0.0"]);
    expect(await (await fetch(versions["1.0.0"]?.downloadUrl ?? "")).text()).toBe("second");
    expect(versions["1.0.0"]?.hash).toBe(sha256(Buffer.from("second")));
  });

  test("a hash can be another or missing, for one release only", async () => {
    const registry = await startRegistry();
    const publish = (version: string, hash?: string | null) =>
      registry.publish("modules", {
        id: "echo",
        version,
        content: archive(version),
        ...(hash === undefined ? {} : { hash }),
      });
    publish("1.0.0");
    publish("1.1.0", "f".repeat(64));
    publish("1.2.0", null);
    const { versions } = await descriptorOf(registry, await entryOf(registry, "modules", "echo"));
    expect(versions["1.0.0"]?.hash).toBe(sha256(archive("1.0.0")));
    expect(versions["1.1.0"]?.hash).toBe("f".repeat(64));
    expect(versions["1.2.0"]).not.toHaveProperty("hash");
  });

  test.each([
    ["openapi.json", "application/json", '{"openapi":"3.1.0"}'],
    ["openapi.yaml", "application/yaml", "openapi: 3.1.0\n"],
  ])("a definition is offered as %s", async (fileName, mediaType, content) => {
    const registry = await startRegistry();
    registry.publish("definitions", { id: "clock", version: "1.0.0", kind: "openapi@3.1.0", content });
    const entry = await entryOf(registry, "definitions", "clock");
    expect(entry).toMatchObject({ name: "clock", kind: "openapi@3.1.0" });
    const url = (await descriptorOf(registry, entry)).versions["1.0.0"]?.downloadUrl ?? "";
    expect(url.endsWith(`/clock/1.0.0/${fileName}`)).toBe(true);
    expect((await fetch(url)).headers.get("content-type")).toBe(mediaType);
  });

  test("one fixture leaves the others as they were", async () => {
    const [one, other] = [await startRegistry(), await startRegistry()];
    one.publish("modules", { id: "csv-table", version: "9.0.0", content: "x" });
    const { latestVersion } = await descriptorOf(other, await entryOf(other, "modules", "csv-table"));
    expect(latestVersion).toBe("1.1.0");
  });

  test.each([
    ["a/b", "1.0.0"],
    ["", "1.0.0"],
    ["a b", "1.0.0"],
    ["a", "1/0"],
    ["ä", "1.0.0"],
  ])("the id %j in version %j is refused: it cannot be in a path", async (id, version) => {
    const registry = await startRegistry();
    expect(() => registry.publish("modules", { id, version, content: "" })).toThrow("it cannot be part of a path");
  });

  test("broken modules are packages like others, each told by its name", async () => {
    const registry = await startRegistry();
    for (const [id, source] of Object.entries(brokenModuleSources)) {
      registry.publish("modules", {
        id,
        version: "1.0.0",
        content: moduleArchive({ ...about, id, version: "1.0.0", source }),
      });
    }
    const ids = (await allEntries(registry, "modules")).map(({ id }) => id);
    expect(ids).toEqual(["csv-table", ...Object.keys(brokenModuleSources)]);
  });
});

describe("withdrawing", () => {
  test("a release takes it out, and the latest version goes to the last that is left", async () => {
    const registry = await startRegistry();
    for (const version of ["1.0.0", "1.1.0"]) {
      registry.publish("modules", { id: "echo", version, content: archive(version) });
    }
    registry.withdraw("modules", "echo", "1.1.0");
    const { latestVersion, versions } = await descriptorOf(registry, await entryOf(registry, "modules", "echo"));
    expect([latestVersion, Object.keys(versions)]).toEqual(["1.0.0", ["1.0.0"]]);
  });

  test.each<[string, string | undefined]>([
    ["the only release", "1.0.0"],
    ["the whole offer", undefined],
  ])("%s takes the entry out", async (_, version) => {
    const registry = await startRegistry();
    registry.publish("modules", { id: "echo", version: "1.0.0", content: archive("1.0.0") });
    registry.withdraw("modules", "echo", version);
    expect((await fetch(`${registry.url}v1/modules/echo`)).status).toBe(404);
    expect(() => registry.withdraw("modules", "echo", version)).toThrow("it is not on offer");
  });
});

describe("hundreds of modules", () => {
  test("are published and updated in a moment, and each is found once", async () => {
    const registry = await startRegistry();
    const content = archive("1.0.0");
    for (const version of ["1.0.0", "1.1.0"]) {
      for (let number = 1; number <= 500; number += 1) {
        registry.publish("modules", { id: `many-${number}`, version, content });
      }
    }
    const ids = (await allEntries(registry, "modules", { query: "many-", limit: "200" })).map(({ id }) => id);
    expect(new Set(ids).size).toBe(500);
    expect(ids).toHaveLength(500);
  });

  test("of a sample's name stand for the sample", async () => {
    const registry = await startRegistry({ samples: 3 });
    registry.publish("modules", { id: "sample-2", version: "2.0.0", type: "environment", content: archive("2.0.0") });
    const ids = (await pageOf(registry, "modules")).entries.map(({ id }) => id);
    expect(ids).toEqual(["csv-table", "sample-2", "sample-1", "sample-3"]);
  });
});

describe("counting requests", () => {
  test("tells how often each path of a route was asked for since the requests were cleared", async () => {
    const registry = await startRegistry();
    const ask = (path: string) => fetch(`${registry.origin}${path}`).then((response) => response.arrayBuffer());
    await ask("/v1/modules/csv-table");
    registry.clearRequests();
    expect(registry.requests).toEqual([]);
    for (const path of ["/v1/modules/csv-table", "/v1/modules", "/v1/modules?query=x", "/v1/modules/nothing"])
      await ask(path);
    expect(registry.requestCounts()).toEqual({
      "/v1/modules/csv-table": 1,
      "/v1/modules": 2,
      "/v1/modules/nothing": 1,
    });
    expect(registry.requestCounts("descriptor")).toEqual({ "/v1/modules/csv-table": 1, "/v1/modules/nothing": 1 });
  });

  test("is refused when more have arrived than are kept, until they are cleared", async () => {
    const recording = new Recording();
    const ask = async () => {
      const request = Object.assign(Readable.from([]), { method: "GET", headers: {} }) as unknown as IncomingMessage;
      await recording.add(request, { route: "modules", path: "/v1/modules" }, new URLSearchParams());
    };
    for (let number = 0; number < requestsKeptMax; number += 1) await ask();
    expect(recording.countByPath("modules")).toEqual({ "/v1/modules": requestsKeptMax });
    await ask();
    expect(() => recording.countByPath("modules")).toThrow("Cannot count more than 10000 requests");
    recording.clear();
    expect(recording.countByPath("modules")).toEqual({});
  });
});
