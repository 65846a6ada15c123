import { format, inspect } from "node:util";
import { expect, test } from "vitest";
import { Secret, secretMask } from "../../src/secrets/secret.ts";

const secret = new Secret("canary-4711");

test.each<[string, () => string]>([
  ["toString", () => secret.toString()],
  ["String", () => String(secret)],
  ["a template", () => `${secret}`],
  ["concatenation", () => `token ${secret}`],
  ["JSON", () => JSON.stringify({ secret, list: [secret] })],
  ["inspect", () => inspect({ secret }, { depth: 9, showHidden: true, getters: true })],
  ["format %o", () => format("%s %o %O %j", secret, secret, secret, secret)],
  ["an error message", () => new Error(`Cannot use ${secret}`).message],
  ["its entries", () => JSON.stringify([Object.entries(secret), Object.getOwnPropertyNames(secret), { ...secret }])],
  ["a clone", () => inspect(structuredClone(secret))],
])("%s does not show it", (_name, show) => {
  expect(show()).not.toContain("canary");
});

test("only reveal gives it", () => {
  expect(secret.reveal()).toBe("canary-4711");
  expect(`${secret}`).toBe(secretMask);
});
