import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addressRules, judgeAddress } from "../../src/egress/address-judge.ts";
import { isFailure } from "../../src/errors/failure.ts";

const rules = (allowedCidrs: readonly string[] = [], blockedCidrs: readonly string[] = []) =>
  addressRules({ allowedCidrs, blockedCidrs });
const allowed = (address: string, given = rules()): boolean => judgeAddress(address, given).allowed;

const publicAddresses = [
  "8.8.8.8",
  "1.1.1.1",
  "93.184.216.34",
  "172.15.255.255",
  "172.32.0.0",
  "11.0.0.0",
  "9.255.255.255",
  "100.63.255.255",
  "100.128.0.0",
  "169.253.255.255",
  "169.255.0.0",
  "223.255.255.255",
  "2606:4700::1",
  "2a00:1450::5",
  "::ffff:8.8.8.8",
  "64:ff9b::8.8.8.8",
  "2002:808:808::1",
];

const loopback = ["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1"];

const refused = [
  ...[
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.0",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "169.254.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
  ],
  ...[
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.31.196.1",
    "192.52.193.1",
    "192.88.99.1",
    "192.175.48.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "168.63.129.16",
  ],
  ...[
    "::",
    "::2",
    "::127.0.0.1",
    "::8.8.8.8",
    "::a00:1",
    "fc00::1",
    "fd00:ec2::254",
    "fdff::1",
    "fe80::1",
    "fe80::1%eth0",
    "febf::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "100::1",
    "2001::1",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "8000::1",
    "2620:4f:8000::1",
  ],
  ...[
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "::ffff:0.0.0.0",
    "::ffff:168.63.129.16",
    "::ffff:0:10.0.0.1",
    "::ffff:0:8.8.8.8",
  ],
  ...[
    "64:ff9b::10.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::127.0.0.1",
    "64:ff9b:1::8.8.8.8",
    "2002:a00:1::",
    "2002:7f00:1::1",
    "2002:a9fe:a9fe::1",
    "2002:c0a8:1::",
  ],
];

describe("by default", () => {
  test.each(publicAddresses)("public %s is allowed and is no loopback", (address) => {
    expect(judgeAddress(address, rules())).toEqual({ allowed: true, loopback: false });
  });

  test.each(loopback)("loopback %s is allowed, and refused by none", (address) => {
    expect(judgeAddress(address, rules())).toEqual({ allowed: true, loopback: true });
    expect(allowed(address, rules(["none"]))).toBe(false);
    expect(allowed(address, rules([" NONE ", "127.0.0.0/8", "::1/128"]))).toBe(true);
  });

  test.each(refused)("%s is refused with a reason", (address) => {
    const verdict = judgeAddress(address, rules());
    expect(verdict).toMatchObject({
      allowed: false,
      reason: expect.stringMatching(/^an? .*, which SERVICE_EGRESS_ALLOWED_CIDRS does not list$/),
    });
  });

  test.each([
    "",
    "localhost",
    "127.1",
    "0x7f.1",
    "0177.0.0.1",
    "2130706433",
    "1.2.3",
    "1.2.3.4.5",
    "1.2.3.4/8",
    "[::1]",
    ":::1",
    "::1::",
    "256.0.0.1",
  ])("%j is no address", (text) => {
    expect(judgeAddress(text, rules())).toEqual({ allowed: false, reason: "no address" });
  });

  test("any IPv4 address and its mapped form get the same verdict", () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        expect(judgeAddress(`::ffff:${address}`, rules())).toEqual(judgeAddress(address, rules()));
      }),
      { numRuns: 3_000 },
    );
  });
});

