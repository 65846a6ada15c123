import { expect, test } from "vitest";
import { isFailure } from "../../src/errors/failure.ts";
import { readDescriptor } from "../../src/registries/descriptors.ts";
import { bytes } from "./fixtures.ts";

const source = "https://reg.test/e/pets/descriptor.json";
const what = 'The entry descriptor of registry "r"';
const read = (document: unknown) => readDescriptor(bytes(document), source, what);
const one = (version: object) => ({ latestVersion: "1.0.0", versions: { "1.0.0": { downloadUrl: "d", ...version } } });
const hash = "ab".repeat(32);

function faultOf(document: unknown): string {
  try {
    read(document);
  } catch (error) {
    if (!isFailure(error)) throw error;
    expect(error.kind).toBe("upstream_failed");
    expect(error.message.startsWith(`${what} is malformed: `)).toBe(true);
    return error.message.slice(`${what} is malformed: `.length);
  }
  return expect.unreachable("The descriptor was accepted");
}

test("every field of a version is read, absent ones are null", () => {
  const document = {
    latestVersion: " 2.0.0-rc.1+b7 ",
    versions: {
      "1.0.0": { downloadUrl: "pets.json" },
      "2.0.0-rc.1+b7": {
        downloadUrl: "https://cdn.test/pets.tgz?sig=a%2Fb",
        hash: hash.toUpperCase(),
        kind: "openapi@3.1",
        engines: ">=0.1",
        icon: { url: "/i.png", hash: "h" },
        id: "ignored",
      },
    },
    more: 1,
  };
  expect(read(document)).toEqual({
    latestVersion: "2.0.0-rc.1+b7",
    versions: {
      "1.0.0": {
        downloadUrl: "https://reg.test/e/pets/pets.json",
        hash: null,
        kind: null,
        engines: null,
        icon: null,
      },
      "2.0.0-rc.1+b7": {
        downloadUrl: "https://cdn.test/pets.tgz?sig=a%2Fb",
        hash,
        kind: "openapi@3.1",
        engines: ">=0.1",
        icon: { url: "https://reg.test/i.png", hash: "h" },
      },
    },
  });
});

test("what is no semantic version is left out, whatever it holds", () => {
  const names = ["1", "1.2", "1.2.3.4", "v1.2.3", "=1.2.3", " 1.2.3", "01.2.3", "latest", "constructor", ""];
  const versions = Object.fromEntries(names.map((name) => [name, null]));
  const described = read({ latestVersion: "1.0.0", versions: { ...versions, "1.0.0": { downloadUrl: "/d" } } });
  expect(Object.keys(described.versions)).toEqual(["1.0.0"]);
});

test("only described versions are found, not what every object inherits", () => {
  expect(read(one({})).versions.constructor).toBeUndefined();
});

test.each([
  [{ troupe: "^1.0.0", node: ">=20" }, "^1.0.0"],
  [{ node: ">=20" }, null],
])("engines %j give %j", (engines, expected) => {
  expect(read(one({ engines })).versions["1.0.0"]?.engines).toBe(expected);
});

test.each([
  [{ latestVersion: "1.0.0" }, '"versions" is missing'],
  [{ latestVersion: "1.0.0", versions: [] }, '"versions" is not an object'],
  [{ ...one({}), latestVersion: undefined }, '"latestVersion" is missing'],
  [{ ...one({}), latestVersion: 1 }, '"latestVersion" is not a string'],
  [{ ...one({}), latestVersion: "1.0.1" }, '"latestVersion" is not among its valid versions'],
  [{ ...one({}), latestVersion: "constructor" }, '"latestVersion" is not among its valid versions'],
  [{ latestVersion: "v1", versions: { v1: { downloadUrl: "/d" } } }, '"latestVersion" is not among its valid versions'],
  [{ latestVersion: "1.0.0", versions: { "1.0.0": "/d" } }, 'in version "1.0.0", there is no object'],
  [one({ downloadUrl: undefined }), 'in version "1.0.0", "downloadUrl" is missing'],
  [one({ downloadUrl: "ftp://reg.test/d" }), 'in version "1.0.0", "downloadUrl" is neither an http nor an https URL'],
  [one({ downloadUrl: "https://u:p@cdn.test/d" }), 'in version "1.0.0", "downloadUrl" holds a user name or password'],
  [one({ hash: "abc" }), 'in version "1.0.0", "hash" is not a SHA-256 in hexadecimal'],
  [one({ hash: 7 }), 'in version "1.0.0", "hash" is not a string'],
  [one({ kind: " " }), 'in version "1.0.0", "kind" is blank'],
  [one({ engines: 7 }), 'in version "1.0.0", "engines" is neither a range nor an object of ranges'],
  [one({ engines: { troupe: 7 } }), 'in version "1.0.0", "engines" is neither a range nor an object of ranges'],
  [
    one({ icon: { url: "https://evil.test/i", hash: "h" } }),
    'in version "1.0.0", in "icon", "url" leaves the origin "https://reg.test"',
  ],
])("%j is refused", (document, fault) => {
  expect(faultOf(document)).toBe(fault);
});
