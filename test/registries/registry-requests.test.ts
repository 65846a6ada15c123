/**
 * Reads from registries over real sockets: which hop carries credentials, what one 401 leads to, what other answers become.
 * The registry is 127.0.0.1, its neighbours are other loopback addresses and names that lead to them.
 */
import type { IncomingMessage } from "node:http";
import { describe, expect, test } from "vitest";
import type { BrowseQuery, EntryPage, RegistryCredential } from "../../src/ports/registry-reader.ts";
import { failureOf, type Origin, serve } from "../egress/fixtures.ts";
import {
  accessTo,
  apiKey,
  byPath,
  credentials,
  emptyPage,
  key,
  openReading,
  type Reading,
  redirects,
  sends,
  token,
} from "./fixtures.ts";

const query: BrowseQuery = { limit: 50 };

function browse(
  { reader }: Reading,
  origin: Pick<Origin, "url">,
  credential: RegistryCredential | null = apiKey,
  { base = "", path = "/d" } = {},
): Promise<EntryPage> {
  return reader.page(accessTo(`${origin.url}${base}`, credential), "definitions", `${origin.url}${path}`, query);
}

/** Every place of a request where a secret could be. */
function wholeRequest({ url, rawHeaders }: IncomingMessage): string {
  return [url, ...rawHeaders].join("\n");
}

const keysSeen = ({ requests }: Origin) => requests.map(({ headers }) => headers["x-registry-key"]);

describe("credentials on one hop", () => {
  test("a key is sent under its name, a token as bearer, nothing when there are none", async () => {
    const origin = await serve(sends(emptyPage));
    const reading = openReading();
    for (const credential of [apiKey, token("t1"), null]) await browse(reading, origin, credential);
    expect(keysSeen(origin)).toEqual([key, undefined, undefined]);
    expect(origin.requests.map(({ headers }) => headers.authorization)).toEqual([undefined, "Bearer t1", undefined]);
    expect(reading.logged).toEqual([]);
  });

  test("two registries browsed at once each see their own key only", async () => {
    const [one, two] = [await serve(sends(emptyPage)), await serve(sends(emptyPage), "127.0.0.2")];
    const reading = openReading();
    await Promise.all(
      [one, two].flatMap((origin, at) =>
        Array.from({ length: 20 }, () =>
          browse(reading, origin, { ...apiKey, key: `key-${at}` } as RegistryCredential),
        ),
      ),
    );
    expect(new Set(keysSeen(one))).toEqual(new Set(["key-0"]));
    expect(new Set(keysSeen(two))).toEqual(new Set(["key-1"]));
  });

  test("the well-known document is asked for without credentials", async () => {
    const origin = await serve(sends({ id: "r", definitions: { v1: "/d" } }));
    await openReading().reader.advertisement(`${origin.url}/deep/path`, new AbortController().signal);
    expect(origin.requests.map(({ url }) => url)).toEqual(["/.well-known/registry.json"]);
    expect(origin.requests[0]?.headers).not.toHaveProperty("authorization");
    expect(origin.requests[0]?.headers["cache-control"]).toBe("no-cache");
  });

  test("pages, descriptors and downloads all carry them, inside the scope", async () => {
    const descriptor = { latestVersion: "1.0.0", versions: { "1.0.0": { downloadUrl: "/files/a.tgz" } } };
    const origin = await serve(
      byPath({ "/d": sends(emptyPage), "/e": sends(descriptor), "/files/a.tgz": sends("bytes") }),
    );
    const reading = openReading();
    const access = accessTo(origin.url, apiKey);
    await browse(reading, origin);
    const { versions } = await reading.reader.descriptor(access, `${origin.url}/e`);
    await reading.reader.artifact(access, versions["1.0.0"]?.downloadUrl ?? "", 100, null);
    expect(keysSeen(origin)).toEqual([key, key, key]);
  });
});

