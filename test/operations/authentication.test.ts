/** SERVICE_API_KEYS as text, and bearer headers against the keys. */
import { describe, expect, it } from "vitest";
import { Failure } from "../../src/errors/failure.ts";
import { openAuthentication, originRules, parseApiKeys } from "../../src/operations/authentication.ts";
import { ManualClock } from "../runtime/manual-clock.ts";

describe("the syntax of keys", () => {
  it.each([
    ["", []],
    [" \n , ,\r\n", []],
    ["secret", ["key-1/operator"]],
    ["a:agent:k1,b:operator:k2", ["a/agent", "b/operator"]],
    ["a:agent:k1\r\nb:operator:k2\n", ["a/agent", "b/operator"]],
    [" a:agent:k1 , plain ", ["a/agent", "key-2/operator"]],
    ["a:agent:k:with:colons", ["a/agent"]],
    ["A.b_c-d@e:agent:+/=~", ["A.b_c-d@e/agent"]],
  ])("%j", (text, expected) => {
    const { keys, problems } = parseApiKeys(text);
    expect(problems).toEqual([]);
    expect(keys.map(({ caller }) => `${caller.name}/${caller.role}`)).toEqual(expected);
  });

  it.each([
    ["a:k1", "Entry 1"],
    ["ok,a:owner:k1", "Entry 2"],
    ["a:agent:", "Entry 1"],
    [":agent:k1", "Entry 1"],
    ["a b:agent:k1", "Entry 1"],
    ["a:agent:k 1", "Entry 1"],
    ["pass word", "Entry 1"],
    ["schlüssel", "Entry 1"],
    ["a:agent:k1,a:agent:k2", "Entry 2"],
    ["a:agent:k1,b:agent:k1", "Entry 2"],
    ["k1,k1", "Entry 2"],
    ["a:Agent:k1", "Entry 1"],
  ])("%j has a problem named by its place", (text, place) => {
    const { problems } = parseApiKeys(text);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(place);
    expect(problems[0]).not.toMatch(/k1|k2|k 1|pass word|schl/);
  });

  it("all problems are reported together", () => {
    expect(parseApiKeys("a:x:1,b,c:agent:,d:agent:4").problems).toHaveLength(2);
  });

  it("keys are not kept as text", () => {
    const { keys } = parseApiKeys("a:agent:canary-key,canary-two");
    expect(JSON.stringify(keys)).not.toContain("canary");
  });
});

describe("bearer headers", () => {
  const clock = new ManualClock();
  const { authenticate, authenticateName } = openAuthentication(parseApiKeys("a:agent:k1,b:operator:k2").keys, clock);

  it.each([
    ["Bearer k1", "a"],
    ["bearer k2", "b"],
    ["BeArEr   k2 ", "b"],
  ])("%j is known", (header, name) => {
    expect(authenticate(header, "ip 192.0.2.1").name).toBe(name);
  });

  it.each([
    undefined,
    "",
    "Bearer",
    "Bearer ",
    "k1",
    "Bearer k1 k2",
    "Bearer k1,k2",
    "Bearerk1",
    "Basic k1",
    "Bearer\tk1",
    "Bearer K1",
    "Bearer k3",
    " Bearer k1",
    "Bearer k1\u00a0",
  ])("%j is unauthenticated", (header) => {
    expect(() => authenticate(header, "ip 192.0.2.1")).toThrow(Failure);
    try {
      authenticate(header, "ip 192.0.2.1");
    } catch (error) {
      expect((error as Failure).kind).toBe("unauthenticated");
    }
  });

  it("a certificate's name has the role of the key with that name", () => {
    expect(authenticateName("b")).toEqual({ name: "b", role: "operator" });
    for (const name of ["", "k2", "B", "c"]) expect(() => authenticateName(name)).toThrow(Failure);
  });

  it("without keys everyone is an operator", () => {
    const open = openAuthentication([], new ManualClock());
    for (const header of [undefined, "Bearer anything", "x"])
      expect(open.authenticate(header, "ip 192.0.2.1")).toMatchObject({ name: "anonymous", role: "operator" });
  });
});

describe("an address that fails too often", () => {
  const home = "ip 192.0.2.1";
  const open = () => {
    const clock = new ManualClock();
    return { clock, ...openAuthentication(parseApiKeys("a:agent:k1,b:operator:k2").keys, clock) };
  };
  const kindOf = (attempt: () => unknown): string => {
    try {
      attempt();
      return "passes";
    } catch (error) {
      return (error as Failure).kind;
    }
  };

  it("is told to wait after 30 failures a minute, also with a key that is right, and passes after that wait", async () => {
    const { clock, authenticate } = open();
    for (let at = 0; at < 30; at++)
      expect(kindOf(() => authenticate(`Bearer guess${at}`, home))).toBe("unauthenticated");
    await clock.advance(20_400);
    for (const header of ["Bearer guess", "Bearer k1", undefined]) {
      expect(kindOf(() => authenticate(header, home))).toBe("rate_limit_exceeded");
    }
    expect(kindOf(() => authenticate("Bearer guess", "ip 192.0.2.2"))).toBe("unauthenticated");
    await clock.advance(40_000);
    expect(authenticate("Bearer k1", home).name).toBe("a");
  });

  it("does not lock out keys that came from there before", () => {
    const { authenticate } = open();
    authenticate("Bearer k1", home);
    for (let at = 0; at < 40; at++) kindOf(() => authenticate("Bearer stale", home));
    expect(authenticate("Bearer k1", home).name).toBe("a");
    // The same key from elsewhere is no reason to listen to it here.
    authenticate("Bearer k2", "ip 192.0.2.9");
    expect(kindOf(() => authenticate("Bearer k2", home))).toBe("rate_limit_exceeded");
  });
});

describe("hosts", () => {
  it("the bound host counts, an unspecified address as itself only", () => {
    const bound = originRules({ boundHost: "2001:db8::1", allowedHosts: ["[2001:db8::2]"], corsOrigins: [] });
    bound.check("[2001:db8::1]:8080", undefined);
    bound.check("[2001:db8::2]", undefined);
    expect(() => bound.check("[2001:db8::3]", undefined)).toThrow(Failure);
    const everywhere = originRules({ boundHost: "0.0.0.0", allowedHosts: [], corsOrigins: [] });
    expect(() => everywhere.check("192.0.2.1", undefined)).toThrow(Failure);
    everywhere.check(undefined, undefined);
    expect(() => everywhere.check(undefined, "http://localhost")).toThrow(Failure);
  });
});
