/** What is read from configuration and secrets. Their values were held against their schemas; what those cannot say is refused here. */
import { Failure } from "../../errors/failure.ts";
import { credentialCharactersMax } from "../../limits.ts";
import { isHeaderName, isHeaderValue, isReservedHeader } from "../header-rules.ts";
import { withoutCredentials } from "../masking.ts";
import { readEnvironment, readServerUrl, type ServerAddress } from "./server-address.ts";
import { timeoutMsDefault } from "./settings-schemas.ts";
import { shortened } from "./unusable.ts";

export type Settings = Readonly<Record<string, unknown>>;

/** A server and all that goes to it. */
export interface Target {
  readonly address: ServerAddress;
  /** Of http only. */
  readonly headers: Readonly<Record<string, string>>;
  /** Of stdio only: what the definition and the secrets say. */
  readonly env: Readonly<Record<string, string>>;
  /** Whether any credentials are set, for what is said when the server wants some. */
  readonly hasSecrets: boolean;
  /** The server's own words fit for an error: cut to size, without the secrets that were sent to it. */
  quote(text: string, charactersMax: number): string;
}

/** @throws Failure invalid_request, naming names only. */
export function targetOf(address: ServerAddress, config: Settings, secrets: Settings): Target {
  const sent = [
    secrets.bearerToken,
    ...Object.values(members(secrets.headers)),
    ...Object.values(members(secrets.env)),
  ];
  const spelled = { ...sent.filter((secret) => typeof secret === "string").flatMap(spellings) };
  const shared = {
    hasSecrets: sent.some((secret) => secret !== undefined),
    quote: (text: string, charactersMax: number) => shortened(masked(text, spelled), charactersMax),
  };
  if (address.kind === "stdio") {
    return { ...shared, address, headers: {}, env: { ...address.env, ...readEnvironment(secrets.env, "secrets") } };
  }
  const configured = config.url === undefined ? address : { ...address, url: readServerUrl(config.url) };
  return { ...shared, address: configured, headers: settingsHeaders(config, secrets), env: {} };
}

/** As it is, as JSON writes it, and line by line: keys have several, and a log is read by lines. */
function spellings(secret: string): string[] {
  return [...new Set([secret, JSON.stringify(secret).slice(1, -1), ...secret.split(/\r?\n|\r/)])];
}

/** Of a longer text only this much is looked at, and the end of that is left out: a secret may be cut there, and would not be recognised. */
export const lookedAtCharactersMax = 256 * 1024;
/** The longest spelling of the longest credential: each character escaped twice. */
const cutSecretCharactersMax = 5 * credentialCharactersMax;

function masked(text: string, sent: Settings): string {
  const clean = withoutCredentials({ text: text.slice(0, lookedAtCharactersMax) }, sent).text ?? "";
  return text.length <= lookedAtCharactersMax ? clean : clean.slice(0, -cutSecretCharactersMax);
}

export function timeoutMsOf({ timeoutMs }: Settings): number {
  return typeof timeoutMs === "number" && timeoutMs > 0 ? timeoutMs : timeoutMsDefault;
}

/** Headers of both settings together; of one name the secret counts. */
function settingsHeaders(config: Settings, secrets: Settings): Record<string, string> {
  const isReserved = (name: string) => isReservedHeader(name) || /^(accept|last-event-id|mcp-.*)$/.test(name);
  const isReservedSecret = (name: string) => isReserved(name) && name !== "authorization" && name !== "cookie";
  const headers = new Map([
    ...readHeaders(config.headers, "config", isReserved),
    ...readHeaders(secrets.headers, "secrets", isReservedSecret),
  ]);
  const { bearerToken } = secrets;
  if (typeof bearerToken === "string" && bearerToken !== "") {
    if (!isHeaderValue(bearerToken)) throw unsendable("bearerToken", "secrets");
    headers.set("authorization", `Bearer ${bearerToken}`);
  }
  return Object.fromEntries(headers);
}

function readHeaders(
  given: unknown,
  place: "config" | "secrets",
  isReserved: (name: string) => boolean,
): (readonly [string, string])[] {
  return Object.entries(members(given)).map(([written, value]) => {
    const name = written.toLowerCase();
    if (!isHeaderName(name)) {
      throw new Failure("invalid_request", `A name in "headers" of the ${place} is no header name`);
    }
    if (isReserved(name)) throw new Failure("invalid_request", `Header "${name}" cannot be set in the ${place}`);
    if (typeof value !== "string" || !isHeaderValue(value)) throw unsendable(name, place);
    return [name, value] as const;
  });
}

function unsendable(name: string, place: string): Failure {
  return new Failure("invalid_request", `The value of "${name}" in the ${place} holds what a header cannot carry`);
}

function members(value: unknown): Settings {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Settings) : {};
}
