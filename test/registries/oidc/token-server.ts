/**
 * A real OAuth 2 server (oidc-provider) on loopback, behind a front that keeps what it was sent, byte for byte. The front is the
 * token endpoint that the product sees; it keeps its address while the server behind it is stopped and started again.
 */
import { generateKeyPairSync } from "node:crypto";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Provider, { type JWK } from "oidc-provider";
import { openShelf } from "./token-shelf.ts";

export interface ClientAccount {
  readonly id: string;
  readonly secret: string;
  /** Scopes it may ask for, joined by blanks. */
  readonly scope?: string;
}

export interface TokenRequestSeen {
  readonly method: string;
  readonly target: string;
  /** As they came: name, value, name, value. */
  readonly rawHeaders: readonly string[];
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
  readonly status: number;
}

export interface TokenServer {
  readonly tokenEndpoint: string;
  readonly seen: TokenRequestSeen[];
  /** Whether a token is in force, as the server itself says over its introspection endpoint, and for which scopes. */
  introspect(
    token: string,
  ): Promise<{ readonly active: boolean; readonly scope?: string; readonly client_id?: string }>;
  revoke(token: string, account: ClientAccount): Promise<void>;
  stop(): Promise<void>;
  /** Stops it if it runs, and starts it with these clients and the tokens it issued before, or without them. */
  restart(accounts: readonly ClientAccount[], options?: RestartOptions): Promise<void>;
  /** Answers the next requests itself instead of asking the server. */
  intercept(answer: ((response: ServerResponse) => void) | undefined): void;
  close(): Promise<void>;
}

export interface RestartOptions {
  readonly keepsTokens?: boolean;
  readonly lifetimeSeconds?: number;
}

export const scopes = ["read", "write", "urn:x:y/z", "a&b=c"];
const inspector: ClientAccount = { id: "inspector", secret: "secret of the inspector" };

export async function openTokenServer(accounts: readonly ClientAccount[]): Promise<TokenServer> {
  const seen: TokenRequestSeen[] = [];
  let intercepted: ((response: ServerResponse) => void) | undefined;
  let behind: Server | undefined;
  let shelf = openShelf();
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const keys = [privateKey.export({ format: "jwk" }) as JWK];

  const front = createServer(async (incoming, response) => {
    const body = await textOf(incoming);
    response.on("finish", () => {
      const { method = "", url = "", rawHeaders, headers } = incoming;
      seen.push({ method, target: url, rawHeaders, headers, body, status: response.statusCode });
    });
    if (intercepted !== undefined) intercepted(response);
    else pass(incoming, body, portOf(behind), response);
  });
  const port = await listen(front, 0);

  async function restart(
    known: readonly ClientAccount[],
    { keepsTokens = false, lifetimeSeconds = 600 }: RestartOptions = {},
  ): Promise<void> {
    await stop();
    if (!keepsTokens) shelf = openShelf();
    const provider = new Provider(`http://127.0.0.1:${port}`, {
      clients: [inspector, ...known].map(({ id, secret, scope }) => ({
        client_id: id,
        client_secret: secret,
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
        token_endpoint_auth_method: "client_secret_post",
        ...(scope === undefined ? {} : { scope }),
      })),
      adapter: shelf,
      jwks: { keys },
      scopes,
      features: {
        clientCredentials: { enabled: true },
        devInteractions: { enabled: false },
        introspection: { enabled: true, allowedPolicy: () => true },
        revocation: { enabled: true, allowedPolicy: () => true },
      },
      ttl: { ClientCredentials: lifetimeSeconds },
    });
    behind = createServer(provider.callback());
    await listen(behind, 0);
  }

  async function stop(): Promise<void> {
    const server = behind;
    behind = undefined;
    await closed(server);
  }

  async function post(path: string, fields: Readonly<Record<string, string>>): Promise<Response> {
    const body = new URLSearchParams(fields);
    return fetch(`http://127.0.0.1:${portOf(behind)}${path}`, { method: "POST", body });
  }

  await restart(accounts);
  return {
    tokenEndpoint: `http://127.0.0.1:${port}/token`,
    seen,
    async introspect(token) {
      const asked = { token, client_id: inspector.id, client_secret: inspector.secret };
      const answer = await post("/token/introspection", asked);
      return (await answer.json()) as { active: boolean };
    },
    async revoke(token, { id, secret }) {
      await post("/token/revocation", { token, client_id: id, client_secret: secret });
    },
    stop,
    restart,
    intercept(answer) {
      intercepted = answer;
    },
    async close() {
      await stop();
      await closed(front);
    },
  };
}

/** As it came, body unchanged. Nothing behind: the connection is cut, as by a server that is down. */
function pass(incoming: IncomingMessage, body: string, port: number, response: ServerResponse): void {
  const { method, url: path, headers } = incoming;
  const onward = request({ host: "127.0.0.1", port, method, path, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  onward.on("error", () => response.destroy()).end(Buffer.from(body, "latin1"));
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("latin1");
}

export async function listen(server: Server, port: number): Promise<number> {
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return portOf(server);
}

/** Port 1, where nobody listens, for a server that is not there. */
function portOf(server: Server | undefined): number {
  return (server?.address() as AddressInfo | undefined)?.port ?? 1;
}

export async function closed(server: Server | undefined): Promise<void> {
  server?.closeAllConnections();
  await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)));
}
