/** What a registry decides: tokens, setups and drift, as tables and stories. The wire is in test/registries and test/e2e. */
import { describe, expect, it } from "vitest";
import { type NewAuth, type RegistryMessage, type RegistryState, registryKind } from "../../src/actors/registry.ts";
import { driftOf } from "../../src/actors/registry-drift.ts";
import { Failure, isFailure } from "../../src/errors/failure.ts";
import type { AdvertisedAuth } from "../../src/ports/registry-reader.ts";
import type { Step } from "../../src/runtime/kind.ts";
import { transcript } from "./transcript.ts";

const now = 1_700_000_000_000;
const key: NewAuth = { type: "apiKey", headerName: "X-Key", credentials: "sealed key" };
const client = (name = "A"): NewAuth => ({
  type: "oauth2",
  tokenEndpoint: "https://t.test/t",
  credentials: `sealed ${name}`,
});
const token = (name = "t", lifetimeMs = 3_600_000) => ({ envelope: `sealed ${name}`, lifetimeMs });

const add: RegistryMessage = { type: "add", id: "r", baseUrl: "https://r.test/", auth: null, token: null };
const setAuth = (auth: NewAuth): RegistryMessage => ({ type: "setAuth", auth });
const authorize = (refused: number | null = null): RegistryMessage => ({ type: "authorize", refused });
const issued = (generation: number, name?: string, lifetimeMs?: number): RegistryMessage => ({
  type: "tokenIssued",
  generation,
  token: token(name, lifetimeMs),
});
const failed = (generation: number, kind: "refused" | "upstream_failed" = "upstream_failed"): RegistryMessage => ({
  type: "exchangeFailed",
  generation,
  failure: new Failure(kind, "The token endpoint answered with status 503"),
});

function step(state: RegistryState | null, message: RegistryMessage, at = now): Step<RegistryState, unknown> {
  return registryKind.decide(state, message, at);
}

function after(...messages: RegistryMessage[]): RegistryState {
  return messages.reduce<RegistryState | null>((state, message) => step(state, message).state, null) as RegistryState;
}

const configured = after(add, setAuth(client()), issued(1));

