/**
 * The tables of API document 5.2 (safety refusals, outcomes of a setup, pinning and drift, token lifecycle, scope selection),
 * row by row, each over REST and over gRPC. The log events of registry auth are counted with the rows that cause them.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DevRegistryOptions } from "../../src/dev-registry/dev-registry.ts";
import { type ForeignClient, openForeignClient } from "../e2e/foreign-client.ts";
import { grpcFace, restFace } from "./faces.ts";
import { inTurn, sends } from "./scripted-registry.ts";
import { clientId, clientSecret, countOf, guarded, key, keyed, newId, oauthAt, openSite } from "./site.ts";

const site = openSite();
let client: ForeignClient;
beforeAll(async () => {
  client = await openForeignClient(site.server.grpc);
});
afterAll(() => client.close());

const keySetup = { type: "apiKey", apiKey: key };
const clientSetup = { type: "oauth2", clientId, clientSecret };
const wrongSetup = { ...clientSetup, clientSecret: "CANARY-wrong" };
const unadvertised = { ...clientSetup, scopes: ["definitions:read", "everything", "more"] };

const faces = [restFace(() => site.server), grpcFace(() => client)];

for (const face of faces) {
  const added = async (options: DevRegistryOptions = {}, auth?: Parameters<typeof face.add>[1]) => {
    const remote = await site.dev(options);
    const answer = await face.add(remote.url, auth);
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    return { remote, id: String(answer.body.id), answer: answer.body };
  };
  const events = (id: string): string[] => site.events(id);

  describe(`safety refusals over ${face.name}`, () => {
    const rows = [
      ["U-72 no advertised method", {}, keySetup, /^The registry does not advertise an auth method/],
      [
        "U-73 unsupported advertisement",
        { advertisedAuth: { type: "jwt" } },
        keySetup,
        /^The registry advertises unsupported auth.*jwt/,
      ],
      [
        "U-71 unsupported advertisement with its reason",
        { advertisedAuth: { type: "apiKey", name: "k", in: "query" } },
        keySetup,
        /^The registry advertises unsupported auth.*apiKey.*must be "header".*query-param keys are not supported/,
      ],
      [
        "U-77 unsupported grant",
        { advertisedAuth: { type: "oauth2", grantType: "authorization_code" } },
        clientSetup,
        /^The registry advertises unsupported auth.*oauth2.*authorization_code/,
      ],
      ["U-74 method mismatch, a key for oauth2", guarded, keySetup, /^The registry advertises oauth2.*cannot be used$/],
      [
        "U-75 method mismatch, a client for apiKey",
        keyed,
        clientSetup,
        /^The registry advertises apiKey.*cannot be used$/,
      ],
      [
        "U-98 plaintext transport of the token endpoint",
        { advertisedAuth: { type: "oauth2", tokenEndpoint: "http://192.0.2.1/token" } },
        clientSetup,
        /^Registry authentication requires https/,
      ],
      [
        "U-87, U-88 unadvertised scopes",
        guarded,
        unadvertised,
        /^Requested scope\(s\) not advertised by the registry.*everything, more$/,
      ],
    ] as const;

    for (const [title, options, setup, message] of rows) {
      it(`${title}: on POST /registries, no record`, async () => {
        const id = newId();
        const remote = await site.dev({ ...options, id });
        const { status, body } = await face.add(remote.url, setup);
        expect([status, body.code]).toEqual([400, "refused"]);
        expect(body.error).toMatch(message);
        expect((await face.get(id)).status).toBe(404);
        expect(countOf(remote, "token")).toBe(0);
      });

      it(`${title}: on POST auth, nothing is stored and earlier credentials stay`, async () => {
        const { id, remote } = await added({ ...guarded }, clientSetup);
        const before = await face.get(id);
        remote.set(options);
        if (!("auth" in options)) remote.set({ auth: "none" });
        const tokens = countOf(remote, "token");
        const { status, body } = await face.setAuth(id, setup);
        expect([status, body.code]).toEqual([400, "refused"]);
        expect(body.error).toMatch(message);
        expect(await face.get(id)).toEqual(before);
        expect(countOf(remote, "token")).toBe(tokens);
        remote.set({ ...guarded, advertisedAuth: undefined });
        expect((await face.browse(id)).status).toBe(200);
        expect(remote.requests.at(-1)?.headers.authorization).toMatch(/^Bearer dev_/);
      });
    }

    it("W5 a scope named where none is advertised is unadvertised", async () => {
      const { id, remote } = await added({ ...guarded, scopes: [] });
      const { body } = await face.setAuth(id, { ...clientSetup, scopes: ["a"] });
      expect([body.code, body.error]).toEqual(["refused", "Requested scope(s) not advertised by the registry: a"]);
      expect(countOf(remote, "token")).toBe(0);
    });
  });

  describe(`outcomes of a setup over ${face.name}`, () => {
    it("U-89 a failed exchange on add still creates the registry, without credentials", async () => {
      const { id, answer } = await added(guarded, wrongSetup);
      expect(answer.auth).toEqual({ type: "oauth2", status: "error", message: expect.stringContaining("status 401") });
      expect((await face.getAuth(id)).body).not.toHaveProperty("authType");
      expect((await face.get(id)).body).not.toHaveProperty("authType");
      expect(JSON.stringify(answer)).not.toContain("CANARY");
      expect(events(id)).toEqual(["registry-auth-unconfigured"]);
    });

    it("U-90 and a correct setup then configures it", async () => {
      const { id } = await added(guarded, wrongSetup);
      expect((await face.setAuth(id, clientSetup)).body.auth.status).toBe("configured");
      expect((await face.browse(id)).status).toBe(200);
    });

    it("U-91, U-92, R-017 a failed exchange on POST auth stores the credentials and blocks nothing", async () => {
      const { id, remote } = await added(guarded);
      const wrong = await face.setAuth(id, wrongSetup);
      expect([wrong.status, wrong.body.auth]).toEqual([
        200,
        { type: "oauth2", status: "error", message: expect.stringContaining("status 401") },
      ]);
      const state = await face.getAuth(id);
      expect(state.body).toMatchObject({ authType: "oauth2", tokenEndpoint: remote.tokenEndpoint });
      expect(state.body).not.toHaveProperty("tokenExpiresAt");
      expect((await face.refresh(id)).status).toBe(200);
      expect((await face.browse(id)).status).toBe(502);
      const right = await face.setAuth(id, clientSetup);
      expect(right.body.auth.status).toBe("configured");
      expect((await face.browse(id)).status).toBe(200);
    });

    it("U-96, D5 a token endpoint that answers 400 is a failed exchange, not a refusal", async () => {
      for (const path of ["add", "set"] as const) {
        const remote = await site.scripted();
        remote.script("/.well-known/registry.json", {
          id: newId(),
          definitions: { v1: "/d" },
          ...oauthAt(`${remote.url}t`),
        });
        remote.script("/t", sends({ error: "invalid_scope", error_description: clientSecret }, 400));
        const first = await face.add(remote.url, path === "add" ? clientSetup : undefined);
        const { status, body } = path === "add" ? first : await face.setAuth(first.body.id, clientSetup);
        expect([path, status, body.auth]).toEqual([
          path,
          200,
          { type: "oauth2", status: "error", message: expect.stringContaining("status 400") },
        ]);
        expect(JSON.stringify(body)).not.toContain("CANARY");
        expect((await face.get(first.body.id)).body.authType).toBe(path === "add" ? undefined : "oauth2");
      }
    });

    it("U-69, U-70 a key is configured, with its header, and sent", async () => {
      const { id, remote } = await added(keyed);
      const outcome = { type: "apiKey", status: "configured", headerName: "X-Dev-Registry-Key" };
      expect((await face.setAuth(id, keySetup)).body).toEqual({ auth: outcome });
      expect((await face.browse(id)).status).toBe(200);
      expect(remote.requests.at(-1)?.headers["x-dev-registry-key"]).toBe(key);
      expect((await added(keyed, keySetup)).answer.auth).toEqual(outcome);
    });

    it("a client is configured, with the expiry of its token", async () => {
      const { id, answer } = await added(guarded, clientSetup);
      expect(answer.auth).toEqual({ type: "oauth2", status: "configured", tokenExpiresAt: answer.tokenExpiresAt });
      const set = await face.setAuth(id, clientSetup);
      expect(set.body.auth).toEqual({ type: "oauth2", status: "configured", tokenExpiresAt: expect.any(Number) });
      expect(Math.abs(set.body.auth.tokenExpiresAt - Date.now() - 3_600_000)).toBeLessThan(30_000);
      expect((await face.get(id)).body.tokenExpiresAt).toBe(set.body.auth.tokenExpiresAt);
    });

    it("U-119, U-123, U-124 deleted twice is 404, unknown registries are 404, broken bodies 400", async () => {
      const { id } = await added(keyed, keySetup);
      expect((await face.deleteAuth(id)).status).toBe(200);
      expect((await face.deleteAuth(id)).body.code).toBe("not_found");
      expect((await face.setAuth("nowhere", keySetup)).body.code).toBe("not_found");
      expect((await face.getAuth("nowhere")).body.code).toBe("not_found");
      for (const setup of [
        { type: "apiKey", apiKey: " " },
        { type: "basic", apiKey: "k" },
        { ...clientSetup, scopes: [""] },
        { ...clientSetup, clientId: "" },
      ]) {
        expect((await face.setAuth(id, setup)).body.code).toBe("invalid_request");
      }
    });
  });

  describe(`pinning and drift over ${face.name}`, () => {
    it("what a refused setup read of the advertisement is logged too, once", async () => {
      const { id, remote } = await added();
      remote.set({ advertisedAuth: { type: "jwt" } });
      expect((await face.setAuth(id, keySetup)).status).toBe(400);
      expect((await face.setAuth(id, keySetup)).status).toBe(400);
      expect(events(id)).toEqual(["registry-auth-unsupported"]);
    });

    it("U-113, R-042 a changed token endpoint is not used, but logged once, until it is configured anew", async () => {
      const { id, remote } = await added(guarded, clientSetup);
      const elsewhere = await site.scripted({}, { "/t": { access_token: "stolen" } });
      remote.set({ advertisedAuth: { type: "oauth2", tokenEndpoint: `${elsewhere.url}t` } });
      expect((await face.refresh(id)).status).toBe(200);
      expect((await face.refresh(id)).status).toBe(200);
      remote.revoke();
      expect((await face.browse(id)).status).toBe(200);
      expect((await face.getAuth(id)).body.tokenEndpoint).toBe(remote.tokenEndpoint);
      expect(elsewhere.asked).toEqual([]);
      expect(events(id)).toEqual(["registry-auth-token-endpoint-drift"]);
      expect((await face.setAuth(id, clientSetup)).body.auth.status).toBe("configured");
      expect((await face.getAuth(id)).body.tokenEndpoint).toBe(`${elsewhere.url}t`);
      expect(elsewhere.askedFor("/t")).toHaveLength(1);
      expect(events(id)).toHaveLength(1);
    });

    it("U-114, U-117 a changed header is not used, but logged once, until it is configured anew", async () => {
      const { id, remote } = await added(keyed, keySetup);
      remote.set({ drift: "values" });
      for (let turn = 0; turn < 2; turn++) expect((await face.refresh(id)).status).toBe(200);
      expect((await face.browse(id)).status).toBe(200);
      expect((await face.getAuth(id)).body.headerName).toBe("X-Dev-Registry-Key");
      expect(events(id)).toEqual(["registry-auth-header-drift"]);
      await face.setAuth(id, keySetup);
      expect((await face.getAuth(id)).body.headerName).toBe("X-Dev-Registry-Key-Drift");
      remote.set({ headerName: "X-Dev-Registry-Key-Drift", drift: "off" });
      expect((await face.browse(id)).status).toBe(200);
      expect(events(id)).toHaveLength(1);
    });

    it("U-115, U-116, R-043 each kind of drift is logged under its name, and the pinned header is sent throughout", async () => {
      const { id, remote } = await added(keyed);
      expect(events(id)).toEqual(["registry-auth-unconfigured"]);
      await face.setAuth(id, keySetup);
      const seen: string[] = [];
      for (const advertisedAuth of [
        { type: "apiKey", name: "X-B" },
        { type: "oauth2", tokenEndpoint: "https://idp.test/t" },
        { type: "basic" },
      ]) {
        remote.set({ advertisedAuth });
        expect((await face.refresh(id)).status).toBe(200);
        expect((await face.browse(id)).status).toBe(200);
        expect(remote.requests.at(-1)?.headers["x-dev-registry-key"]).toBe(key);
        seen.push(events(id).at(-1) ?? "");
      }
      remote.set({ advertisedAuth: undefined, drift: "removed" });
      expect((await face.refresh(id)).status).toBe(200);
      expect([...seen, events(id).at(-1)]).toEqual([
        "registry-auth-header-drift",
        "registry-auth-type-drift",
        "registry-auth-unsupported",
        "registry-auth-type-drift",
      ]);
      expect(events(id)).toHaveLength(5);
    });

    it("W17 a header that differs in case only has not drifted", async () => {
      const { id, remote } = await added(keyed, keySetup);
      remote.set({ headerName: "x-dev-registry-KEY" });
      await face.refresh(id);
      expect(events(id)).toEqual([]);
    });

    it("U-118, R-014 another method replaces the old one whole", async () => {
      const { id, remote } = await added(guarded, clientSetup);
      remote.set(keyed);
      expect((await face.setAuth(id, keySetup)).body.auth.status).toBe("configured");
      expect((await face.browse(id)).status).toBe(200);
      expect(remote.requests.at(-1)?.headers.authorization).toBeUndefined();
      expect((await face.getAuth(id)).body).toEqual({
        authType: "apiKey",
        headerName: "X-Dev-Registry-Key",
        availableScopes: [],
        configuredScopes: [],
      });
      remote.set(guarded);
      expect((await face.setAuth(id, clientSetup)).body.auth.status).toBe("configured");
      const { body } = await face.getAuth(id);
      expect(body).toMatchObject({ authType: "oauth2", tokenEndpoint: remote.tokenEndpoint });
      expect(body).not.toHaveProperty("headerName");
    });

    it("an unsupported advertisement is logged on add and when auth is read, once", async () => {
      const { id, remote } = await added({ advertisedAuth: { type: "jwt" } });
      await face.getAuth(id);
      await face.refresh(id);
      expect(events(id)).toEqual(["registry-auth-unsupported"]);
      expect((await face.browse(id)).status).toBe(200);
      remote.set({ advertisedAuth: { type: "basic" } });
      await face.getAuth(id);
      expect(events(id)).toEqual(["registry-auth-unsupported", "registry-auth-unsupported"]);
    });

    it("each event is a warning; the drift of an endpoint or header says that the pinned one is retained", async () => {
      const client = await added(guarded, clientSetup);
      const keyHolder = await added(keyed, keySetup);
      for (const { id, remote } of [client, keyHolder]) {
        remote.set({ drift: "values" });
        await face.refresh(id);
      }
      expect([...site.records(client.id), ...site.records(keyHolder.id)]).toMatchObject([
        {
          level: "warn",
          event: "registry-auth-token-endpoint-drift",
          message: expect.stringContaining("the pinned endpoint is retained"),
        },
        {
          level: "warn",
          event: "registry-auth-header-drift",
          message: expect.stringContaining("the pinned header is retained"),
        },
      ]);
    });

    it("a change read by many at once is logged once; credentials that are deleted leave it unconfigured", async () => {
      const { id, remote } = await added(keyed, keySetup);
      remote.set({ drift: "values" });
      await Promise.all(Array.from({ length: 10 }, () => face.getAuth(id)));
      expect(events(id)).toEqual(["registry-auth-header-drift"]);
      await face.deleteAuth(id);
      await Promise.all([face.getAuth(id), face.refresh(id)]);
      expect(events(id)).toEqual(["registry-auth-header-drift", "registry-auth-unconfigured"]);
    });

    it("nothing is logged where nothing is advertised or all agrees", async () => {
      const open = await added();
      await face.refresh(open.id);
      const closed = await added(guarded, clientSetup);
      await face.refresh(closed.id);
      await face.getAuth(closed.id);
      expect([...events(open.id), ...events(closed.id)]).toEqual([]);
    });
  });

  describe(`token lifecycle over ${face.name}`, () => {
    it("lifecycle 1 a token is used again until it has fewer than 30 s left", async () => {
      const { id, remote } = await added({ ...guarded, tokenLifetimeSeconds: 60 }, clientSetup);
      for (let turn = 0; turn < 3; turn++) expect((await face.browse(id)).status).toBe(200);
      expect(countOf(remote, "token")).toBe(1);
      const short = await added({ ...guarded, tokenLifetimeSeconds: 29 }, clientSetup);
      expect((await face.browse(short.id)).status).toBe(200);
      expect(countOf(short.remote, "token")).toBe(2);
    });

    it("lifecycle 2, U-106 concurrent first requests share one exchange", async () => {
      const { id, remote } = await added(guarded, clientSetup);
      remote.revoke();
      remote.set({ faults: { token: { do: "delay", ms: 100 } } });
      const browsed = await Promise.all(Array.from({ length: 20 }, () => face.browse(id)));
      expect(new Set(browsed.map(({ status }) => status))).toEqual(new Set([200]));
      expect(countOf(remote, "token")).toBe(2);
    });

    it("lifecycle 3 the token request is a POST form of exactly four fields", async () => {
      const { remote } = await added(guarded, { ...clientSetup, scopes: ["modules:read", "definitions:read"] });
      const request = remote.requests.find(({ route }) => route === "token");
      expect([request?.method, request?.headers["content-type"]]).toEqual([
        "POST",
        "application/x-www-form-urlencoded",
      ]);
      expect([...new URLSearchParams(request?.body)].sort()).toEqual([
        ["client_id", clientId],
        ["client_secret", clientSecret],
        ["grant_type", "client_credentials"],
        ["scope", "modules:read definitions:read"],
      ]);
      expect(request?.headers.authorization).toBeUndefined();
    });

    it("lifecycle 4, U-97 without expires_in a token lasts one hour; a refresh token is never used", async () => {
      const { id, answer, remote } = await added(
        { ...guarded, expiresIn: "absent", refreshToken: "sent", tokenLifetimeSeconds: 1_000 },
        clientSetup,
      );
      expect(Math.abs(answer.tokenExpiresAt - Date.now() - 3_600_000)).toBeLessThan(30_000);
      remote.revoke();
      expect((await face.browse(id)).status).toBe(200);
      const grants = remote.requests.filter(({ route }) => route === "token").map(({ body }) => body);
      expect(grants).toHaveLength(2);
      for (const body of grants) expect(body).not.toContain("refresh");
    });

    it("lifecycle 5, U-108, U-109, R-008 a 401 leads to one retry with a new token, then to 502", async () => {
      const { id, remote } = await added(guarded, clientSetup);
      remote.revoke();
      expect((await face.browse(id)).status).toBe(200);
      expect([countOf(remote, "definitions"), countOf(remote, "token")]).toEqual([2, 2]);
      remote.set({ faults: { definitions: { do: "replace", status: 401, body: "{}" } } });
      expect((await face.browse(id)).body.code).toBe("upstream_failed");
      expect([countOf(remote, "definitions"), countOf(remote, "token")]).toEqual([4, 3]);
    });

    it("lifecycle 5, U-110, R-009 a key is never retried, nor is a 403 or 429 for either method", async () => {
      for (const [options, setup, statuses] of [
        [keyed, keySetup, [401, 403, 429]],
        [guarded, clientSetup, [403, 429]],
      ] as const) {
        const { id, remote } = await added(options, setup);
        for (const status of statuses) {
          const before = countOf(remote, "definitions");
          remote.set({ faults: { definitions: { do: "replace", status, body: "{}" } } });
          expect((await face.browse(id)).body.code).toBe("upstream_failed");
          expect(countOf(remote, "definitions") - before).toBe(1);
        }
        expect(countOf(remote, "token")).toBe(setup === keySetup ? 0 : 1);
      }
    });

    it.each([
      ["U-93 is text", sends("<html>login</html>"), /JSON/],
      ["U-94 has no access_token", sends({ token_type: "Bearer" }), /"access_token" is missing/],
      ["is answered with 503", sends("", 503), /status 503/],
      ["is answered with a redirect", sends("", 307, { location: "/elsewhere" }), /status 307/],
    ])(
      "lifecycle 6 a token answer that %s is told in the setup and in the browse, 502",
      async (_what, script, reason) => {
        const remote = await site.scripted();
        const good = { access_token: "t", expires_in: 10 };
        const auth = oauthAt(`${remote.url}t`);
        remote.script("/.well-known/registry.json", { id: newId(), definitions: { v1: "/d" }, ...auth });
        remote.script("/t", inTurn(good, script));
        const { body } = await face.add(remote.url, clientSetup);
        const browsed = await face.browse(body.id);
        expect([browsed.status, browsed.body.code]).toEqual([502, "upstream_failed"]);
        expect(browsed.body.error).toMatch(reason);
        const set = await face.setAuth(body.id, clientSetup);
        expect(set.body.auth).toEqual({ type: "oauth2", status: "error", message: expect.stringMatching(reason) });
      },
    );
  });

  describe(`scope selection over ${face.name}`, () => {
    const all = ["definitions:read", "modules:read"];
    const rows = [
      ["selection 1, U-82 a subset is sent as it is", undefined, ["modules:read"], "modules:read", ["modules:read"]],
      ["selection 2, U-83 omitted: the whole advertised set", undefined, undefined, all.join(" "), all],
      ["selection 4, U-85 none advertised: no parameter at all", [], undefined, null, []],
      ["D12 an empty list: no parameter at all", undefined, [], null, []],
    ] as const;

    for (const [title, advertised, scopes, sent, configured] of rows) {
      it(`${title}, and at every renewal the same (U-84)`, async () => {
        const { id, remote } = await added({ ...guarded, ...(advertised === undefined ? {} : { scopes: advertised }) });
        const setup = { ...clientSetup, ...(scopes === undefined ? {} : { scopes }) };
        expect((await face.setAuth(id, setup)).body.auth.status).toBe("configured");
        remote.revoke();
        expect((await face.browse(id)).status).toBe(200);
        const forms = remote.requests
          .filter(({ route }) => route === "token")
          .map(({ body }) => new URLSearchParams(body));
        expect(forms.map((form) => form.get("scope"))).toEqual([sent, sent]);
        expect((await face.getAuth(id)).body.configuredScopes).toEqual(configured);
      });
    }

    it("selection 5, U-120, U-121, U-122 the state shows what is advertised now, configured or not", async () => {
      const { id, remote } = await added(guarded);
      const first = (await face.getAuth(id)).body;
      expect(first).toEqual({
        availableScopes: [
          { id: "definitions:read", description: expect.any(String) },
          { id: "modules:read", description: expect.any(String) },
        ],
        configuredScopes: [],
      });
      remote.set({ scopes: [{ id: "new" }] });
      expect((await face.getAuth(id)).body.availableScopes).toEqual([{ id: "new", description: "" }]);
      remote.set({ advertisedAuth: { type: "oauth2", grantType: "password" } });
      expect((await face.getAuth(id)).body.availableScopes).toEqual([]);
      await remote.close();
      expect((await face.getAuth(id)).body.code).toBe("upstream_failed");
    });
  });
}
