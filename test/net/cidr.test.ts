/** One reading of address ranges, and every setting that holds some reads them so. */
import { describe, expect, test } from "vitest";
import { ConfigError, parseSettings } from "../../src/config.ts";
import { parseAddress } from "../../src/net/address.ts";
import { cidrsContain, readCidr } from "../../src/net/cidr.ts";

const good = [
  ["10.0.0.0/8", "10.0.0.0", 8],
  ["10.77.0.5", "10.77.0.5", 32],
  ["0.0.0.0/0", "0.0.0.0", 0],
  ["fd00::/8", "fd00::", 8],
  ["FD00:0:0::/8", "fd00::", 8],
  ["::1", "::1", 128],
  ["::/0", "::", 0],
  ["::10.0.0.1", "::a00:1", 128],
  ["::ffff:10.77.0.0/120", "10.77.0.0", 24],
  ["::ffff:a4d:0/112", "10.77.0.0", 16],
  ["::ffff:10.77.0.5", "10.77.0.5", 32],
  ["::ffff:0:0/96", "0.0.0.0", 0],
] as const;

const noRange = "which is no address range";
const noLength = "whose prefix length is not a number";
const beyond = "which has bits beyond its prefix; the range is";
const bad = [
  ["10.0.0.0/33", noLength],
  ["10.0.0.0/-1", noLength],
  ["10.0.0.0/+8", noLength],
  ["10.0.0.0/8.5", noLength],
  ["10.0.0.0/1e1", noLength],
  ["10.0.0.0/08", noLength],
  ["10.0.0.0/", noLength],
  ["10.0.0.0/ 8", noLength],
  ["fd00::/129", noLength],
  ["::ffff:10.0.0.0/95", noLength],
  ["::ffff:10.0.0.0/8", noLength],
  ["10.77.0.9/24", `${beyond} "10.77.0.0/24"`],
  ["fd00::1/8", `${beyond} "fd00::/8"`],
  ["::ffff:10.77.0.9/120", `${beyond} "10.77.0.0/24"`],
  ["10.0.0.0/8/8", noRange],
  ["10.77/16", noRange],
  ["127.1", noRange],
  ["127.1/8", noRange],
  ["010.0.0.0/8", noRange],
  ["0x0a000000/8", noRange],
  ["167772160/8", noRange],
  ["256.0.0.1", noRange],
  ["[::1]", noRange],
  ["fe80::%eth0/10", noRange],
  ["fe80::1%eth0", noRange],
  ["example.test", noRange],
  ["/8", noRange],
  ["*", noRange],
] as const;

test.each(good)("%j is the range from %s with %i bits", (entry, first, bits) => {
  const read = readCidr(entry);
  if (typeof read === "string") throw new Error(read);
  expect([read.network.toString(), read.bits]).toEqual([first, bits]);
});

test.each(bad)("%j is refused: %s", (entry, reason) => {
  const read = readCidr(entry);
  expect(read).toContain(`has the entry "${entry}", ${reason}`);
});

test.each([
  ["10.0.0.0/8", "10.1.2.3", true],
  ["10.0.0.0/8", "::ffff:10.1.2.3", true],
  ["::ffff:10.0.0.0/104", "10.1.2.3", true],
  ["10.0.0.0/8", "::10.1.2.3", false],
  ["::/0", "::ffff:10.1.2.3", false],
  ["fe80::/10", "fe80::1%eth0", true],
])("%s holds %s: %s", (entry, text, isInside) => {
  const read = readCidr(entry);
  const address = parseAddress(text);
  if (typeof read === "string" || address === undefined) throw new Error("The case is none");
  expect(cidrsContain([read], address)).toBe(isInside);
});

describe.each([
  "SERVICE_EGRESS_ALLOWED_CIDRS",
  "SERVICE_EGRESS_BLOCKED_CIDRS",
  "SERVICE_REGISTRY_AUTH_INSECURE_CIDRS",
  "SERVICE_TRUSTED_PROXIES",
] as const)("%s", (setting) => {
  test("takes every good entry", () => {
    const entries = good.map(([entry]) => entry);
    expect(parseSettings({ [setting]: entries.join(", ") })[setting]).toEqual(entries);
  });

  test.each(bad)("lists %j among the problems", (entry) => {
    try {
      parseSettings({ [setting]: `10.0.0.0/8, ${entry}`, SERVICE_LOG_LEVEL: "loud" });
      expect.unreachable("The entry was accepted");
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      expect(error.problems.map(({ name }) => name).sort()).toEqual([setting, "SERVICE_LOG_LEVEL"].sort());
      expect(error.message).toContain(`${setting}: has the entry "${entry}", `);
    }
  });
});
