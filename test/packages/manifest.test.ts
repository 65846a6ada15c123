/** What package.json may say: every rule with the inputs on both sides of it, and every problem named in one answer. */
import { describe, expect, it } from "vitest";
import { Failure } from "../../src/errors/failure.ts";
import { iconBytesMax, moduleTextCharactersMax, packageManifestBytesMax } from "../../src/limits.ts";
import { moduleIdProblem, readManifest } from "../../src/packages/manifest.ts";
import { manifest, troupe } from "./modules.ts";
import { serverVersion } from "./stage.ts";

const files = new Map([
  ["package.json", { bytes: 300 }],
  ["index.js", { bytes: 10 }],
  ["lib/module.ts", { bytes: 10 }],
  ["icon.png", { bytes: iconBytesMax }],
  ["large.png", { bytes: iconBytesMax + 1 }],
]);

function read(text: string | Buffer, version = serverVersion) {
  return readManifest(Buffer.from(text), files, version);
}

function refusalOf(text: string | Buffer, version?: string): Failure {
  try {
    read(text, version);
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("It was not refused");
}

describe("a manifest", () => {
  it("tells what the module is, and where its icon is", () => {
    expect(read(manifest({ icon: "./icon.png", main: "./lib/module.ts" }, "2.0.0-beta.1+build.7"))).toEqual({
      manifest: { ...troupe, main: "lib/module.ts", version: "2.0.0-beta.1+build.7", hasIcon: true },
      iconPath: "icon.png",
    });
  });

  it("without an icon says so", () => {
    expect(read(manifest())).toEqual({
      manifest: { ...troupe, version: "1.0.0", hasIcon: false },
      iconPath: undefined,
    });
  });

  it("may have members that are not known, and a byte order mark", () => {
    expect(read(`\uFEFF${manifest({ screenshots: ["a.png"] })}`).manifest).not.toHaveProperty("screenshots");
  });

  it("with many problems is refused with all of them at once", () => {
    const failure = refusalOf(
      JSON.stringify({ version: "1", troupe: { id: "7", type: "tool", engines: "x y z", main: "../x" } }),
    );
    expect(failure.kind).toBe("invalid_request");
    expect(failure.details.fields?.map(({ field }) => field).sort()).toEqual([
      "troupe.description",
      "troupe.engines",
      "troupe.id",
      "troupe.main",
      "troupe.name",
      "troupe.type",
      "version",
    ]);
    for (const { field } of failure.details.fields ?? []) expect(failure.message).toContain(`${field}: `);
  });
});

describe("a manifest is refused", () => {
  it.each([
    ["that is empty", "", /package.json is not valid JSON/],
    ["that is no JSON", "{ name: 'x' }", /package.json is not valid JSON/],
    ["that is not UTF-8", Buffer.from([0x7b, 0xff, 0x7d]), /package.json is not valid UTF-8/],
    ["that nests without end", "[".repeat(1_000), /package.json nests deeper than/],
    [
      "that reaches for a prototype",
      '{"version":"1.0.0","troupe":{"__proto__":{"id":"x"}}}',
      /forbidden key "__proto__"/,
    ],
    ["that is null", "null", /not that of a module/],
    ["that is a list", "[]", /not that of a module/],
    ["without the member troupe", '{"version":"1.0.0"}', /troupe: /],
    ["whose member troupe is a text", '{"version":"1.0.0","troupe":"x"}', /troupe: /],
    ["of 64 KiB and a byte", manifest().padEnd(packageManifestBytesMax + 1), /has 65537 bytes, more than the 65536/],
  ])("%s", (_title, text, says) => {
    const failure = refusalOf(text);
    expect(failure.message).toMatch(says);
    expect(failure.kind).toBe("invalid_request");
  });

  it.each<[member: string, value: unknown, says: RegExp]>([
    ["id", undefined, /troupe\.id: /],
    ["id", 7, /troupe\.id: /],
    ["id", "", /must be a letter/],
    ["name", "", /troupe\.name: must not be blank/],
    ["name", " \t", /troupe\.name: must not be blank/],
    ["name", "n".repeat(1_025), /troupe\.name: /],
    ["type", "Adapter", /troupe\.type: /],
    ["description", null, /troupe\.description: /],
    ["main", "", /troupe\.main: "" is empty/],
    ["main", ".", /troupe\.main: "" is empty/],
    ["main", "../index.js", /troupe\.main: "\.\.\/index\.js" leads outside/],
    ["main", "lib/../index.js", /leads outside/],
    ["main", "/etc/passwd", /is absolute/],
    ["main", "C:\\index.js", /has a backslash/],
    ["main", "lib", /there is no file "lib"/],
    ["main", "lib/", /has an empty part/],
    ["main", "index.mjs", /there is no file "index\.mjs"/],
    ["main", "INDEX.js", /there is no file "INDEX\.js"/],
    ["main", "index.js\0", /control character/],
    ["main", "file:///index.js", /has an empty part/],
    ["main", "constructor", /there is no file "constructor"/],
    ["icon", "../icon.png", /troupe\.icon: "\.\.\/icon\.png" leads outside/],
    ["icon", "none.png", /there is no file "none\.png"/],
    ["icon", "large.png", /has 262145 bytes, more than the 262144/],
    ["icon", null, /troupe\.icon: /],
  ])("for troupe.%s %j", (member, value, says) => {
    expect(refusalOf(manifest({ [member]: value })).message).toMatch(says);
  });

  it("whose description is too long even for package.json", () => {
    const failure = refusalOf(manifest({ description: "d".repeat(moduleTextCharactersMax + 1) }));
    expect(failure.message).toMatch(/package\.json has \d+ bytes/);
  });

  it.each([
    "1",
    "1.0",
    "v1.0.0",
    "=1.0.0",
    " 1.0.0",
    "1.0.0 ",
    "1.0.0-",
    "1.0.0-01",
    "01.0.0",
    "latest",
    "",
    1,
    null,
    undefined,
    "1.0.9007199254740992",
  ])("for version %j", (version) => {
    const { version: _, ...rest } = JSON.parse(manifest());
    expect(refusalOf(JSON.stringify({ ...rest, version })).message).toMatch(/ version: /);
  });
});

describe("an id", () => {
  it.each(["a", "_", "$", "csv-table", "A9_$-", "con", "node_modules", "a".repeat(128)])("may be %j", (id) => {
    expect(moduleIdProblem(id)).toBeUndefined();
  });

  it.each(["", "-a", "9a", ".", "..", "a/b", "a\\b", "a.b", "a b", "ä", "a\n", "a\0", "../a", "@a", "a".repeat(129)])(
    "may not be %j",
    (id) => {
      expect(moduleIdProblem(id)).toMatch(/^must /);
    },
  );

  it.each(Object.getOwnPropertyNames(Object.prototype))("may not be %j, which every object has", (id) => {
    expect(moduleIdProblem(id)).toMatch(/^must /);
  });
});

describe("the range of server versions", () => {
  it.each([
    ["1.4.2", "*"],
    ["1.4.2", "^1.0.0"],
    ["1.4.2", ">=0.1.0 <2"],
    ["1.4.2", "1.x || 3.x"],
    ["1.4.2", " 1.4.2 "],
    ["2.0.0-beta.1", ">=1.0.0"],
    ["2.0.0-beta.1", "^2.0.0-beta.0"],
  ])("lets server %s run a module for %j", (version, engines) => {
    expect(read(manifest({ engines }), version).manifest.engines).toBe(engines);
  });

  it.each([
    ["1.4.2", ">=2"],
    ["1.4.2", "~1.3"],
    ["1.4.2", "1.4.3"],
    ["2.0.0-beta.1", "^2.0.0"],
    ["2.0.0-beta.1", "^1.0.0"],
  ])("keeps server %s from a module for %j, naming both", (version, engines) => {
    const failure = refusalOf(manifest({ engines }), version);
    expect(failure.kind).toBe("invalid_request");
    expect(failure.message).toBe(
      `The module runs in Troupe "${engines}" (troupe.engines), and this is version "${version}"`,
    );
  });

  it.each(["", "  ", "latest", ">= x.y", "1.2.3.4", 1, null, undefined, ">=1 ".repeat(65)])(
    "is refused as %j",
    (engines) => {
      expect(refusalOf(manifest({ engines })).message).toMatch(/troupe\.engines: /);
    },
  );
});