describe("a registry", () => {
  it("hands out a token until fewer than 30 s remain, then makes one exchange for all who ask", () => {
    expect(step(configured, authorize(), now + 3_570_000).reply).toEqual({
      type: "oauth2",
      envelope: "sealed t",
      number: 1,
    });
    const first = step(configured, authorize(), now + 3_570_001);
    expect(first).toMatchObject({ defer: "token:1", effects: [{ type: "exchange" }] });
    const second = step(first.state, authorize(), now + 3_570_002);
    expect([second.defer, second.effects, second.state]).toEqual(["token:1", undefined, first.state]);
    const third = step(second.state, issued(1, "u"), now + 3_570_003);
    expect(third.settle).toEqual([{ ticket: "token:1", reply: { type: "oauth2", envelope: "sealed u", number: 2 } }]);
  });

  it("hands out a token shorter than the skew to those who waited for it, and to nobody else", () => {
    const waiting = step(configured, authorize(), now + 3_600_000).state;
    const short = step(waiting, issued(1, "short", 20_000));
    expect(short.settle).toMatchObject([{ reply: { number: 2 } }]);
    expect(step(short.state, authorize()).defer).toBe("token:1");
  });

  it("after a refusal hands out a newer token only", () => {
    expect(step(configured, authorize(0)).reply).toMatchObject({ number: 1 });
    expect(step(configured, authorize(1)).defer).toBe("token:1");
    const renewed = step(step(configured, authorize(1)).state, issued(1)).state;
    expect(step(renewed, authorize(1)).reply).toMatchObject({ number: 2 });
  });

  it("keeps its credentials when an exchange fails, and tells those who waited", () => {
    const waiting = step(configured, authorize(1)).state;
    const after = step(waiting, failed(1));
    expect(after.settle).toMatchObject([{ ticket: "token:1", failure: { kind: "upstream_failed" } }]);
    expect(after.state).toMatchObject({ auth: configured.auth, exchanging: null });
  });

  it("drops what ends after the credentials were replaced or deleted", () => {
    const waiting = step(configured, authorize(1)).state as RegistryState;
    for (const replacement of [setAuth(key), { type: "deleteAuth" } as const]) {
      const replaced = step(waiting, replacement);
      expect(replaced.settle).toContainEqual({ ticket: "token:1", reply: { type: "again" } });
      for (const late of [issued(1, "late"), failed(1)]) expect(step(replaced.state, late).state).toBe(replaced.state);
      expect(replaced.state).toMatchObject({ token: null, exchanging: null });
    }
  });

  it("serves with the former credentials until a setup has ended, and tells waiters to ask again then", () => {
    const during = step(configured, setAuth(client("B")));
    expect(during.defer).toBe("setup:2");
    expect(step(during.state, authorize()).reply).toMatchObject({ envelope: "sealed t" });
    const done = step(during.state, issued(2, "b"));
    expect(done.settle).toMatchObject([{ ticket: "token:1", reply: { type: "again" } }, { ticket: "setup:2" }]);
    expect(step(done.state, authorize()).reply).toMatchObject({ envelope: "sealed b", number: 2 });
  });

  it("takes the later of two setups, whatever order their exchanges end in", () => {
    const both = after(add, setAuth(client("A")), setAuth(client("B")));
    const overtaken = step(after(add, setAuth(client("A"))), setAuth(client("B"))).settle;
    expect(overtaken).toMatchObject([{ ticket: "setup:1", failure: { kind: "conflict" } }]);
    const done = step(step(both, issued(2, "b")).state, issued(1, "a")).state;
    expect(done).toMatchObject({ auth: { credentials: "sealed B" }, token: { envelope: "sealed b" } });
    expect(step(both, issued(1, "a")).state).toBe(both);
  });

  it("stores a setup whose endpoint failed, and nothing of one that we refused", () => {
    const setting = after(add, setAuth(client()));
    expect(step(setting, failed(1)).state).toMatchObject({ auth: { type: "oauth2" }, token: null, setup: null });
    const refused = step(setting, failed(1, "refused"));
    expect(refused.state).toMatchObject({ auth: null, setup: null });
    expect(refused.settle).toMatchObject([{ failure: { kind: "refused" } }]);
  });

  it("owes the exchanges that a restart interrupted, and no others", () => {
    const generations = (state: RegistryState): number[] =>
      registryKind.owed(state).flatMap((effect) => (effect.type === "exchange" ? [effect.auth.generation] : []));
    expect(generations(configured)).toEqual([]);
    expect(generations(step(configured, authorize(1)).state as RegistryState)).toEqual([1]);
    expect(generations(step(configured, setAuth(client("B"))).state as RegistryState)).toEqual([2]);
  });

  it("is moved by a refresh in its two dates only", () => {
    const refreshed = step(configured, { type: "refresh" }, now + 5).state;
    expect(refreshed).toEqual({ ...configured, lastSyncedAt: now + 5, updatedAt: now + 5 });
  });

  it("that is not there refuses requests and ignores late reports", () => {
    for (const message of [authorize(), setAuth(key), { type: "delete" } as const]) {
      try {
        step(null, message);
        expect.unreachable();
      } catch (error) {
        expect(isFailure(error) && error.kind).toBe("not_found");
      }
    }
    expect(step(null, issued(1)).state).toBeNull();
  });

  it("lives as told", async () => {
    const story: RegistryMessage[] = [
      add,
      { type: "observe", advertised: { type: "oauth2", tokenEndpoint: "https://t.test/t", scopes: [] } },
      setAuth(client()),
      failed(1),
      setAuth(client("B")),
      issued(2),
      authorize(),
      authorize(1),
      authorize(1),
      issued(2, "u"),
      { type: "observe", advertised: { type: "oauth2", tokenEndpoint: "https://evil.test/t", scopes: [] } },
      { type: "observe", advertised: { type: "oauth2", tokenEndpoint: "https://evil.test/t", scopes: [] } },
      { type: "deleteAuth" },
      authorize(),
      { type: "delete" },
    ];
    await expect(transcript(registryKind, "r", story)).toMatchFileSnapshot("transcripts/registry-life.txt");
  });
});

describe("drift", () => {
  const oauth2: AdvertisedAuth = { type: "oauth2", tokenEndpoint: "https://t.test/t", scopes: [] };
  const apiKey: AdvertisedAuth = { type: "apiKey", headerName: "X-Key" };
  const keyed = after(add, setAuth(key)).auth;
  const rows = [
    ["nothing configured, nothing advertised", null, null, []],
    ["nothing configured, a method advertised", null, oauth2, ["registry-auth-unconfigured"]],
    [
      "an unsupported method advertised",
      null,
      { type: "unsupported", declared: "basic", reason: "" },
      ["registry-auth-unsupported"],
    ],
    [
      "configured, then unsupported",
      keyed,
      { type: "unsupported", declared: "jwt", reason: "" },
      ["registry-auth-unsupported"],
    ],
    ["configured as advertised", configured.auth, oauth2, []],
    ["the header spelled in other letters", keyed, { type: "apiKey", headerName: "x-KEY" }, []],
    [
      "another token endpoint",
      configured.auth,
      { ...oauth2, tokenEndpoint: "https://e.test/t" },
      ["registry-auth-token-endpoint-drift"],
    ],
    ["another header", keyed, { type: "apiKey", headerName: "X-Other" }, ["registry-auth-header-drift"]],
    ["another method", configured.auth, apiKey, ["registry-auth-type-drift"]],
    ["no method any more", keyed, null, ["registry-auth-type-drift"]],
  ] as const;
  it.each(rows)("%s", (_, auth, advertised, events) => {
    expect(driftOf(auth, advertised).map(({ event }) => event)).toEqual(events);
  });
});
