/** The decision about one hop, as tables. https needs no certificates here: the function sees URLs and addresses only. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { RegistryCredential } from "../../src/ports/registry-reader.ts";
import { credentialHeaders } from "../../src/registries/credential-headers.ts";
import { plaintextExemption } from "../../src/registries/plaintext-exemption.ts";
import { apiKey, key, token } from "./fixtures.ts";

interface Asked {
  readonly base?: string;
  readonly url: string;
  readonly address?: string;
  readonly addresses?: readonly string[];
  readonly credential?: RegistryCredential | null;
  readonly cidrs?: readonly string[];
}

function decide({
  base = "https://reg.test/api",
  url,
  address = "93.184.216.34",
  addresses = [address],
  credential = apiKey,
  cidrs = [],
}: Asked) {
  return credentialHeaders(
    { url: new URL(url), address, addresses },
    new URL(base),
    credential,
    plaintextExemption(cidrs),
  );
}

describe("scope", () => {
  test.each([
    ["https://reg.test/api", "https://reg.test/api"],
    ["https://reg.test/api", "https://reg.test/api/"],
    ["https://reg.test/api", "https://reg.test/api?x=1"],
    ["https://reg.test/api", "https://reg.test/api#f"],
    ["https://reg.test/api", "https://reg.test/api/x"],
    ["https://reg.test/api", "https://reg.test/api/x/../y"],
    ["https://reg.test/api", "https://reg.test/other/../api/y"],
    ["https://reg.test/api", "https://reg.test:443/api/x"],
    ["https://reg.test/api", "https://REG.test/api/x"],
    ["https://reg.test:443/api", "https://reg.test/api/x"],
    ["https://reg.test/api", "https://reg.test\\api\\x"],
    ["https://reg.test/api", "https://reg.test/%2e/api/x"],
    ["https://reg.test/api", "https://reg.test/api/%41?path=..%2f%5c%2e"],
    ["https://reg.test/api", "https://reg.test/api//x"],
    ["https://reg.test/api/", "https://reg.test/api/x"],
    ["https://reg.test/api/", "https://reg.test/api"],
    ["https://reg.test/api", "https://reg.test/api/v1%2E0/...;x/%252f"],
    ["https://reg.test", "https://reg.test/"],
    ["https://reg.test/", "https://reg.test/anything?y"],
    ["https://reg.test/ä", "https://reg.test/%C3%A4/x"],
    ["http://127.0.0.1/api", "http://127.0.0.1:80/api/x"],
    ["https://[2001:db8::1]/api", "https://[2001:0db8:0::1]/api/x"],
  ])("base %s covers %s", (base, url) => {
    expect(decide({ base, url, address: "127.0.0.1" })).toEqual({
      outcome: "attached",
      headers: { "X-Registry-Key": key },
    });
  });

  test.each([
    // Sibling paths and spelling.
    ...["/api-evil", "/apix", "/ap", "/API/x", "/other/api/x", "/", "/?/api/x", "//api/x", "/x/api"],
    // What the path becomes once it is normalised.
    ...[
      "/api/../admin",
      "/api/./../admin",
      "/api/%2e%2e/admin",
      "/api/.%2E/admin",
      "/api/x/../../admin",
      "/api/..\\admin",
    ],
    // What something behind the server could make of it.
    ...[
      "/api/..%2fadmin",
      "/api/..%2Fadmin",
      "/api/%2e%2e%2fadmin",
      "/api/%2e%2e%5cadmin",
      "/api/..%5Cadmin",
      "/api/..;x/admin",
      "/api/%2e%2e;x/admin",
      "/api/.;/x",
    ],
  ])("the path %s is outside /api", (path) => {
    expect(decide({ url: `https://reg.test${path}` })).toMatchObject({ outcome: "anonymous", reason: /./ });
  });

  test.each([
    "https://reg.test:8443/api/x",
    "http://reg.test/api/x",
    "http://reg.test:443/api/x",
    "https://reg.test./api/x",
    "https://www.reg.test/api/x",
    "https://reg.test.evil.test/api/x",
    "https://evilreg.test/api/x",
    "https://reg.test@evil.test/api/x",
    "https://reg.test:443@evil.test/api/x",
    "https://evil.test/?https://reg.test/api/x",
    "https://evil.test/api/x#reg.test",
    "https://evil.test/https://reg.test/api/x",
    "https://u:p@reg.test/api/x",
    "https://u@reg.test/api/x",
    "https://:p@reg.test/api/x",
    "ftp://reg.test/api/x",
    "ws://reg.test/api/x",
  ])("%s is outside https://reg.test/api", (url) => {
    expect(decide({ url, address: "127.0.0.1" })).toMatchObject({ outcome: "anonymous", reason: /./ });
  });

  test("a change of scheme is anonymous, never refused, also towards loopback", () => {
    expect(decide({ base: "https://localhost/", url: "http://localhost/x", address: "127.0.0.1" }).outcome).toBe(
      "anonymous",
    );
    expect(decide({ base: "https://reg.test/", url: "http://reg.test/x", address: "10.0.0.1" }).outcome).toBe(
      "anonymous",
    );
    expect(decide({ base: "http://localhost/", url: "https://localhost/x", address: "127.0.0.1" }).outcome).toBe(
      "anonymous",
    );
  });

  test("every path below the base is inside, every origin but one is outside", () => {
    const segment = fc.stringMatching(/^[a-z0-9~_-]{1,8}$/);
    fc.assert(
      fc.property(
        fc.array(segment, { maxLength: 3 }),
        fc.array(segment, { maxLength: 3 }),
        segment,
        (base, more, other) => {
          const root = `https://reg.test/${base.join("/")}`;
          const below = [...base, ...more].join("/");
          expect(decide({ base: root, url: `https://reg.test/${below}` }).outcome).toBe("attached");
          expect(decide({ base: root, url: `https://${other}.test:1/${below}` }).outcome).toBe("anonymous");
          if (base.length > 0)
            expect(
              decide({ base: root, url: `https://reg.test/${base.join("/")}${other}/${more.join("/")}` }).outcome,
            ).toBe("anonymous");
        },
      ),
    );
  });
});

describe("transport", () => {
  const plain = { base: "http://reg.test/api", url: "http://reg.test/api/x" };

  test.each(["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])(
    "plain http to %s carries credentials",
    (address) => {
      expect(decide({ ...plain, address }).outcome).toBe("attached");
    },
  );

  test.each(["10.77.0.5", "93.184.216.34", "::ffff:10.77.0.5", "fd00::1", "0.0.0.0", "::", "not an address", ""])(
    "plain http to %j is refused, whatever the host is called",
    (address) => {
      for (const host of ["reg.test", "localhost", "127.0.0.1.evil.test"]) {
        const decided = decide({ base: `http://${host}/`, url: `http://${host}/x`, address });
        expect(decided).toMatchObject({ outcome: "refused", failure: { kind: "upstream_failed" } });
        expect(decided.outcome === "refused" && decided.failure.message).toBe(
          `Registry authentication requires https; credentials are not sent over plaintext http to "${host}"`,
        );
      }
    },
  );

  test("plain http to a listed range carries credentials, to its neighbour not", () => {
    const cidrs = ["10.77.0.0/24", "fd00:7::/64"];
    expect(decide({ ...plain, cidrs, address: "10.77.0.5" }).outcome).toBe("attached");
    expect(decide({ ...plain, cidrs, address: "::ffff:10.77.0.5" }).outcome).toBe("attached");
    expect(decide({ ...plain, cidrs, address: "fd00:7::5" }).outcome).toBe("attached");
    expect(decide({ ...plain, cidrs, address: "10.77.1.5" }).outcome).toBe("refused");
    expect(decide({ ...plain, cidrs, address: "fd00:7:0:1::5" }).outcome).toBe("refused");
  });

  test("plain http to a host that has one address outside is refused, whichever is connected to", () => {
    const addresses = ["127.0.0.1", "10.77.0.5"];
    for (const address of addresses) expect(decide({ ...plain, address, addresses }).outcome).toBe("refused");
    expect(decide({ ...plain, address: "127.0.0.1", addresses, cidrs: ["10.77.0.0/24"] }).outcome).toBe("attached");
    expect(decide({ ...plain, address: "10.77.0.5", addresses: ["127.0.0.1"] }).outcome).toBe("refused");
  });

  test("https carries credentials to any address", () => {
    for (const address of ["10.77.0.5", "8.8.8.8", "fd00::1"])
      expect(decide({ url: "https://reg.test/api/x", address }).outcome).toBe("attached");
  });

  test("without credentials nothing is refused", () => {
    expect(decide({ ...plain, address: "10.77.0.5", credential: null })).toEqual({ outcome: "anonymous", reason: "" });
  });
});

describe("headers", () => {
  const url = "https://reg.test/api/x";

  test("a key is sent bare under its pinned name, a token as bearer", () => {
    expect(decide({ url })).toEqual({ outcome: "attached", headers: { "X-Registry-Key": key } });
    expect(decide({ url, credential: token("t1") })).toEqual({
      outcome: "attached",
      headers: { authorization: "Bearer t1" },
    });
  });

  test.each(["k\r\nX-Evil: 1", "k\nx", "k\u0000", "", "clé€", "k\u007f"])("the value %j is never sent", (value) => {
    const credential: RegistryCredential = { type: "apiKey", headerName: "X-Key", key: value };
    const decided = decide({ url, credential });
    expect(decided.outcome).toBe("refused");
    expect(decided.outcome === "refused" && decided.failure.message).not.toContain("Evil");
  });
});
