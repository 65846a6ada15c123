/** Windows, rules and the addresses that requests count for; on a clock of our own. */
import { describe, expect, it } from "vitest";
import { Failure } from "../../src/errors/failure.ts";
import { clientAddresses } from "../../src/operations/client-address.ts";
import { FixedWindows } from "../../src/operations/fixed-windows.ts";
import { parseRateLimits, RateLimits } from "../../src/operations/rate-limits.ts";
import { ManualClock } from "../runtime/manual-clock.ts";

function limitsOf(text: string, clock = new ManualClock()) {
  const rules = parseRateLimits(text);
  if (rules === null || typeof rules === "string") throw new Error(`Not rules: ${text}`);
  return { clock, limits: new RateLimits(rules, clock) };
}

function refusal(attempt: () => unknown): Failure {
  try {
    attempt();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  return expect.unreachable("it was admitted");
}

describe("a window", () => {
  it("R-067 request 11 of 10 in 60 s, 20.4 s after the first, is told to wait 40 s; then it passes", async () => {
    const { clock, limits } = limitsOf("GET /things=10/60s");
    const route = limits.ofRoute("GET", "/things");
    for (let left = 9; left >= 0; left--) expect(route.admit("me").remaining).toBe(left);
    await clock.advance(20_400);
    const { kind, details } = refusal(() => route.admit("me"));
    expect(kind).toBe("rate_limit_exceeded");
    expect(details.exhaustion).toEqual({
      limit: 10,
      remaining: 0,
      resetAt: 1_700_000_060,
      retryAfterSeconds: 40,
      route: "GET /things",
    });
    await clock.advance(40_000);
    expect(route.admit("me").remaining).toBe(9);
  });

  it("1,000 refusals over 20 windows: wait and reset agree within a second, and after the wait a call passes", async () => {
    const { clock, limits } = limitsOf("GET /things=5/7s");
    const route = limits.ofRoute("GET", "/things");
    for (let window = 0; window < 20; window++) {
      for (let at = 0; at < 5; at++) route.admit("me");
      let wait = 0;
      for (let at = 0; at < 50; at++) {
        const { exhaustion } = refusal(() => route.admit("me")).details;
        const resetAt = exhaustion?.resetAt ?? 0;
        wait = exhaustion?.retryAfterSeconds ?? 0;
        expect(Math.abs(resetAt - (clock.now() / 1_000 + wait))).toBeLessThanOrEqual(1);
        await clock.advance(131);
      }
      await clock.advance(wait * 1_000);
    }
  });

  it("callers and routes count apart, HEAD as GET, and both spellings of a path together", () => {
    const { limits } = limitsOf("*=1/60s");
    limits.ofRoute("GET", "/things/{id}").admit("a");
    limits.ofRoute("GET", "/things/{id}").admit("b");
    limits.ofRoute("POST", "/things/{id}").admit("a");
    for (const path of ["/things/{id}", "/things/:id", "/things/{other}"]) {
      for (const method of ["GET", "HEAD"]) refusal(() => limits.ofRoute(method, path).admit("a"));
    }
  });

  it("holds no more callers than its bound, and forgets those whose windows end first", async () => {
    const clock = new ManualClock();
    const windows = new FixedWindows({ limit: 1, windowMs: 1_000 }, clock, 100);
    for (let at = 0; at < 10_000; at++) windows.count(`caller ${at}`);
    expect(windows.size).toBe(100);
    expect(windows.open("caller 0")).toBeUndefined();
    expect(windows.open("caller 9999")?.count).toBe(1);
    await clock.advance(1_000);
    windows.count("later");
    expect(windows.size).toBe(1);
  });

  it("a clock of the machine that jumps changes no wait", async () => {
    const clock = new ManualClock();
    let jump = 0;
    const jumping = {
      now: () => clock.now() + jump,
      monotonic: () => clock.monotonic(),
      after: clock.after.bind(clock),
    };
    const windows = new FixedWindows({ limit: 1, windowMs: 10_000 }, jumping, 10);
    windows.count("me");
    jump = 86_400_000;
    expect(windows.open("me")?.count).toBe(1);
    jump = -86_400_000;
    await clock.advance(10_000);
    expect(windows.open("me")).toBeUndefined();
  });
});

describe("rules", () => {
  it.each([
    ["POST", "/registries", 30],
    ["POST", "/registries/{id}/refresh", 30],
    ["POST", "/registries/{id}/auth", 10],
    ["POST", "/services", 30],
    ["POST", "/services/{serviceId}/update", 30],
    ["POST", "/modules", 30],
    ["POST", "/processes", 6_000],
    ["GET", "/processes/{id}", 6_000],
    ["GET", "/anything", 6_000],
  ])("%s %s may be used %i times a minute", (method, path, limit) => {
    expect(limitsOf("").limits.ofRoute(method, path).admit("me").limit).toBe(limit);
  });

  it("overrides go before the table, and * is for what neither names", () => {
    const { limits } = limitsOf("POST /services = 7/10s;\n *=9/1s; ");
    expect(limits.ofRoute("POST", "/services").admit("me").limit).toBe(7);
    expect(limits.ofRoute("POST", "/modules").admit("me").limit).toBe(30);
    expect(limits.ofRoute("GET", "/services").admit("me").limit).toBe(9);
    expect(limits.elsewhere.admit("me").limit).toBe(9);
  });

  it("an override of a route that is not there is found", () => {
    const { limits } = limitsOf("POST /procesess=1/1s; GET /things/{x}=1/1s; *=1/1s");
    expect(limits.unknownRoutes([{ method: "GET", path: "/things/{id}" }])).toEqual(["POST /procesess"]);
  });

  it.each([
    "6000/60s",
    "POST /processes=0/60s",
    "POST /processes=-1/60s",
    "POST /processes=1.5/60s",
    "POST /processes=600/60",
    "POST /processes=600/0s",
    "POST /processes=600",
    "/processes=600/60s",
    "post /processes=600/60s",
    "POST processes=600/60s",
    "OFF",
    "off; *=1/1s",
  ])("%j cannot be read, and the sentence says which part", (text) => {
    expect(parseRateLimits(text)).toMatch(/is not of the form/);
  });
});

describe("the address of a client", () => {
  const direct = clientAddresses([]);
  const proxied = clientAddresses(["10.0.0.0/8", "192.0.2.7", "2001:db8:1::/48"]);

  it.each<[string, ReturnType<typeof clientAddresses>, string | undefined, string | undefined, string]>([
    ["no header", direct, "192.0.2.1", undefined, "ip 192.0.2.1"],
    ["a header nobody trusts", direct, "192.0.2.1", "198.51.100.1", "ip 192.0.2.1"],
    ["a header from somebody else than the proxy", proxied, "192.0.2.1", "198.51.100.1", "ip 192.0.2.1"],
    ["one proxy", proxied, "10.1.2.3", "198.51.100.1", "ip 198.51.100.1"],
    ["what the client wrote itself comes first", proxied, "10.1.2.3", "203.0.113.9, 198.51.100.1", "ip 198.51.100.1"],
    ["a chain of proxies", proxied, "192.0.2.7", "198.51.100.1, 10.9.9.9,10.1.1.1", "ip 198.51.100.1"],
    ["proxies all the way", proxied, "10.1.2.3", "10.0.0.1, 10.0.0.2", "ip 10.0.0.1"],
    ["rubbish at the end", proxied, "10.1.2.3", "198.51.100.1, unknown", "ip 10.1.2.3"],
    ["an empty header", proxied, "10.1.2.3", "", "ip 10.1.2.3"],
    ["a port", proxied, "10.1.2.3", "198.51.100.1:4711", "ip 198.51.100.1"],
    ["an IPv6 proxy and client", proxied, "2001:db8:1::1", "[2001:db8:2:3:4:5:6:7]:99", "ip 2001:0db8:0002:0003::/64"],
    ["IPv4 over an IPv6 socket", proxied, "::ffff:10.1.2.3", "198.51.100.1", "ip 198.51.100.1"],
    ["the same in hexadecimal", proxied, "::ffff:0a01:0203", "198.51.100.1", "ip 198.51.100.1"],
    ["IPv6 counts by its network", direct, "2001:db8::1", undefined, "ip 2001:0db8:0000:0000::/64"],
    ["a zone", direct, "fe80::1%eth0", undefined, "ip fe80:0000:0000:0000::/64"],
    ["a socket that is gone", direct, undefined, "198.51.100.1", "ip "],
  ])("%s", (_, addressOf, socket, header, expected) => {
    expect(addressOf(socket, header)).toBe(expected);
  });

  it("a header of the greatest size costs little", () => {
    const header = "10.0.0.1,".repeat(1_700);
    for (let at = 0; at < 1_000; at++) proxied("10.1.2.3", header);
    expect(proxied("10.1.2.3", header)).toMatch(/^ip 10\./);
  });
});
