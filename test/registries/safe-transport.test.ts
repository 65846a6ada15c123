/** The question asked before credentials are stored; every "no" is the caller's to mend and begins alike. */
import { describe, expect, test } from "vitest";
import { failureOf } from "../egress/fixtures.ts";
import { noSignal, openReading, type Setting } from "./fixtures.ts";

const names = {
  "loop.test": ["127.0.0.1", "::1"],
  "mixed.test": ["127.0.0.1", "10.77.0.5"],
  "lan.test": ["10.77.0.5"],
  "public.test": ["93.184.216.34"],
  "127.0.0.1.evil.test": ["10.77.0.5"],
  "localhost.evil.test": ["93.184.216.34"],
  "empty.test": [],
};
const lan = ["10.77.0.0/24"];
const ask = (url: string, setting: Setting = {}) =>
  openReading({ names, ...setting }).reader.requireSafeTransport(url, noSignal());

describe("safe are", () => {
  test.each([
    ["https to a public name", "https://public.test/api"],
    ["https to loopback", "https://loop.test"],
    ["https to a name that leads nowhere yet", "https://unknown.test/token"],
    ["http to loopback by name", "http://loop.test:8080"],
    ["http to loopback by address", "http://127.0.0.1:8080/x"],
    ["http to loopback v6", "http://[::1]/"],
    ["http to the last loopback address", "http://127.255.255.254"],
    ["http to loopback as one number", "http://2130706433"],
    ["http to loopback in octal", "http://0177.0.0.1"],
    ["http to loopback in hexadecimal", "http://0x7f.1"],
    ["http to loopback abbreviated", "http://127.1"],
  ])("%s", async (_name, url) => {
    await expect(ask(url)).resolves.toBeUndefined();
  });

  test("http to listed addresses, in any spelling, if the server may connect to them", async () => {
    for (const url of [
      "http://lan.test",
      "http://10.77.0.5",
      "http://0x0a4d0005",
      "http://10.77.5",
      "http://mixed.test",
    ])
      await expect(ask(url, { insecureCidrs: lan, allowedCidrs: lan })).resolves.toBeUndefined();
  });
});

describe("refused are", () => {
  test.each([
    ["http to a public name", "http://public.test:81/api"],
    ["http to a private address", "http://10.77.0.5"],
    ["http to a private address as one number", "http://0x0a4d0005"],
    ["http to a name that looks like loopback", "http://127.0.0.1.evil.test"],
    ["http to a name that begins like localhost", "http://localhost.evil.test"],
    ["http to a name of which only one address is loopback", "http://mixed.test"],
    ["http to a name that leads nowhere", "http://unknown.test"],
    ["http to a name without addresses", "http://empty.test"],
  ])("%s, also where the server may connect to the address", async (_name, url) => {
    const message = `Registry authentication requires https; credentials are not sent over plaintext http to "${new URL(url).host}"`;
    for (const allowedCidrs of [[], lan]) expect(await failureOf(ask(url, { allowedCidrs }), "refused")).toBe(message);
  });

  test.each(["ftp://loop.test/", "mailto:a@loop.test", "loop.test", "/token", ""])("%j", async (url) => {
    expect(await failureOf(ask(url), "refused")).toMatch(/^Registry authentication requires https/);
  });

  test.each(["https://lan.test/", "https://10.77.0.5/", "https://169.254.169.254/", "https://mixed.test/"])(
    "%s: the server may not connect there",
    async (url) => {
      expect(await failureOf(ask(url), "refused")).toMatch(/^Cannot reach "[^"]+": .* address/);
      if (!url.includes("169")) await expect(ask(url, { allowedCidrs: lan })).resolves.toBeUndefined();
    },
  );

  test("a plaintext exemption does not open the way to an address the server may not connect to", async () => {
    await failureOf(ask("http://lan.test", { insecureCidrs: lan }), "refused");
  });
});

test("a malformed entry of the setting stops the start", () => {
  expect(() => openReading({ insecureCidrs: ["10.77.0.0/33"] })).toThrow(
    'SERVICE_REGISTRY_AUTH_INSECURE_CIDRS has the entry "10.77.0.0/33"',
  );
});
