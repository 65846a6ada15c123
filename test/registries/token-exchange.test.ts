/** The token request over real sockets: what is sent, where, what is made of the answers, and that secrets stay out of errors. */
import type { IncomingMessage, RequestListener } from "node:http";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import type { IssuedToken, TokenRequest } from "../../src/ports/registry-reader.ts";
import { failureOf, serve } from "../egress/fixtures.ts";
import { noSignal, openReading, type Setting, sends } from "./fixtures.ts";

const secret = "CANARY-7f3";

function exchange(url: string, more: Partial<TokenRequest> = {}, setting: Setting = {}): Promise<IssuedToken> {
  const request = { tokenEndpoint: url, clientId: "client", clientSecret: secret, scopes: [], ...more };
  return openReading(setting).reader.exchange(request, noSignal());
}

/** An endpoint that keeps what it was sent. */
async function endpoint(answer: RequestListener) {
  const forms: string[] = [];
  const received: IncomingMessage[] = [];
  const origin = await serve(async (request, response) => {
    received.push(request);
    forms.push(await text(request));
    answer(request, response);
  });
  return { url: `${origin.url}/token`, port: origin.port, forms, received };
}

const hour = 3_600_000;

describe("the request", () => {
  test("is a form with exactly the four fields, and no credentials in headers", async () => {
    const peer = await endpoint(sends({ access_token: "t1" }));
    await exchange(peer.url, { scopes: ["a", "b:c"] });
    expect(peer.forms).toEqual([
      `grant_type=client_credentials&client_id=client&client_secret=${secret}&scope=a+b%3Ac`,
    ]);
    const [request] = peer.received;
    expect(request?.method).toBe("POST");
    expect(request?.headers["content-type"]).toBe("application/x-www-form-urlencoded");
    expect(request?.headers.accept).toBe("application/json");
    expect(request?.headers).not.toHaveProperty("authorization");
  });

  test("has no scope at all when there is none to ask for", async () => {
    const peer = await endpoint(sends({ access_token: "t1" }));
    await exchange(peer.url);
    expect([...new URLSearchParams(peer.forms[0]).keys()]).toEqual(["grant_type", "client_id", "client_secret"]);
  });

  test.each([
    ["a:b/c", "p@+w%rd &=é~€\"'"],
    ["%41", "+ + %2B"],
    ["\u0000\r\n", "💡\t\\"],
    [" ", "a".repeat(4_000)],
  ])("carries id %j and its secret encoded once", async (clientId, clientSecret) => {
    const peer = await endpoint(sends({ access_token: "t1" }));
    await exchange(peer.url, { clientId, clientSecret });
    const form = new URLSearchParams(peer.forms[0]);
    expect([form.get("client_id"), form.get("client_secret")]).toEqual([clientId, clientSecret]);
  });

  test.each([301, 302, 303, 307, 308])(
    "status %i is not followed, neither to a stranger nor to the same origin",
    async (status) => {
      const stranger = await endpoint(sends({ access_token: "stolen" }));
      for (const location of [stranger.url, "/token2", "http://10.0.0.1/token"]) {
        const peer = await endpoint((_request, response) => void response.writeHead(status, { location }).end());
        expect(await failureOf(exchange(peer.url), "upstream_failed")).toBe(
          `The token endpoint answered with status ${status}`,
        );
        expect(peer.received).toHaveLength(1);
      }
      expect(stranger.received).toHaveLength(0);
    },
  );
});

describe("the transport", () => {
  const names = { "idp.test": ["127.0.0.1"] };
  const refusal = 'Registry authentication requires https; credentials are not sent over plaintext http to "idp.test:';

  test("plain http to an address that is not exempt is refused, and nothing is sent", async () => {
    const peer = await endpoint(sends({ access_token: "t1" }));
    const url = `http://idp.test:${peer.port}/token`;
    expect(await failureOf(exchange(url, {}, { names, claimedAddress: "10.77.0.5" }), "refused")).toBe(
      `${refusal}${peer.port}"`,
    );
    const mixed = { names: { "idp.test": ["127.0.0.1", "10.77.0.5"] }, allowedCidrs: ["10.77.0.0/24"] };
    expect(await failureOf(exchange(url, {}, mixed), "refused")).toContain(refusal);
    expect(peer.received).toHaveLength(0);
  });

  test("loopback and listed ranges are exempt", async () => {
    const peer = await endpoint(sends({ access_token: "t1" }));
    const url = `http://idp.test:${peer.port}/token`;
    await exchange(url, {}, { names });
    await exchange(url, {}, { names, claimedAddress: "10.77.0.5", insecureCidrs: ["10.77.0.0/24"] });
    expect(peer.received).toHaveLength(2);
  });

  test("addresses the server may not connect to stay so, https or not", async () => {
    for (const url of ["https://10.77.0.5/token", "https://169.254.169.254/token", "http://10.77.0.5/token"])
      expect(await failureOf(exchange(url, {}, { insecureCidrs: ["10.77.0.0/24"] }), "upstream_failed")).toMatch(
        /^Cannot reach /,
      );
  });
});

