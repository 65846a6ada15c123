import { describe, expect, test } from "vitest";
import { isFailure } from "../../src/errors/failure.ts";
import { plaintextExemption } from "../../src/registries/plaintext-exemption.ts";

describe("without entries", () => {
  const exemption = plaintextExemption([]);

  test.each(["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1", "0:0:0:0:0:0:0:1"])(
    "%s is exempt: it is loopback",
    (address) => expect(exemption.covers(address)).toBe(true),
  );

  test.each([
    "126.255.255.255",
    "128.0.0.1",
    "0.0.0.0",
    "10.77.0.5",
    "::",
    "::2",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "1::1",
    "::1:0:0:0:1",
    "localhost",
    "127.1",
    "2130706433",
    "127.0.0.1.evil.test",
    "",
  ])("%s is not exempt", (address) => expect(exemption.covers(address)).toBe(false));
});

test.each([
  ["10.77.0.0/24", "10.77.0.5", true],
  ["10.77.0.0/24", "10.77.1.5", false],
  ["10.77.0.0/24", "::ffff:10.77.0.5", true],
  ["10.77.0.0/24", "64:ff9b::a4d:5", false],
  ["10.77.0.0/24", "::10.77.0.5", false],
  ["10.77.0.0/23", "10.77.1.255", true],
  ["10.77.0.5", "10.77.0.5", true],
  ["10.77.0.5", "10.77.0.6", false],
  ["0.0.0.0/0", "8.8.8.8", true],
  ["0.0.0.0/0", "fd00::1", false],
  ["::/0", "fd00::1", true],
  ["::/0", "8.8.8.8", false],
  ["::/0", "::ffff:8.8.8.8", false],
  ["fd00::/8", "fd12::1", true],
  ["fd00::/8", "fe00::1", false],
  ["fd00::/9", "fd80::1", false],
  ["fe80::/10", "fe80::1%eth0", true],
  ["fd00::1", "fd00::2", false],
  ["::ffff:10.77.0.0/120", "10.77.0.5", true],
  ["::ffff:10.77.0.0/120", "10.77.1.5", false],
  [" 10.77.0.0/24 ", "10.77.0.5", true],
  ["", "10.77.0.5", false],
])("the entry %j and the address %s: %s", (entry, address, covered) => {
  expect(plaintextExemption([entry]).covers(address)).toBe(covered);
});

test.each([
  "10.77.0.0/33",
  "10.0.0.0/-1",
  "10.0.0.0/8.5",
  "10.0.0.0/",
  "10.0.0.0/08",
  "10.0.0.0/8/8",
  "x/8",
  "10.77.0.9/24",
  "10.77/16",
  "010.0.0.0/8",
  "0x0a000000/8",
  "fd00::1/8",
  "fd00::/129",
  "fe80::%eth0/10",
  "::ffff:10.0.0.0/95",
  "::ffff:10.0.0.0/90",
  "none",
  "*",
])("the entry %j stops the start by name", (entry) => {
  try {
    plaintextExemption(["10.77.0.0/24", entry]);
  } catch (error) {
    if (!isFailure(error)) throw error;
    expect(error.kind).toBe("refused");
    expect(error.message).toContain(`SERVICE_REGISTRY_AUTH_INSECURE_CIDRS has the entry "${entry}", `);
    return;
  }
  expect.unreachable("The entry was accepted");
});
