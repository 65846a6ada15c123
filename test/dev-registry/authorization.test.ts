/** What the registry enforces, on every path that has something to protect, and how its token endpoint refuses. */
import { describe, expect, test } from "vitest";
import type { DevRegistry } from "../../src/dev-registry/dev-registry.ts";
import { advertisementOf, type Headers, requestToken, startRegistry, tokenOf } from "./client.ts";

const protectedPaths = [
  "/v1/definitions",
  "/v1/modules",
  "/v1/definitions/petstore",
  "/v1/modules/csv-table",
  "/v1/definitions/petstore/1.0.0/openapi.json",
  "/v1/modules/csv-table/1.0.0/csv-table-1.0.0.tgz",
  "/v1/definitions/petstore/icon.png",
];

async function statuses(registry: DevRegistry, headers: Headers): Promise<number[]> {
  const answers = protectedPaths.map((path) => fetch(`${registry.url.slice(0, -1)}${path}`, { headers }));
  return (await Promise.all(answers)).map(({ status }) => status);
}

const all = (status: number) => protectedPaths.map(() => status);
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

describe("mode apikey", () => {
  test("advertises the header it enforces", async () => {
    const registry = await startRegistry({ auth: "apikey", headerName: "X-Other" });
    expect((await advertisementOf(registry)).auth).toEqual({ type: "apiKey", name: "X-Other", in: "header" });
    expect(await statuses(registry, { "X-Other": "dev-registry-key" })).toEqual(all(200));
    expect(await statuses(registry, { "X-Dev-Registry-Key": "dev-registry-key" })).toEqual(all(401));
  });

  test.each<[string, Headers, number]>([
    ["the right key", { "X-Dev-Registry-Key": "dev-registry-key" }, 200],
    ["the header in another case", { "x-dev-registry-KEY": "dev-registry-key" }, 200],
    ["no key", {}, 401],
    ["a wrong key", { "X-Dev-Registry-Key": "dev-registry-kez" }, 401],
    ["the key in another case", { "X-Dev-Registry-Key": "DEV-registry-key" }, 401],
    ["a part of the key", { "X-Dev-Registry-Key": "dev-registry" }, 401],
    ["an empty key", { "X-Dev-Registry-Key": "" }, 401],
    ["the key twice", { "X-Dev-Registry-Key": "dev-registry-key, dev-registry-key" }, 401],
    ["the key as a bearer token", { Authorization: "Bearer dev-registry-key" }, 401],
  ])("%s", async (_, headers, status) => {
    expect(await statuses(await startRegistry({ auth: "apikey" }), headers)).toEqual(all(status));
  });

  test("a changed key holds from the next request on", async () => {
    const registry = await startRegistry({ auth: "apikey" });
    registry.set({ apiKey: "second" });
    expect(await statuses(registry, { "X-Dev-Registry-Key": "dev-registry-key" })).toEqual(all(401));
    expect(await statuses(registry, { "X-Dev-Registry-Key": "second" })).toEqual(all(200));
  });

  test("has no token endpoint", async () => {
    expect((await requestToken(await startRegistry({ auth: "apikey" }))).status).toBe(404);
  });
});

describe("mode oauth2", () => {
  test("advertises its token endpoint and scopes", async () => {
    const registry = await startRegistry({ auth: "oauth2" });
    expect((await advertisementOf(registry)).auth).toEqual({
      type: "oauth2",
      grantType: "client_credentials",
      tokenEndpoint: registry.tokenEndpoint,
      scopes: [
        { id: "definitions:read", description: expect.any(String) },
        { id: "modules:read", description: expect.any(String) },
      ],
    });
    registry.set({ scopes: [] });
    expect((await advertisementOf(registry)).auth).not.toHaveProperty("scopes");
  });

  test("a token opens every protected path, in any case of the scheme", async () => {
    const registry = await startRegistry({ auth: "oauth2", basePath: "/base" });
    const { access_token: token } = await tokenOf(registry);
    expect(await statuses(registry, bearer(token))).toEqual(all(200));
    expect(await statuses(registry, { Authorization: `bEARER ${token}` })).toEqual(all(200));
  });

  test.each<[string, Headers]>([
    ["nothing", {}],
    ["a made-up token", bearer("dev_made-up")],
    ["an empty token", { Authorization: "Bearer " }],
    ["another scheme", { Authorization: "Basic ZGV2LWNsaWVudDpkZXYtc2VjcmV0" }],
    ["the client's secret", bearer("dev-secret")],
    ["the key of the other mode", { "X-Dev-Registry-Key": "dev-registry-key" }],
  ])("%s opens nothing", async (_, headers) => {
    const registry = await startRegistry({ auth: "oauth2" });
    await tokenOf(registry);
    expect(await statuses(registry, headers)).toEqual(all(401));
  });

  test("a token with something after it opens nothing", async () => {
    const registry = await startRegistry({ auth: "oauth2" });
    const { access_token: token } = await tokenOf(registry);
    expect(await statuses(registry, bearer(`${token} x`))).toEqual(all(401));
    expect(await statuses(registry, bearer(`${token}x`))).toEqual(all(401));
  });

  test("a token expires by the registry's clock, to the millisecond", async () => {
    let now = 1_700_000_000_000;
    const registry = await startRegistry({ auth: "oauth2", tokenLifetimeSeconds: 60, now: () => now });
    const headers = bearer((await tokenOf(registry)).access_token);
    now += 59_999;
    expect(await statuses(registry, headers)).toEqual(all(200));
    now += 1;
    expect(await statuses(registry, headers)).toEqual(all(401));
    expect(await statuses(registry, bearer((await tokenOf(registry)).access_token))).toEqual(all(200));
  });

  test("revoking one token leaves the other, revoking all leaves those issued later", async () => {
    const registry = await startRegistry({ auth: "oauth2" });
    const [first, second] = [(await tokenOf(registry)).access_token, (await tokenOf(registry)).access_token];
    expect(first).not.toBe(second);
    registry.revoke(first);
    expect(await statuses(registry, bearer(first))).toEqual(all(401));
    expect(await statuses(registry, bearer(second))).toEqual(all(200));
    registry.revoke();
    expect(await statuses(registry, bearer(second))).toEqual(all(401));
    expect(await statuses(registry, bearer((await tokenOf(registry)).access_token))).toEqual(all(200));
  });

  test("a 401 says what is wrong with the token, in words and in WWW-Authenticate", async () => {
    let now = 0;
    const registry = await startRegistry({ auth: "oauth2", now: () => now });
    const token = (await tokenOf(registry)).access_token;
    const refusal = async (headers: Headers) => {
      const response = await fetch(`${registry.url}v1/definitions`, { headers });
      const { message } = (await response.json()) as { message: string };
      return [message, response.headers.get("www-authenticate")];
    };
    const challenge = 'Bearer realm="dev-registry"';
    const invalid = (message: string) => [
      message,
      `${challenge}, error="invalid_token", error_description="${message}"`,
    ];
    expect((await refusal({}))[1]).toBe(challenge);
    expect(await refusal(bearer("x"))).toEqual(invalid("The access token is unknown"));
    now = 3_600_000;
    expect(await refusal(bearer(token))).toEqual(invalid("The access token is expired"));
    registry.revoke();
    expect(await refusal(bearer(token))).toEqual(invalid("The access token is revoked"));
  });
});

