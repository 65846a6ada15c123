/** SERVICE_API_KEYS as text, and bearer headers against the keys. */
import { describe, expect, it } from "vitest";
import { Failure } from "../../src/errors/failure.ts";
import { openAuthentication, originRules, parseApiKeys } from "../../src/operations/authentication.ts";

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
  const { authenticate, authenticateName } = openAuthentication(parseApiKeys("a:agent:k1,b:operator:k2").keys);

  it.each([
    ["Bearer k1", "a"],
    ["bearer k2", "b"],
    ["BeArEr   k2 ", "b"],
  ])("%j is known", (header, name) => {
    expect(authenticate(header).name).toBe(name);
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
    expect(() => authenticate(header)).toThrow(Failure);
    try {
      authenticate(header);
    } catch (error) {
      expect((error as Failure).kind).toBe("unauthenticated");
    }
  });

  it("a certificate's name has the role of the key with that name", () => {
    expect(authenticateName("b")).toEqual({ name: "b", role: "operator" });
    for (const name of ["", "k2", "B", "c"]) expect(() => authenticateName(name)).toThrow(Failure);
  });

  it("without keys everyone is an operator", () => {
    const open = openAuthentication([]);
    for (const header of [undefined, "Bearer anything", "x"])
      expect(open.authenticate(header)).toEqual({ name: "anonymous", role: "operator" });
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