describe("redirects", () => {
  test.each([301, 302, 303, 307, 308])(
    "status %i to another host strips the key, back again it returns",
    async (status) => {
      const home: { url: string } = { url: "" };
      const evil = await serve(
        (request, response) => redirects(`${home.url}/home`, status)(request, response),
        "127.0.0.3",
      );
      const origin = await serve(byPath({ "/d": redirects(`${evil.url}/x`, status), "/home": sends(emptyPage) }));
      home.url = origin.url;
      for (const credential of [apiKey, token(key)]) {
        const reading = openReading();
        await browse(reading, origin, credential);
        expect(reading.logged).toEqual([
          {
            level: "info",
            event: "registry-auth-out-of-scope",
            message: `The definitions page of registry "r" is asked for without credentials at "127.0.0.3:${evil.port}": its URL is not on the origin "${origin.url}"`,
          },
        ]);
      }
      expect(evil.requests).toHaveLength(2);
      expect(evil.requests.map(wholeRequest).join()).not.toContain(key);
      expect(origin.requests.map(wholeRequest).filter((text) => text.includes(key))).toHaveLength(4);
    },
  );

  test("several hops outside the scope are logged once, a request without credentials never", async () => {
    const evil = await serve(
      byPath({ "/x": redirects("/y"), "/y": redirects("/z"), "/z": sends(emptyPage) }),
      "127.0.0.3",
    );
    const origin = await serve(redirects(`${evil.url}/x`));
    const reading = openReading();
    await browse(reading, origin, null);
    expect(reading.logged).toEqual([]);
    await browse(reading, origin);
    expect(reading.logged.map(({ event }) => event)).toEqual(["registry-auth-out-of-scope"]);
  });

  test.each([
    ["/api/next", true],
    ["next", true],
    ["?q=1", true],
    ["#f", true],
    ["/api", true],
    ["/api/", true],
    ["/x/../api/next", true],
    ["/api-evil", false],
    ["/API/next", false],
    ["/", false],
    ["/api/../admin", false],
    ["/api/%2e%2e/admin", false],
    ["/api/..%2fadmin", false],
    ["/api/..%5cadmin", false],
    ["..\\admin", false],
  ])("Location %s within the origin carries the key below /api only", async (location, carries) => {
    let isFirst = true;
    const origin = await serve((request, response) => {
      if (isFirst) redirects(location)(request, response);
      else sends(emptyPage)(request, response);
      isFirst = false;
    });
    await browse(openReading(), origin, apiKey, { base: "/api", path: "/api/d" });
    expect(keysSeen(origin)).toEqual([key, carries ? key : undefined]);
  });

  test("another port, another name for the same address and a look-alike host are strangers", async () => {
    const other = await serve(sends(emptyPage));
    const origin = await serve((request, response) =>
      redirects(`http://${(request.url ?? "").split("to=")[1]?.split("&")[0]}/`)(request, response),
    );
    const names = { localhost: ["127.0.0.1"], "reg.test": ["127.0.0.1"], "reg.test.evil.test": ["127.0.0.1"] };
    const reading = openReading({ names });
    for (const host of ["127.0.0.1", "localhost", "reg.test", "reg.test.evil.test"])
      await browse(reading, { url: `http://reg.test:${origin.port}` }, apiKey, { path: `/d?to=${host}:${other.port}` });
    expect(keysSeen(origin)).toEqual([key, key, key, key]);
    expect(other.requests.map(wholeRequest).join()).not.toContain(key);
    expect(other.requests).toHaveLength(4);
  });

  test("other spellings of the same origin keep the key", async () => {
    const origin = await serve((request, response) => {
      if (request.url?.startsWith("/d")) redirects(`http://127.1:${origin.port}/next`)(request, response);
      else sends(emptyPage)(request, response);
    });
    await browse(openReading(), { url: `http://2130706433:${origin.port}` });
    expect(keysSeen(origin)).toEqual([key, key]);
  });

  test("a user name in a Location is refused, and never becomes a header", async () => {
    const origin = await serve((request, response) =>
      redirects(`http://u:p@127.0.0.1:${origin.port}/next`)(request, response),
    );
    expect(await failureOf(browse(openReading(), origin), "upstream_failed")).toContain("the URL holds credentials");
    expect(origin.requests).toHaveLength(1);
  });

  test("cookies are neither kept nor sent on", async () => {
    const evil = await serve(sends(emptyPage), "127.0.0.3");
    const origin = await serve((_request, response) => {
      response.writeHead(302, { location: `${evil.url}/x`, "set-cookie": "session=1" }).end();
    });
    const reading = openReading();
    await browse(reading, origin);
    await browse(reading, origin);
    for (const { headers } of [...origin.requests, ...evil.requests]) expect(headers).not.toHaveProperty("cookie");
  });

  test.each([
    ["a missing Location", undefined, /was answered with status 302$/],
    ["a malformed Location", "http://[bad", /redirects to a malformed URL$/],
    ["javascript:", "javascript:1", /"javascript:" is neither http nor https$/],
    ["file:", "file:///etc/passwd", /"file:" is neither http nor https$/],
    ["data:", "data:,x", /"data:" is neither http nor https$/],
    ["itself", "/d", /redirects more than 5 times$/],
    ["a private address", "http://10.0.0.1/", /it is a private address/],
    ["the metadata address", "http://169.254.169.254/", /it is a link-local address/],
    ["a Location of 1 MB", `/${"x".repeat(1_000_000)}`, /the header of its answer is too large$/],
  ])("a redirect to %s ends in a clear refusal", async (_name, location, message) => {
    const origin = await serve((_request, response) => {
      response.writeHead(302, location === undefined ? {} : { location }).end();
    });
    expect(await failureOf(browse(openReading(), origin), "upstream_failed")).toMatch(message);
    expect(origin.requests.length).toBeLessThanOrEqual(6);
  });

  test("a loop between two hosts ends after six requests, five redirects are followed", async () => {
    const chain = await serve((request, response) => {
      const left = Number(new URL(request.url ?? "", "http://any").searchParams.get("left") ?? 5);
      if (left === 0) sends(emptyPage)(request, response);
      else redirects(`/d?left=${left - 1}`)(request, response);
    });
    expect(await browse(openReading(), chain)).toEqual({ entries: [], nextCursor: null });
    expect(chain.requests).toHaveLength(6);
    const home: { url: string } = { url: "" };
    const other = await serve((request, response) => redirects(home.url)(request, response), "127.0.0.3");
    const origin = await serve((request, response) => redirects(other.url)(request, response));
    home.url = origin.url;
    await failureOf(browse(openReading(), origin), "upstream_failed");
    expect(origin.requests.length + other.requests.length).toBe(6);
  });
});

