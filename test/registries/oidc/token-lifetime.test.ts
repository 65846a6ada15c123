/** Tokens of a real OAuth 2 server in use: at a registry that checks them, expired, revoked, and after the server restarted. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { account, accounts, openPeer, type Peer, refusal } from "./peer.ts";

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

test("a token opens the capability endpoint, as one bearer header", async () => {
  const holder = peer.hold();
  const { entries, nextCursor } = await peer.browse(holder);
  expect({ ids: entries.map(({ id }) => id), nextCursor }).toEqual({ ids: ["petstore"], nextCursor: null });
  const { accessToken } = (await holder.access.credentials.current()) as { accessToken: string };
  expect(peer.registry.visits).toEqual([{ authorization: [`Bearer ${accessToken}`], status: 200 }]);
  expect(holder.renewals).toEqual([]);
});

describe("a token that the registry refuses", () => {
  test("because it was revoked is replaced once, and the page comes", async () => {
    const holder = peer.hold();
    await peer.browse(holder);
    const { accessToken } = (await holder.access.credentials.current()) as { accessToken: string };
    await peer.tokens.revoke(accessToken, account);
    peer.registry.visits.length = 0;
    peer.tokens.seen.length = 0;
    expect((await peer.browse(holder)).entries).toHaveLength(1);
    expect(peer.registry.visits.map(({ status }) => status)).toEqual([401, 200]);
    expect(peer.registry.visits[0]?.authorization).toEqual([`Bearer ${accessToken}`]);
    expect(peer.registry.visits[1]?.authorization).not.toEqual([`Bearer ${accessToken}`]);
    expect(peer.tokens.seen).toHaveLength(1);
    expect(holder.renewals).toEqual([{ type: "oauth2", accessToken }]);
    await peer.browse(holder);
    expect(peer.tokens.seen).toHaveLength(1);
  });

  test("because it expired is replaced once, and the page comes", async () => {
    // Long enough to be used once on a busy machine; the one that replaces it does not expire again.
    await peer.tokens.restart(accounts, { lifetimeSeconds: 4 });
    const holder = peer.hold();
    expect((await peer.ask()).lifetimeMs).toBe(4_000);
    await peer.browse(holder);
    await delay(5_100);
    await peer.tokens.restart(accounts, { keepsTokens: true, lifetimeSeconds: 600 });
    peer.registry.visits.length = 0;
    await peer.browse(holder);
    expect(peer.registry.visits.map(({ status }) => status)).toEqual([401, 200]);
    expect(holder.renewals).toHaveLength(1);
  });

  test("whatever it is, is replaced once only", async () => {
    const holder = peer.hold();
    peer.verdict = 401;
    const refused = await refusal(peer.browse(holder));
    expect(refused).toMatch(/^upstream_failed: .*\b401\b/);
    expect(peer.registry.visits).toHaveLength(2);
    expect(new Set(peer.registry.visits.flatMap(({ authorization }) => authorization)).size).toBe(2);
    expect(peer.tokens.seen).toHaveLength(2);
    for (const { authorization } of peer.registry.visits) expect(refused).not.toContain(authorization[0]?.slice(7));
  });

  test.each([403, 429, 500, 503])("with %i is not replaced", async (status) => {
    const holder = peer.hold();
    peer.verdict = status;
    expect(await refusal(peer.browse(holder))).toMatch(new RegExp(`^upstream_failed: .*\\b${status}\\b`));
    expect(peer.registry.visits).toHaveLength(1);
    expect(holder.renewals).toEqual([]);
  });

  test("cannot be replaced while the token server is down, and that is what the caller hears", async () => {
    const holder = peer.hold();
    await peer.browse(holder);
    peer.verdict = 401;
    peer.tokens.intercept((response) => response.destroy());
    peer.registry.visits.length = 0;
    const refused = await refusal(peer.browse(holder));
    expect(refused).toMatch(/^upstream_failed: /);
    expect(refused).not.toContain("CANARY");
    expect(peer.registry.visits).toHaveLength(1);
  });

  test("is not replaced when it is an API key", async () => {
    const holder = peer.hold();
    const key = { type: "apiKey", headerName: "Authorization", key: "Bearer CANARY-7f6" } as const;
    const credentials = { ...holder.access.credentials, current: async () => key };
    const refused = await refusal(peer.browse({ ...holder, access: { ...holder.access, credentials } }));
    expect(refused).toMatch(/^upstream_failed: .*\b401\b/);
    expect(peer.registry.visits).toEqual([{ authorization: [key.key], status: 401 }]);
    expect(holder.renewals).toEqual([]);
  });

  test("is not replaced when there is none newer", async () => {
    const holder = peer.hold();
    await peer.browse(holder);
    peer.verdict = 401;
    peer.registry.visits.length = 0;
    const credentials = { ...holder.access.credentials, renewed: async () => null };
    expect(await refusal(peer.browse({ ...holder, access: { ...holder.access, credentials } }))).toMatch(/\b401\b/);
    expect(peer.registry.visits).toHaveLength(1);
  });
});

describe("a token server that restarts", () => {
  test("refuses while it is down, and issues tokens again afterwards", async () => {
    const before = await peer.ask();
    await peer.tokens.stop();
    const refused = await refusal(peer.ask());
    expect(refused).toMatch(/^upstream_failed: /);
    expect(refused).not.toContain("CANARY");
    await peer.tokens.restart(accounts);
    const after = await peer.ask();
    expect((await peer.tokens.introspect(before.accessToken)).active).toBe(false);
    expect((await peer.tokens.introspect(after.accessToken)).active).toBe(true);
  });

  test("and kept its tokens costs a browse nothing", async () => {
    const holder = peer.hold();
    await peer.browse(holder);
    await peer.tokens.restart(accounts, { keepsTokens: true });
    peer.tokens.seen.length = 0;
    await peer.browse(holder);
    expect(peer.registry.visits.map(({ status }) => status)).toEqual([200, 200]);
    expect(peer.tokens.seen).toEqual([]);
  });

  test("costs a browse one exchange, because it forgot the token that was held", async () => {
    const holder = peer.hold();
    await peer.browse(holder);
    await peer.tokens.restart(accounts);
    peer.tokens.seen.length = 0;
    peer.registry.visits.length = 0;
    await peer.browse(holder);
    expect(peer.registry.visits.map(({ status }) => status)).toEqual([401, 200]);
    expect(peer.tokens.seen).toHaveLength(1);
  });
});