describe("the token endpoint", () => {
  test("grants what was asked for, or all there is", async () => {
    const registry = await startRegistry({ auth: "oauth2" });
    const token = { access_token: expect.stringMatching(/^dev_[\w-]{32}$/), token_type: "Bearer", expires_in: 3600 };
    expect(await tokenOf(registry)).toEqual({ ...token, scope: "definitions:read modules:read" });
    expect(await tokenOf(registry, { scope: "" })).toEqual({ ...token, scope: "definitions:read modules:read" });
    expect(await tokenOf(registry, { scope: "modules:read" })).toEqual({ ...token, scope: "modules:read" });
    registry.set({ scopes: [] });
    expect(await tokenOf(registry)).toEqual(token);
  });

  test.each([
    ["number", 90],
    ["text", "90"],
    ["absent", undefined],
  ] as const)("tells the lifetime as %s, and keeps to it", async (expiresIn, told) => {
    let now = 0;
    const registry = await startRegistry({ auth: "oauth2", tokenLifetimeSeconds: 90, expiresIn, now: () => now });
    const token = await tokenOf(registry);
    expect(token.expires_in).toBe(told);
    now = 90_000;
    expect(await statuses(registry, bearer(token.access_token))).toEqual(all(401));
  });

  test("can send a refresh token, and takes none", async () => {
    const registry = await startRegistry({ auth: "oauth2", refreshToken: "sent" });
    const { refresh_token } = await tokenOf(registry);
    expect(refresh_token).toEqual(expect.any(String));
    const response = await requestToken(registry, { grant_type: "refresh_token", refresh_token });
    expect([response.status, await response.json()]).toMatchObject([400, { error: "unsupported_grant_type" }]);
  });

  test.each<[string, Readonly<Record<string, string | undefined>>, number, string]>([
    ["a wrong secret", { client_secret: "made-up" }, 401, "invalid_client"],
    ["no secret", { client_secret: undefined }, 401, "invalid_client"],
    ["a wrong client", { client_id: "made-up" }, 401, "invalid_client"],
    ["an unknown scope", { scope: "admin" }, 400, "invalid_scope"],
    ["an unknown scope among known ones", { scope: "modules:read admin" }, 400, "invalid_scope"],
    ["scopes with the wrong separator", { scope: "definitions:read,modules:read" }, 400, "invalid_scope"],
    ["another grant", { grant_type: "password" }, 400, "unsupported_grant_type"],
    ["no grant", { grant_type: undefined }, 400, "invalid_request"],
  ])("refuses %s as RFC 6749 says, repeating nothing", async (_, fields, status, error) => {
    const registry = await startRegistry({ auth: "oauth2" });
    const response = await requestToken(registry, fields);
    expect(response.status).toBe(status);
    expect(response.headers.get("cache-control")).toBe("no-store");
    const text = await response.text();
    expect(JSON.parse(text)).toEqual({ error, error_description: expect.any(String) });
    for (const sent of ["dev-secret", "made-up", "admin"]) expect(text).not.toContain(sent);
  });

  test.each<[string, RequestInit, number]>([
    ["JSON", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" }, 400],
    ["a form without its type", { method: "POST", headers: { "Content-Type": "text/plain" }, body: "a=b" }, 400],
    [
      "a repeated field",
      { method: "POST", body: new URLSearchParams("grant_type=client_credentials&grant_type=password") },
      400,
    ],
    ["GET", {}, 405],
  ])("refuses %s", async (_, init, status) => {
    const registry = await startRegistry({ auth: "oauth2" });
    expect((await fetch(registry.tokenEndpoint, init)).status).toBe(status);
  });

  test("takes odd credentials as they are", async () => {
    const odd = { clientId: "a:b/c", clientSecret: "p@+w%rd &=é~€\"' " };
    const registry = await startRegistry({ auth: "oauth2", ...odd });
    await tokenOf(registry, { client_id: odd.clientId, client_secret: odd.clientSecret });
    expect((await requestToken(registry, { client_id: odd.clientId, client_secret: "p@ w%rd" })).status).toBe(401);
  });
});
