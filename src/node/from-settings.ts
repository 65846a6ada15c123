/** Parts that settings alone decide. What is wrong in their text is told as the fault of the setting, before anything is opened. */
import { join } from "node:path";
import { type ControlPlaneTls, openControlPlaneTls } from "../certs/tls-settings.ts";
import { ConfigError, type Settings } from "../config.ts";
import { mcpRoute } from "../gateway/mcp-route.ts";
import { type Authentication, openAuthentication, parseApiKeys } from "../operations/authentication.ts";
import type { Operation } from "../operations/operation.ts";
import { parseRateLimits, RateLimits } from "../operations/rate-limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { Vault } from "../ports/vault.ts";
import { loadOrMakeKeyFile } from "../secrets/key-file.ts";
import { openVault } from "../secrets/vault.ts";

/** Who is let in, how often, and by which certificates. */
export interface Entrance {
  readonly authentication: Authentication;
  /** Absent: nothing is limited. */
  readonly rateLimits: RateLimits | undefined;
  /** Of the control plane; absent: plain text. */
  readonly tls: ControlPlaneTls | undefined;
}

/** Throws ConfigError. */
export function entranceFrom(settings: Settings, clock: Clock, log: Log): Entrance {
  const rateLimits = rateLimitsFrom(settings, clock);
  return {
    rateLimits,
    authentication: authenticationFrom(settings, clock, rateLimits !== undefined),
    tls: tlsFrom(settings, clock, log),
  };
}

function rateLimitsFrom({ SERVICE_RATE_LIMITS: text }: Settings, clock: Clock): RateLimits | undefined {
  const overrides = parseRateLimits(text);
  if (typeof overrides === "string") throw new ConfigError([{ name: "SERVICE_RATE_LIMITS", reason: overrides }]);
  return overrides === null ? undefined : new RateLimits(overrides, clock);
}

function authenticationFrom(settings: Settings, clock: Clock, limited: boolean): Authentication {
  const { keys, problems } = parseApiKeys(settings.SERVICE_API_KEYS?.reveal() ?? "");
  if (problems.length > 0) {
    throw new ConfigError(problems.map((reason) => ({ name: "SERVICE_API_KEYS", reason })));
  }
  return openAuthentication(keys, clock, limited);
}

function tlsFrom(settings: Settings, clock: Clock, log: Log): ControlPlaneTls | undefined {
  const tls = openControlPlaneTls(settings, clock, log);
  if (typeof tls === "string") throw new ConfigError([{ name: "SERVICE_GRPC_TLS_CERT_FILE", reason: tls }]);
  return tls;
}

/** Throws ConfigError: a limit of a route that does not exist limits nothing. */
export function refuseUnknownRoutes(rateLimits: RateLimits | undefined, operations: readonly Operation[]): void {
  const unknown = rateLimits?.unknownRoutes([mcpRoute, ...operations.map(({ route }) => route)]) ?? [];
  if (unknown.length === 0) return;
  throw new ConfigError(
    unknown.map((route) => ({ name: "SERVICE_RATE_LIMITS", reason: `there is no route "${route}"` })),
  );
}

/** Undefined without a key in the settings. Throws Failure refused. */
export function vaultFrom(settings: Settings): Vault | undefined {
  const key = settings.SERVICE_SECRETS_KEY;
  return key && vaultOf(key.reveal(), settings);
}

/** By the key of a file in the data folder, made at the first start. Throws Failure refused. */
export function vaultFromFile(settings: Settings, folder: string, log: Log): Vault {
  return vaultOf(loadOrMakeKeyFile(join(folder, "secrets.key"), log), settings);
}

function vaultOf(key: string, { SERVICE_SECRETS_PREVIOUS_KEYS: previous }: Settings): Vault {
  return openVault({ key, previousKeys: previous.map((each) => each.reveal()) });
}
