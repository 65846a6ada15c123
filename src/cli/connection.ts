/** Which server a command talks to, and as whom: options before environment variables. No sentence repeats a key, or what a URL holds before its `@`. */
import { readFileSync } from "node:fs";
import { CliError, exitCodes } from "./exit-codes.ts";

export interface Connection {
  /** Of the control plane. */
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string };
}

export interface ConnectionOptions {
  readonly server?: string;
  readonly keyFile?: string;
  readonly tlsCa?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
}

const serverDefault = "127.0.0.1:8081";

/** Throws CliError. */
export function readConnection(
  options: ConnectionOptions,
  environment: Readonly<Record<string, string | undefined>>,
): Connection {
  const { TROUPE_SERVER, TROUPE_TLS_CA, TROUPE_TLS_CERT, TROUPE_TLS_KEY } = environment;
  const tls = {
    ...fileOf("ca", options.tlsCa ?? TROUPE_TLS_CA),
    ...fileOf("cert", options.tlsCert ?? TROUPE_TLS_CERT),
    ...fileOf("key", options.tlsKey ?? TROUPE_TLS_KEY),
  };
  if ("cert" in tls !== "key" in tls) {
    throw new CliError(exitCodes.settings, "A client certificate needs both --tls-cert and --tls-key");
  }
  const url = readUrl(options.server ?? (TROUPE_SERVER || serverDefault), Object.keys(tls).length > 0);
  return { url, apiKey: readKey(options.keyFile, environment), tls };
}

function readUrl(text: string, isTls: boolean): string {
  const url = URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `${isTls ? "https" : "http"}://${text}`);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new CliError(
      exitCodes.settings,
      "The server must be a URL or host:port of its control plane, like 127.0.0.1:8081",
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw new CliError(
      exitCodes.settings,
      "The server's URL must not hold credentials: use --key-file or TROUPE_API_KEY",
    );
  }
  if (isTls && url.protocol === "http:") {
    throw new CliError(exitCodes.settings, "Certificates are of no use to a server at an http URL: use https");
  }
  return `${url.origin}${url.pathname.replace(/\/$/, "")}`;
}

function readKey(
  file: string | undefined,
  { TROUPE_KEY_FILE, TROUPE_API_KEY }: Readonly<Record<string, string | undefined>>,
): string | undefined {
  const from = file ?? (TROUPE_KEY_FILE || undefined);
  const key = from === undefined ? TROUPE_API_KEY?.trim() || undefined : readText(from, "key file").trim();
  if (key !== undefined && !/^[\x21-\x7e]+$/.test(key)) {
    throw new CliError(exitCodes.settings, "The API key must be printable ASCII without spaces");
  }
  return key;
}

function fileOf<Name extends string>(name: Name, path: string | undefined): { readonly [N in Name]?: string } {
  if (path === undefined || path === "") return {};
  return { [name]: readText(path, "certificate or key") } as { readonly [N in Name]?: string };
}

function readText(path: string, what: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unknown";
    throw new CliError(exitCodes.settings, `Cannot read the ${what} "${path}" (${code})`);
  }
}