describe("transport", () => {
  const refusal = /^Registry authentication requires https; credentials are not sent over plaintext http to "reg\.test/;

  test("plain http to an address that is not exempt is refused before anything is sent; anonymous use goes on", async () => {
    const origin = await serve(sends(emptyPage));
    const reading = openReading({ names: { "reg.test": ["127.0.0.1"] }, claimedAddress: "10.77.0.5" });
    const at = { url: `http://reg.test:${origin.port}` };
    for (const credential of [apiKey, token(key)])
      expect(await failureOf(browse(reading, at, credential), "upstream_failed")).toMatch(refusal);
    expect(origin.requests).toHaveLength(0);
    await browse(reading, at, null);
    expect(origin.requests).toHaveLength(1);
  });

  test("a listed range is exempt", async () => {
    const origin = await serve(sends(emptyPage));
    const setting = {
      names: { "reg.test": ["127.0.0.1"] },
      claimedAddress: "10.77.0.5",
      insecureCidrs: ["10.77.0.0/24"],
    };
    await browse(openReading(setting), { url: `http://reg.test:${origin.port}` });
    expect(keysSeen(origin)).toEqual([key]);
  });

  test("a name that also leads elsewhere is refused, even where the connection would go to loopback", async () => {
    const origin = await serve(sends(emptyPage));
    const names = { "reg.test": ["127.0.0.1", "10.77.0.5"] };
    const at = { url: `http://reg.test:${origin.port}` };
    const reading = openReading({ names, allowedCidrs: ["10.77.0.0/24"] });
    expect(await failureOf(browse(reading, at), "upstream_failed")).toMatch(refusal);
    await browse(openReading({ names, allowedCidrs: ["10.77.0.0/24"], insecureCidrs: ["10.77.0.0/24"] }), at);
    expect(keysSeen(origin)).toEqual([key]);
  });

  test("a name that changes its address between requests is judged by the address of each connection", async () => {
    const origin = await serve(sends(emptyPage));
    let lookups = 0;
    const rebinding = () => [lookups++ % 2 === 0 ? "127.0.0.1" : "10.77.0.5"];
    const reading = openReading({ names: { "reg.test": rebinding }, allowedCidrs: ["10.77.0.0/24"] });
    for (let round = 0; round < 50; round += 1) {
      await browse(reading, { url: `http://reg.test:${origin.port}` });
      await failureOf(browse(reading, { url: `http://reg.test:${origin.port}` }), "upstream_failed");
    }
    expect(lookups).toBe(100);
    expect(keysSeen(origin)).toEqual(Array.from({ length: 50 }, () => key));
  });

  test("a refused token request is, for the page, a page that cannot be had", async () => {
    const origin = await serve(sends(emptyPage));
    const reading = openReading({ names: { "idp.test": ["127.0.0.1"] }, claimedAddress: "10.77.0.5" });
    const request = { tokenEndpoint: "http://idp.test/token", clientId: "c", clientSecret: key, scopes: [] };
    const source = {
      current: async () => {
        const { accessToken } = await reading.reader.exchange(request, new AbortController().signal);
        return token(accessToken);
      },
      renewed: async () => null,
    };
    const page = reading.reader.page(accessTo(origin.url, source), "definitions", `${origin.url}/d`, query);
    expect(await failureOf(page, "upstream_failed")).toMatch(/^Registry authentication requires https/);
  });
});

