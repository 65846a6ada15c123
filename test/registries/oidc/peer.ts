/** The product's reader, a real token server and a registry that honours its tokens, set up together. */
import { type Egress, openEgress } from "../../../src/egress/egress.ts";
import { isFailure } from "../../../src/errors/failure.ts";
import type { Log } from "../../../src/ports/log.ts";
import type { EntryPage, IssuedToken, RegistryReader, TokenRequest } from "../../../src/ports/registry-reader.ts";
import { openRegistryReader } from "../../../src/registries/registry-reader.ts";
import { realClock } from "../../egress/fixtures.ts";
import { type Holder, holdToken, openProtectedRegistry, type ProtectedRegistry } from "./protected-registry.ts";
import { type ClientAccount, openTokenServer, scopes, type TokenServer } from "./token-server.ts";

export const account: ClientAccount = { id: "troupe", secret: "CANARY-7f3 of the client", scope: scopes.join(" ") };

/** The server takes printable ASCII only, as RFC 6749 does. */
export const oddAccounts: readonly ClientAccount[] = [
  { id: "a:b/c", secret: `p@+w%rd &=~"'` },
  { id: "a+b c%20d", secret: "%41%2B+ +" },
  { id: "x&client_secret=y", secret: "z&grant_type=password&client_id=x" },
  { id: " blanks around ", secret: " secret with blanks around " },
  { id: "back\\slash;semi,comma", secret: "{}[]|\\^`<>#?*!$()" },
  { id: "long", secret: "s".repeat(2_000) },
];

export const accounts = [account, ...oddAccounts];

export interface Peer {
  readonly reader: RegistryReader;
  readonly tokens: TokenServer;
  readonly registry: ProtectedRegistry;
  /** A status that the registry answers whatever the token; undefined: it judges the token. */
  verdict: number | undefined;
  /** One exchange, as the ordinary client and without scopes unless told otherwise. */
  ask(over?: Partial<TokenRequest>): Promise<IssuedToken>;
  hold(): Holder;
  browse(holder: Holder): Promise<EntryPage>;
  /** Of the last token request: what its form decodes to. */
  form(): readonly (readonly [name: string, value: string])[];
  logged(): string;
  reset(): Promise<void>;
  close(): Promise<void>;
}

export async function openPeer(): Promise<Peer> {
  const lines: string[] = [];
  const note = (event: string, message: string, fields?: unknown): void => {
    lines.push(`${event} ${message} ${JSON.stringify(fields)}`);
  };
  const log: Log = { debug: note, info: note, warn: note, error: note };
  const egress: Egress = openEgress({ allowedCidrs: [], blockedCidrs: [], clock: realClock, log });
  const reader = openRegistryReader({ egress, insecureCidrs: [], clock: realClock, log });
  const tokens = await openTokenServer(accounts);
  const { signal } = new AbortController();
  const { tokenEndpoint } = tokens;
  const ordinary = { tokenEndpoint, clientId: account.id, clientSecret: account.secret, scopes: [] };
  const registry = await openProtectedRegistry(tokens, () => peer.verdict);

  const peer: Peer = {
    reader,
    tokens,
    registry,
    verdict: undefined,
    ask: (over = {}) => reader.exchange({ ...ordinary, ...over }, signal),
    hold: () => holdToken(reader, registry, tokenEndpoint, account),
    browse: ({ access }) => reader.page(access, "definitions", registry.definitionsUrl, { limit: 50 }),
    form: () => [...new URLSearchParams(tokens.seen.at(-1)?.body ?? "")],
    logged: () => lines.join("\n"),
    async reset() {
      await tokens.restart(accounts);
      tokens.intercept(undefined);
      tokens.seen.length = 0;
      registry.visits.length = 0;
      peer.verdict = undefined;
    },
    async close() {
      await egress.close();
      await registry.close();
      await tokens.close();
    },
  };
  return peer;
}

/** Kind and message of the failure that the work ends with. */
export async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return isFailure(error) ? `${error.kind}: ${error.message}` : `not a failure: ${String(error)}`;
}
