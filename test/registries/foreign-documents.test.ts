/** Whatever JSON a registry or token endpoint makes up, the outcome is a checked value or a 502 in words: no crash, no third thing. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { isFailure } from "../../src/errors/failure.ts";
import { readDescriptor } from "../../src/registries/descriptors.ts";
import { readPage } from "../../src/registries/pages.ts";
import { readToken } from "../../src/registries/token-exchange.ts";
import { readWellKnown } from "../../src/registries/well-known.ts";
import { bytes } from "./fixtures.ts";

const url = "https://reg.test/.well-known/registry.json";
const icon = { url: "/i.png", hash: "h" };

const documents: Readonly<Record<string, { readonly good: object; readonly read: (body: Uint8Array) => unknown }>> = {
  "well-known document": {
    good: {
      id: "r",
      definitions: { v1: "/d" },
      modules: { v1: "m" },
      auth: {
        type: "oauth2",
        grantType: "client_credentials",
        tokenEndpoint: "https://idp.test/",
        scopes: [{ id: "a" }],
      },
    },
    read: (body) => readWellKnown(body, new URL(url)),
  },
  page: {
    good: { definitions: [{ id: "a", source: "/e", name: "A", kind: "k", icon }], nextCursor: "c" },
    read: (body) => readPage(body, "definitions", url, "The page"),
  },
  descriptor: {
    good: {
      latestVersion: "1.0.0",
      versions: { "1.0.0": { downloadUrl: "/d", hash: "ab".repeat(32), engines: "*", icon } },
    },
    read: (body) => readDescriptor(body, url, "The descriptor"),
  },
  "token answer": {
    good: { access_token: "t", expires_in: 60, refresh_token: "r" },
    read: readToken,
  },
};

/** The good document with the value at one place replaced. */
function replaced(value: unknown, place: number, by: unknown): unknown {
  let seen = 0;
  const walk = (node: unknown): unknown => {
    seen += 1;
    if (seen === place) return by;
    if (typeof node !== "object" || node === null) return node;
    if (Array.isArray(node)) return node.map(walk);
    return Object.fromEntries(Object.entries(node).map(([key, member]) => [key, walk(member)]));
  };
  return walk(value);
}

test.each(Object.entries(documents))("a %s with anything in any place", (_name, { good, read }) => {
  read(bytes(good));
  let refused = 0;
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 20 }), fc.jsonValue(), (place, by) => {
      const before = JSON.stringify(Object.getOwnPropertyNames(Object.prototype));
      try {
        read(bytes(JSON.stringify(replaced(good, place, by))));
      } catch (error) {
        if (!isFailure(error)) throw error;
        refused += 1;
        expect(error.kind).toBe("upstream_failed");
        expect(error.message.length).toBeLessThan(400);
        expect(error.message).toMatch(/^The [\x20-\x7e…]+$/);
      }
      expect(JSON.stringify(Object.getOwnPropertyNames(Object.prototype))).toBe(before);
    }),
    { numRuns: 500 },
  );
  expect(refused).toBeGreaterThan(0);
});

test.each(Object.entries(documents))("a %s of arbitrary bytes", (_name, { read }) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (body) => {
      try {
        read(body);
      } catch (error) {
        if (!isFailure(error) || error.kind !== "upstream_failed") throw error;
      }
    }),
  );
});