describe("a 401", () => {
  const refusing = (accepted: string) =>
    byPath({
      "/d": (request, response) => {
        if (request.headers.authorization === `Bearer ${accepted}`) sends(emptyPage)(request, response);
        else sends({}, 401)(request, response);
      },
    });
  const page = (origin: Origin, source: ReturnType<typeof credentials>) =>
    openReading().reader.page(accessTo(origin.url, source), "definitions", `${origin.url}/d`, query);

  test("is repeated once with the newer token", async () => {
    const origin = await serve(refusing("t2"));
    const source = credentials(token("t1"), token("t2"));
    await page(origin, source);
    expect(origin.requests.map(({ headers }) => headers.authorization)).toEqual(["Bearer t1", "Bearer t2"]);
    expect(source.renewals).toEqual([token("t1")]);
  });

  test("again after that is a failure, without a third attempt", async () => {
    const origin = await serve(refusing("never"));
    const source = credentials(token("t1"), token("t2"));
    expect(await failureOf(page(origin, source), "upstream_failed")).toBe(
      'The definitions page of registry "r" was answered with status 401',
    );
    expect([origin.requests.length, source.renewals.length]).toEqual([2, 1]);
  });

  test("is a failure at once when there is no newer token", async () => {
    const origin = await serve(refusing("t2"));
    const source = credentials(token("t1"), null);
    await failureOf(page(origin, source), "upstream_failed");
    expect([origin.requests.length, source.renewals.length]).toEqual([1, 1]);
  });

  test.each([
    ["a key", 401, apiKey],
    ["no credentials", 401, null],
    ["a token that was not refused but forbidden", 403, token("t1")],
    ["a token at its limit", 429, token("t1")],
  ])("is not repeated with %s (status %i)", async (_name, status, credential) => {
    const origin = await serve(sends({}, status));
    const source = credentials(credential, token("t2"));
    await failureOf(page(origin, source), "upstream_failed");
    expect([origin.requests.length, source.renewals.length]).toEqual([1, 0]);
  });

  test("of a server that never got the token costs no renewal, and says why", async () => {
    const evil = await serve(sends({}, 401), "127.0.0.3");
    const origin = await serve(redirects(`${evil.url}/x`));
    const source = credentials(token("t1"), token("t2"));
    expect(await failureOf(page(origin, source), "upstream_failed")).toBe(
      `The definitions page of registry "r" was answered with status 401; no credentials were sent there, because its URL is not on the origin "${origin.url}"`,
    );
    expect(source.renewals).toEqual([]);
  });

  test("is repeated for downloads and descriptors too", async () => {
    const origin = await serve(refusing("t2"));
    const access = () => accessTo(origin.url, credentials(token("t1"), token("t2")));
    const { reader } = openReading();
    await reader.artifact(access(), `${origin.url}/d`, 1_000, null);
    await failureOf(reader.descriptor(access(), `${origin.url}/d`), "upstream_failed");
    expect(origin.requests).toHaveLength(4);
  });

  test("a renewal that fails is the failure of the read", async () => {
    const origin = await serve(refusing("t2"));
    const source = { ...credentials(token("t1")), renewed: () => Promise.reject(new Error("store is gone")) };
    const read = openReading().reader.page(accessTo(origin.url, source), "definitions", `${origin.url}/d`, query);
    await expect(read).rejects.toThrow("store is gone");
  });
});