describe("settings", () => {
  test("a listed range is allowed in each form that carries it, its neighbours are not", () => {
    const given = rules(["10.77.0.0/16", "fd00::/8"]);
    for (const address of [
      "10.77.0.5",
      "::ffff:10.77.0.5",
      "64:ff9b::10.77.0.5",
      "2002:a4d:5::1",
      "fd12::1",
      "8.8.8.8",
      "127.0.0.1",
    ])
      expect(allowed(address, given)).toBe(true);
    for (const address of ["10.78.0.0", "10.76.255.255", "::ffff:10.78.0.0", "fc00::1"])
      expect(allowed(address, given)).toBe(false);
  });

  test("blocked wins over allowed, loopback and public, in each form", () => {
    const given = rules(["10.0.0.0/8", "127.0.0.0/8"], ["10.1.0.0/16", "127.0.0.2", "8.8.8.0/24", "2606::/16"]);
    for (const address of [
      "10.1.2.3",
      "::ffff:10.1.2.3",
      "127.0.0.2",
      "8.8.8.8",
      "64:ff9b::8.8.8.8",
      "2002:808:808::",
      "2606:4700::1",
    ]) {
      expect(judgeAddress(address, given)).toEqual({
        allowed: false,
        reason: "listed in SERVICE_EGRESS_BLOCKED_CIDRS",
      });
    }
    for (const address of ["10.2.0.0", "127.0.0.1", "8.8.9.1"]) expect(allowed(address, given)).toBe(true);
  });

  test("a mapped range is the IPv4 range, and a mapped address belongs to IPv4 ranges only", () => {
    for (const address of ["10.77.0.5", "::ffff:10.77.0.5", "64:ff9b::10.77.0.5"]) {
      expect(allowed(address, rules(["::ffff:10.77.0.0/112"]))).toBe(true);
      expect(allowed(address, rules(["10.0.0.0/8"], ["::ffff:10.77.0.0/112"]))).toBe(false);
    }
    expect(allowed("::ffff:10.77.0.5", rules(["::/0"]))).toBe(false);
  });

  test("a range of one family says nothing about the other", () => {
    expect(allowed("fd00::1", rules(["0.0.0.0/0"]))).toBe(false);
    expect(allowed("10.0.0.1", rules(["0.0.0.0/0"]))).toBe(true);
    expect(allowed("10.0.0.1", rules(["::/0"]))).toBe(false);
    expect(allowed("fd00::1", rules(["::/0"]))).toBe(true);
  });

  test.each([
    "10.77.0.0/33",
    "10.0.0.0/-1",
    "10.0.0.0/8.5",
    "10.0.0.0/",
    "x/8",
    "10.77.0.9/24",
    "10.0.0.0/08",
    "10.0.0.0/8/8",
    "::/129",
    "fd00::1/8",
    "127.1/8",
    "10.0.0.0/ 8",
    "/8",
    "fe80::1%eth0",
    "10.0.0.0/1e1",
  ])("%j stops the start, naming entry and setting", (entry) => {
    for (const give of [() => rules([entry]), () => rules([], [entry])]) {
      try {
        give();
        expect.unreachable();
      } catch (error) {
        if (!isFailure(error)) throw error;
        expect(error.kind).toBe("refused");
        expect(error.message).toMatch(/^SERVICE_EGRESS_(ALLOWED|BLOCKED)_CIDRS has the entry "/);
        expect(error.message).toContain(`"${entry}"`);
      }
    }
  });

  test("blank entries are skipped, spaces trimmed, a single address is a range of one", () => {
    expect(rules([" 10.77.0.0/24 ", "", " "]).allowed).toHaveLength(1);
    expect(allowed("10.77.0.5", rules(["10.77.0.5"]))).toBe(true);
    expect(allowed("10.77.0.6", rules(["10.77.0.5"]))).toBe(false);
  });

  test("a range contains exactly the addresses that share its bits", () => {
    const number = fc.nat({ max: 0xffffffff });
    const spelled = (value: number): string => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join(".");
    fc.assert(
      fc.property(number, number, fc.integer({ min: 0, max: 32 }), (network, address, bits) => {
        const mask = bits === 0 ? 0 : (0xffffffff << (32 - bits)) >>> 0;
        const blocked = rules([], [`${spelled((network & mask) >>> 0)}/${bits}`]);
        const verdict = judgeAddress(spelled(address), blocked);
        const inside = (network & mask) >>> 0 === (address & mask) >>> 0;
        expect(!verdict.allowed && verdict.reason.startsWith("listed")).toBe(inside);
      }),
      { numRuns: 1_000 },
    );
  });
});

test.each([
  "http://127.1/",
  "http://0x7f.1/",
  "http://2130706433/",
  "http://0177.0.0.1/",
  "http://127.0.0.1./",
  "http://１２７.0.0.1/",
])("%s is loopback once it is a URL", (text) => {
  expect(new URL(text).hostname).toBe("127.0.0.1");
});

test.each(["http://0xa9fea9fe/", "http://2852039166/", "http://169.254.43518/", "http://[::ffff:169.254.169.254]/"])(
  "%s is a metadata address once it is a URL",
  (text) => {
    expect(allowed(new URL(text).hostname.replace(/^\[|\]$/g, ""))).toBe(false);
  },
);
