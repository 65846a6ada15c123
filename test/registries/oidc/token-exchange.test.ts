/** The token request against a real OAuth 2 server: what is sent, what is taken from the answer, what is told of a refusal. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { account, oddAccounts, openPeer, type Peer, refusal } from "./peer.ts";
import { scopes } from "./token-server.ts";

let peer: Peer;
beforeAll(async () => {
  peer = await openPeer();
});
beforeEach(() => peer.reset());
afterAll(async () => {
  await peer.close();
  // Whatever happened above: no secret of any client was written to the log.
  expect(peer.logged()).not.toContain(account.secret);
});

describe("the token request", () => {
  test("is a form with exactly the four fields, sent once, by POST", async () => {
    await peer.ask({ scopes: ["read", "write"] });
    expect(peer.tokens.seen).toHaveLength(1);
    expect(peer.tokens.seen[0]).toMatchObject({ method: "POST", target: "/token", status: 200 });
    expect(peer.tokens.seen[0]?.headers["content-type"]).toMatch(
      /^application\/x-www-form-urlencoded(;\s*charset=utf-8)?$/i,
    );
    expect(peer.tokens.seen[0]?.headers["content-length"]).toBe(String(peer.tokens.seen[0]?.body.length));
    expect(new Map(peer.form())).toEqual(
      new Map([
        ["grant_type", "client_credentials"],
        ["client_id", account.id],
        ["client_secret", account.secret],
        ["scope", "read write"],
      ]),
    );
    expect(peer.form()).toHaveLength(4);
  });

  test("carries the secret nowhere but in the form", async () => {
    await peer.ask();
    const names = peer.tokens.seen[0]?.rawHeaders.filter((_text, at) => at % 2 === 0).map((name) => name.toLowerCase());
    expect(names).not.toContain("authorization");
    expect(names).not.toContain("cookie");
    expect(peer.tokens.seen[0]?.rawHeaders.join("\n")).not.toContain("CANARY");
    expect(peer.tokens.seen[0]?.target).not.toContain("?");
  });

  test("keeps the query of the token endpoint", async () => {
    await peer.ask({ tokenEndpoint: `${peer.tokens.tokenEndpoint}?tenant=7&x=a%2Bb` });
    expect(peer.tokens.seen[0]?.target).toBe("/token?tenant=7&x=a%2Bb");
  });

  test("is encoded once, also beyond ASCII, where the server can only refuse", async () => {
    const clientSecret = `p@+w%rd &=é~€"'`;
    const refused = await refusal(peer.ask({ clientId: "a:b/c", clientSecret }));
    expect(Object.fromEntries(peer.form())).toMatchObject({ client_id: "a:b/c", client_secret: clientSecret });
    expect(peer.tokens.seen[0]?.body).toMatch(/^[\x21-\x7e]+$/);
    expect(refused).toMatch(new RegExp(`^upstream_failed: .*\\b${peer.tokens.seen[0]?.status}\\b`));
    expect(refused).not.toContain(clientSecret);
  });

  test.each(oddAccounts)("gets a token for the client $id", async ({ id, secret }) => {
    const { accessToken } = await peer.ask({ clientId: id, clientSecret: secret });
    expect(Object.fromEntries(peer.form())).toMatchObject({ client_id: id, client_secret: secret });
    expect(await peer.tokens.introspect(accessToken)).toMatchObject({ active: true, client_id: id });
  });
});

describe("the token", () => {
  test("comes with its lifetime and without a refresh token", async () => {
    const issued = await peer.ask();
    expect(issued).toEqual({
      accessToken: expect.stringMatching(/^\S{20,}$/),
      lifetimeMs: 600_000,
      refreshToken: null,
    });
    expect(await peer.tokens.introspect(issued.accessToken)).toMatchObject({ active: true, client_id: account.id });
  });

  test("is another one with each exchange, and the earlier stays good", async () => {
    const [first, second] = [await peer.ask(), await peer.ask()];
    expect(second.accessToken).not.toBe(first.accessToken);
    expect((await peer.tokens.introspect(first.accessToken)).active).toBe(true);
  });
});

describe("scopes", () => {
  test.each([
    ["all", scopes],
    ["some", ["write"]],
    ["one with characters of the form", ["a&b=c"]],
  ])("%s of them are granted as asked", async (_which, asked) => {
    const { accessToken } = await peer.ask({ scopes: asked });
    expect(Object.fromEntries(peer.form()).scope).toBe(asked.join(" "));
    expect((await peer.tokens.introspect(accessToken)).scope).toBe(asked.join(" "));
  });

  test("none means that the field is left out", async () => {
    const { accessToken } = await peer.ask({ scopes: [] });
    expect(peer.form().map(([name]) => name)).not.toContain("scope");
    expect((await peer.tokens.introspect(accessToken)).scope).toBeUndefined();
  });

  test("one that this server does not know is left out by it, and the token is taken all the same", async () => {
    const { accessToken } = await peer.ask({ scopes: ["read", "fly"] });
    expect(Object.fromEntries(peer.form()).scope).toBe("read fly");
    expect((await peer.tokens.introspect(accessToken)).scope).toBe("read");
  });

  test("one that the client may not have is an invalid_scope, told as its status", async () => {
    const narrow = { id: "narrow", secret: "secret of the narrow one", scope: "read" };
    await peer.tokens.restart([narrow]);
    const refused = await refusal(peer.ask({ clientId: narrow.id, clientSecret: narrow.secret, scopes: ["write"] }));
    expect(refused).toMatch(/^upstream_failed: .*\b400\b/);
    await peer.ask({ clientId: narrow.id, clientSecret: narrow.secret, scopes: ["read"] });
  });
});

describe("a refused client", () => {
  test.each([
    ["a wrong secret", { clientSecret: "CANARY-7f4 is wrong" }],
    ["an unknown client", { clientId: "nobody-CANARY-7f4" }],
    ["an empty secret", { clientSecret: "" }],
  ])("with %s is told the status, and no secret", async (_what, over) => {
    const refused = await refusal(peer.ask(over));
    const [{ status } = { status: 0 }] = peer.tokens.seen;
    expect(status).toBeGreaterThanOrEqual(400);
    expect(refused).toMatch(new RegExp(`^upstream_failed: .*token endpoint.*\\b${status}\\b`, "i"));
    expect(refused).not.toContain("CANARY");
    expect(peer.tokens.seen).toHaveLength(1);
  });

  test("can be corrected", async () => {
    await refusal(peer.ask({ clientSecret: "wrong" }));
    expect((await peer.tokens.introspect((await peer.ask()).accessToken)).active).toBe(true);
  });

  test("whose secret was changed on the server is refused until it is given the new one", async () => {
    await peer.tokens.restart([{ ...account, secret: "CANARY-7f5 is new" }]);
    expect(await refusal(peer.ask())).toMatch(/^upstream_failed: .*\b401\b/);
    await peer.ask({ clientSecret: "CANARY-7f5 is new" });
  });
});

describe("a token endpoint that redirects", () => {
  test.each([301, 302, 303, 307, 308])("with %i is not followed", async (status) => {
    peer.tokens.intercept((response) => response.writeHead(status, { location: peer.tokens.tokenEndpoint }).end());
    expect(await refusal(peer.ask())).toMatch(new RegExp(`^upstream_failed: .*\\b${status}\\b`));
    expect(peer.tokens.seen).toHaveLength(1);
  });
});

test("an exchange that its caller gives up ends at once, as cancelled", async () => {
  const controller = new AbortController();
  peer.tokens.intercept(() => controller.abort());
  const { tokenEndpoint } = peer.tokens;
  const request = { tokenEndpoint, clientId: account.id, clientSecret: account.secret, scopes: [] };
  expect(await refusal(peer.reader.exchange(request, controller.signal))).toMatch(/^cancelled: /);
});
