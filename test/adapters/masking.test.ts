import { describe, expect, it } from "vitest";
import { withoutCredentials } from "../../src/adapters/masking.ts";

const secret = "s3cret+/ä &key";

describe("answer headers", () => {
  it.each([
    ["plain", secret],
    ["percent-encoded", encodeURIComponent(secret)],
    ["percent-encoded in lower case", encodeURIComponent(secret).toLowerCase()],
    ["form-encoded", new URLSearchParams({ key: secret }).toString().slice(4)],
    ["as base64", Buffer.from(secret).toString("base64")],
    ["as base64url", Buffer.from(secret).toString("base64url")],
  ])("are masked where they hold a key %s", (_, spelling) => {
    const headers = { location: `/x/?key=${spelling}&page=2`, etag: '"1"' };
    expect(withoutCredentials(headers, { key: secret })).toEqual({ location: "/x/?key=***&page=2", etag: '"1"' });
  });

  it("are masked where they hold a password, alone or as basic sends it, but not for a user name", () => {
    const basic = { login: { username: "alice", password: "wonder-land" } };
    const sent = Buffer.from("alice:wonder-land").toString("base64");
    expect(withoutCredentials({ a: `Basic ${sent}`, b: "wonder-land", c: "alice" }, basic)).toEqual({
      a: "Basic ***",
      b: "***",
      c: "alice",
    });
  });

  it("are left alone without secrets, and by secrets too short to be any", () => {
    const headers = { location: "/abc" };
    expect(withoutCredentials(headers, {})).toEqual(headers);
    expect(withoutCredentials(headers, { key: "a", other: 5, none: null })).toEqual(headers);
  });

  it("are masked by a secret full of pattern characters", () => {
    const key = "^$.*+?()[]{}|\\/-";
    expect(withoutCredentials({ x: `<${key}>` }, { key })).toEqual({ x: "<***>" });
  });
});