describe("answers", () => {
  test.each([204, 300, 304, 400, 401, 403, 404, 409, 429, 500, 503])(
    "status %i is a failure of the registry, never one of ours",
    async (status) => {
      const origin = await serve((_request, response) => {
        response
          .writeHead(status, { "retry-after": "7", "x-ratelimit-limit": "1" })
          .end(status === 204 ? "" : undefined);
      });
      const message = await failureOf(browse(openReading(), origin), "upstream_failed");
      expect(message).toBe(
        `The definitions page of registry "r" ${status === 204 ? "is not valid JSON" : `was answered with status ${status}`}`,
      );
    },
  );

  test("the query arrives as the caller gave it, beside what the capability carries", async () => {
    const origin = await serve(sends({ definitions: [], nextCursor: "a+b/c==&x=1#y" }));
    const asked = { query: "é +", cursor: "a+b/c==&x=1#y", limit: 50 };
    const capability = `${origin.url}/d?tenant=7&limit=3`;
    const page = await openReading().reader.page(accessTo(origin.url), "definitions", capability, asked);
    const seen = new URL(origin.requests[0]?.url ?? "", origin.url).searchParams;
    expect([...seen]).toEqual([
      ["tenant", "7"],
      ["query", "é +"],
      ["cursor", "a+b/c==&x=1#y"],
      ["limit", "50"],
    ]);
    expect(page.nextCursor).toBe("a+b/c==&x=1#y");
  });

  test("capabilities start from where a redirected well-known document came from", async () => {
    const mirror = await serve(sends({ id: "r", definitions: { v1: "d" } }), "127.0.0.3");
    const origin = await serve(redirects(`${mirror.url}/a/registry.json`));
    const { definitions } = await openReading().reader.advertisement(origin.url, new AbortController().signal);
    expect(definitions).toBe(`${mirror.url}/a/d`);
  });

  test("a download is held to its hash in either case, and to its size", async () => {
    const origin = await serve(sends("bytes"));
    const { reader } = openReading();
    const hash = "277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9";
    const get = (bytesMax: number, expected: string | null) =>
      reader.artifact(accessTo(origin.url), `${origin.url}/a.tgz`, bytesMax, expected);
    for (const expected of [null, hash, hash.toUpperCase()])
      expect(Buffer.from(await get(5, expected)).toString()).toBe("bytes");
    for (const wrong of [hash.replace("2", "3"), "", "abc"])
      expect(await failureOf(get(5, wrong), "upstream_failed")).toBe(
        'The download from registry "r" does not have the SHA-256 that the registry gives for it',
      );
    expect(await failureOf(get(4, hash), "upstream_failed")).toMatch(/is larger than 4 bytes$/);
  });
});
