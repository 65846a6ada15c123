/** Settings of `troupe dev-registry`, all problems reported together. */
import { isIPv4 } from "node:net";
import { z } from "zod";
import { type AuthMode, defaultBehaviour } from "./behaviour.ts";

export interface DevRegistrySettings {
  readonly host: string;
  readonly port: number;
  readonly auth: AuthMode;
  readonly drift: "off" | "values";
  readonly apiKey: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** Exit codes follow sysexits: settings 78, an address that cannot be had 74. The message is for whoever started it. */
export class DevRegistryStartError extends Error {
  readonly exitCode: 74 | 78;

  constructor(exitCode: 74 | 78, message: string) {
    super(message);
    this.name = "DevRegistryStartError";
    this.exitCode = exitCode;
  }
}

const prefix = "SERVICE_DEV_REGISTRY_";

/** A field value of HTTP. */
const headerValue = z.string().regex(/^[\x21-\x7e]{1,1000}$/, "must be 1 to 1000 visible ASCII characters");
const formValue = z.string().regex(/^\P{Cc}{1,1000}$/u, "must be 1 to 1000 characters without line breaks");

const schema = z.object({
  HOST: z.string().refine(isLoopback, "must be a loopback address or localhost: the fixture protects nothing"),
  PORT: z
    .string()
    .regex(/^[0-9]{1,5}$/, "must be a whole number in plain digits")
    .transform(Number)
    .refine((port) => port <= 65_535, "must be at most 65535"),
  AUTH_MODE: z.enum(["none", "apikey", "oauth2"], 'must be "none", "apikey" or "oauth2"'),
  DRIFT_AUTH: z.enum(["0", "1"], 'must be "1" to advertise values that are not enforced, or "0"'),
  API_KEY: headerValue,
  CLIENT_ID: formValue,
  CLIENT_SECRET: formValue,
});

const defaults = {
  HOST: "127.0.0.1",
  PORT: "9090",
  AUTH_MODE: defaultBehaviour.auth,
  DRIFT_AUTH: "0",
  API_KEY: defaultBehaviour.apiKey,
  CLIENT_ID: defaultBehaviour.clientId,
  CLIENT_SECRET: defaultBehaviour.clientSecret,
};

/** An empty value counts as not given. @throws DevRegistryStartError */
export function readDevRegistrySettings(
  environment: Readonly<Record<string, string | undefined>>,
): DevRegistrySettings {
  const given = Object.entries(defaults).map(([name, value]) => [name, environment[prefix + name] || value]);
  const parsed = schema.safeParse(Object.fromEntries(given));
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path, message }) => `  ${prefix}${String(path[0])}: ${message}`);
    throw new DevRegistryStartError(78, `Cannot start with these settings:\n${problems.join("\n")}`);
  }
  const { HOST, PORT, AUTH_MODE, DRIFT_AUTH, API_KEY, CLIENT_ID, CLIENT_SECRET } = parsed.data;
  return {
    host: HOST,
    port: PORT,
    auth: AUTH_MODE,
    drift: DRIFT_AUTH === "1" ? "values" : "off",
    apiKey: API_KEY,
    clientId: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
  };
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));
}
