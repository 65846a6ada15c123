/** What a log line may not say, in the shapes it gets there; and what it must still say. */
import { describe, expect, it } from "vitest";
import { maskText, namesSecret, toLoggable } from "../../src/observability/masking.ts";

const canary = "cnr7f3e9a";
const loggable = (value: unknown, characters = 16_384): unknown => toLoggable(value, { characters });

describe("names", () => {
  it.each([
    ...["authorization", "Authorization", "proxy-authorization", "cookie", "Set-Cookie", "password", "db_password"],
    ...["secret", "clientSecret", "client_secret", "token", "access_token", "refreshToken", "x-auth-token"],
    ...["apiKey", "api_key", "X-Api-Key", "APIKEY", "privateKey", "x-registry-key", "credentials", "jwt", "passphrase"],
  ])("%s names a secret", (name) => expect(namesSecret(name)).toBe(true));

  it.each([
    ...[
      "key",
      "keyId",
      "tokenEndpoint",
      "tokenExpiresAt",
      "secretsKeyExposed",
      "passwordless",
      "author",
      "monkey",
      "status",
    ],
    ...["", "route", "caller", "serviceId"],
  ])("%j does not", (name) => expect(namesSecret(name)).toBe(false));
});

describe("texts", () => {
  it.each([
    `{ headers: { authorization: 'Bearer ${canary}' } }`,
    `{ authorization: [secret], 'x-api-key': '${canary}' }`,
    `{"access_token":"${canary}","expires_in":30}`,
    `{"client_secret": "a\\"${canary}"}`,
    `{ password: "it's ${canary}" }`,
    `{ token: \`${canary}\` }`,
    `{"password":"${canary} and cut off here`,
    `GET / HTTP/1.1\r\nAuthorization: Bearer ${canary}\r\nHost: x`,
    `Cookie: a=b; session=${canary}`,
    `proxy-authorization=Basic ${canary}`,
    `GET https://x.test/a?api_key=${canary}&b=1`,
    `https://x.test/?b=1&access_token=${canary}#part`,
    `{ API_KEY='${canary}' }`,
  ])("%j loses its secret", (text) => expect(maskText(text)).not.toContain(canary));

  it.each([
    'Field "password": required',
    "The token endpoint answered 500",
    'Cannot read "https://x.test/?page=2": the connection was refused',
    "token: expired",
    "SERVICE_SECRETS_KEY: must be base64 of exactly 32 bytes",
    'No SERVICE_SECRETS_KEY is set: a key was generated in "/data/secrets.key"',
    "authorization was refused",
    "the key 'petstore' is not known",
  ])("%j stays as it is", (text) => expect(maskText(text)).toBe(text));

  it("keeps what stands around a secret", () => {
    expect(maskText(`{ a: 1, token: '${canary}', b: 2 }`)).toBe("{ a: 1, token: '[masked]', b: 2 }");
    expect(maskText(`?x=1&token=${canary}&y=2`)).toBe("?x=1&token=[masked]&y=2");
    expect(maskText(`Authorization: Bearer ${canary}\nHost: x`)).toBe("Authorization: [masked]\nHost: x");
  });

  it("says the same when it is masked again", () => {
    for (const text of [`authorization: Bearer ${canary}`, `?token=${canary}`, `{ token: '${canary}' }`]) {
      expect(maskText(maskText(text))).toBe(maskText(text));
    }
  });

  it("takes no time to speak of for texts made to be slow", () => {
    const started = performance.now();
    for (const piece of ["token", "token=", "'token': ", "-_", "a-token-", "\\'", "authorization: ", "?a=", '"']) {
      maskText(piece.repeat(8_192 / piece.length));
    }
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});

describe("fields", () => {
  it("are masked by name, however deep", () => {
    const value = { request: { headers: { Authorization: canary, accept: "x" }, list: [{ apiKey: [canary] }] } };
    const masked = JSON.stringify(loggable(value));
    expect(masked).not.toContain(canary);
    expect(masked).toContain('"accept":"x"');
  });

  it("that say themselves how they are written are written so", () => {
    expect(loggable({ a: { held: canary, toJSON: () => "[held]" } })).toEqual({ a: "[held]" });
  });

  it("without a value stay so", () => expect(loggable({ token: null, password: undefined })).toEqual({ token: null }));

  const loop: Record<string, unknown> = {};
  loop.self = loop;
  it.each<[string, unknown]>([
    ["a loop", loop],
    ["a bigint", { a: 1n }],
    ["a function", { a: () => 1 }],
    ["a symbol", { a: Symbol("s") }],
    ["not a number", { a: Number.NaN, b: Number.POSITIVE_INFINITY }],
    ["an invalid date", { a: new Date(Number.NaN) }],
    [
      "a getter that throws",
      {
        get a() {
          throw new Error("no");
        },
      },
    ],
    [
      "a toJSON that throws",
      {
        toJSON() {
          throw new Error("no");
        },
      },
    ],
    [
      "a toJSON that answers itself",
      {
        toJSON() {
          return this;
        },
      },
    ],
    [
      "a proxy that throws",
      new Proxy(
        {},
        {
          ownKeys() {
            throw new Error("no");
          },
        },
      ),
    ],
    ["an object without prototype", Object.assign(Object.create(null), { a: 1 })],
    ["an error", new Error("wrong")],
    ["half a character", { a: "\ud800" }],
    ["a map", new Map([["a", 1]])],
  ])("that hold %s become JSON", (_, value) => {
    const text = JSON.stringify({ field: loggable(value) });
    expect(text.isWellFormed()).toBe(true);
    expect(JSON.parse(text)).toBeTypeOf("object");
  });

  it.each<[string, unknown]>([
    ["long text", "x".repeat(1_000_000)],
    ["many members", Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`name${at}`, at]))],
    ["many items", Array.from({ length: 100_000 }, () => "text")],
    ["long names", { ["n".repeat(100_000)]: 1 }],
    [
      "wide trees",
      Array.from({ length: 100 }, () => Array.from({ length: 100 }, () => Array.from({ length: 100 }, () => 1))),
    ],
    ["many long texts", Array.from({ length: 100 }, () => "x".repeat(10_000))],
  ])("that hold %s are cut", (_, value) => {
    expect(JSON.stringify(loggable(value, 2_000)).length).toBeLessThan(6_000);
  });
});