describe("the lifetime", () => {
  test.each([
    [undefined, hour],
    [null, hour],
    [3_600, hour],
    ["3600", hour],
    [" 60 ", 60_000],
    ["+60", 60_000],
    [20, 20_000],
    [0.5, 500],
    ["1.9999", 1_999],
    [0, 0],
    [-5, 0],
    ["-5", 0],
    [1e300, 365 * 24 * hour],
    [Number.MAX_SAFE_INTEGER, 365 * 24 * hour],
    ["9".repeat(400), 365 * 24 * hour],
  ])("expires_in %j gives %i ms", async (expiresIn, lifetimeMs) => {
    const peer = await endpoint(sends({ access_token: "t1", expires_in: expiresIn }));
    expect((await exchange(peer.url)).lifetimeMs).toBe(lifetimeMs);
  });

  test.each([["soon"], [""], ["1h"], ["0x10"], ["1e3"], ["NaN"], ["Infinity"], [true], [[60]], [{ seconds: 60 }]])(
    "expires_in %j is malformed",
    async (expiresIn) => {
      const peer = await endpoint(sends({ access_token: "t1", expires_in: expiresIn }));
      expect(await failureOf(exchange(peer.url), "upstream_failed")).toBe(
        'The answer of the token endpoint is malformed: "expires_in" is not a number of seconds',
      );
    },
  );
});

describe("the answer", () => {
  test.each([
    [{ access_token: "t1" }],
    [{ access_token: "t1", token_type: "bearer" }],
    [{ access_token: "t1", token_type: "BEARER", scope: ["a", "b"] }],
    [{ access_token: "t1", token_type: 7, scope: "" }],
    [{ access_token: "t1", scope: null, more: { deep: [1] } }],
    [{ access_token: "t1", refresh_token: 7 }],
    [{ access_token: "t1", refresh_token: "" }],
    [{ access_token: "t1", refresh_token: "x".repeat(20_000) }],
  ])("%j is a token", async (body) => {
    const peer = await endpoint(sends(body));
    expect(await exchange(peer.url)).toEqual({ accessToken: "t1", lifetimeMs: hour, refreshToken: null });
  });

  test("a refresh token is handed on; a byte order mark and a wrong content type do no harm", async () => {
    const body = `\uFEFF${JSON.stringify({ access_token: "a.b-c_d~e+f/g==", refresh_token: "r1" })}`;
    const peer = await endpoint(sends(body, 201, { "content-type": "text/html" }));
    expect(await exchange(peer.url)).toEqual({ accessToken: "a.b-c_d~e+f/g==", lifetimeMs: hour, refreshToken: "r1" });
  });

  const malformed = "The answer of the token endpoint is malformed: ";
  test.each([
    ["<html>login</html>", "The answer of the token endpoint is not valid JSON"],
    ["", "The answer of the token endpoint is not valid JSON"],
    ["access_token=t1", "The answer of the token endpoint is not valid JSON"],
    ["[]", `${malformed}it is not a JSON object`],
    ["null", `${malformed}it is not a JSON object`],
    ['"t1"', `${malformed}it is not a JSON object`],
    ['{"error":"invalid_client"}', `${malformed}"access_token" is missing`],
    ['{"access_token":123}', `${malformed}"access_token" is not a string`],
    ['{"access_token":null}', `${malformed}"access_token" is not a string`],
    ['{"access_token":""}', `${malformed}"access_token" is empty`],
    ['{"access_token":"a\\r\\nX-Evil: 1"}', `${malformed}"access_token" holds characters that no header can carry`],
    ['{"access_token":"a\\u0000"}', `${malformed}"access_token" holds characters that no header can carry`],
    ['{"access_token":" a"}', `${malformed}"access_token" holds characters that no header can carry`],
    ['{"access_token":"€"}', `${malformed}"access_token" holds characters that no header can carry`],
    [`{"access_token":"${"x".repeat(16_385)}"}`, `${malformed}"access_token" is longer than 16384 characters`],
    ['{"__proto__":{"access_token":"t1"}}', 'The answer of the token endpoint has the forbidden key "__proto__"'],
    [
      '{"access_token":"t1","expires_in":1e999}',
      "The answer of the token endpoint holds a number that is out of range",
    ],
  ])("%.40s is a malformed token response, with the reason", async (body, message) => {
    const peer = await endpoint(sends(body));
    expect(await failureOf(exchange(peer.url), "upstream_failed")).toBe(message);
  });

  test.each([204, 300, 304, 400, 401, 403, 404, 429, 500, 503])("status %i is named", async (status) => {
    const peer = await endpoint((_request, response) => void response.writeHead(status).end());
    const expected =
      status === 204
        ? "The answer of the token endpoint is not valid JSON"
        : `The token endpoint answered with status ${status}`;
    expect(await failureOf(exchange(peer.url), "upstream_failed")).toBe(expected);
  });

  test("no error repeats what the endpoint says, though it repeat the secret", async () => {
    const echoes: readonly RequestListener[] = [
      sends({ error: "invalid_client", error_description: `bad secret ${secret}` }, 400),
      sends(`<html>${secret}</html>`, 500),
      sends(`<html>${secret}</html>`),
      sends(`{"${secret}":1e999}`),
      sends(`{"${secret}":{"__proto__":1}}`),
      sends({ access_token: "t", expires_in: secret }),
      sends({ access_token: `${secret}\n` }),
      (_request, response) => void response.writeHead(302, { location: `http://${secret}.test/` }).end(),
      (_request, response) => void response.writeHead(200, { "content-encoding": secret }).end("x"),
      (_request, response) => {
        response.statusMessage = secret;
        response.writeHead(403).end();
      },
    ];
    for (const answer of echoes) {
      const peer = await endpoint(answer);
      const error: unknown = await exchange(peer.url).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(Error);
      expect((error as Error).message).not.toMatch(new RegExp(secret, "i"));
    }
  });
});
