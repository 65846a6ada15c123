/**
 * Settings: environment variables with prefix SERVICE_, parsed once by one schema. All problems are reported together, each with
 * name and reason. A secret also has a `…_FILE` form that names a file holding it.
 */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { tlsSettingProblems } from "./certs/tls-settings.ts";
import { isLoopback, parseAddress } from "./net/address.ts";
import { readCidr } from "./net/cidr.ts";
import { Secret, secretMask } from "./secrets/secret.ts";

export interface Problem {
  readonly name: string;
  readonly reason: string;
}

/** Exit code for settings that do not add up (sysexits EX_CONFIG). */
export const configExitCode = 78;

export class ConfigError extends Error {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(
      `Cannot start with these settings:\n${problems.map(({ name, reason }) => `  ${name}: ${reason}`).join("\n")}`,
    );
    this.problems = problems;
  }
}

const port = whole(0, 65_535);
const list = z.string().transform((text) =>
  text
    .split(/[,\n]/)
    .map((part) => part.trim())
    .filter((part) => part !== ""),
);
const secret = z.string().transform((text) => new Secret(text));
const flag = z.enum(["0", "1"]).transform((text) => text === "1");
const durations = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Milliseconds from `30d`, `12h`, `0`; null for 0 = keep all. */
const retention = z
  .string()
  .regex(/^(0|[0-9]+(ms|s|m|h|d))$/, 'must be 0 or a number with unit, like "30d"')
  .transform((text) => {
    const unit = /[a-z]+$/.exec(text)?.[0] as keyof typeof durations | undefined;
    return unit === undefined ? null : Number.parseInt(text, 10) * durations[unit];
  });

export const settingsSchema = z.object({
  SERVICE_HTTP_HOST: z.string().min(1).default("127.0.0.1"),
  SERVICE_HTTP_PORT: port.default(8080),
  SERVICE_GRPC_HOST: z.string().min(1).default("127.0.0.1"),
  SERVICE_GRPC_PORT: port.default(8081),
  /** PEM: certificate and key together mean TLS, the authority of client certificates mutual TLS. */
  SERVICE_GRPC_TLS_CERT_FILE: z.string().optional(),
  SERVICE_GRPC_TLS_KEY_FILE: z.string().optional(),
  SERVICE_GRPC_TLS_CLIENT_CA_FILE: z.string().optional(),
  SERVICE_DATA_DIR: z.string().min(1).default("./data"),
  SERVICE_API_KEYS: secret.optional(),
  SERVICE_ALLOW_ANONYMOUS: flag.default(false),
  SERVICE_SECRETS_KEY: secret.optional(),
  SERVICE_SECRETS_PREVIOUS_KEYS: list.transform((keys) => keys.map((key) => new Secret(key))).default([]),
  SERVICE_CORS_ORIGINS: list.default([]),
  /** Reverse proxies whose X-Forwarded-For is believed. */
  SERVICE_TRUSTED_PROXIES: cidrs().default([]),
  /** `POST /processes=600/60s; *=6000/60s`, or `off`. */
  SERVICE_RATE_LIMITS: z.string().default(""),
  SERVICE_ALLOWED_HOSTS: list.default([]),
  /** Adds to loopback; `none` removes loopback. */
  SERVICE_EGRESS_ALLOWED_CIDRS: cidrs("none").default([]),
  SERVICE_EGRESS_BLOCKED_CIDRS: cidrs().default([]),
  SERVICE_REGISTRY_AUTH_INSECURE_CIDRS: cidrs().default([]),
  /** Executables that an mcp service may start over stdio. */
  SERVICE_MCP_STDIO_COMMANDS: list.default([]),
  /** Lets third-party modules run where this machine can confine them by nothing. */
  SERVICE_MODULES_UNSANDBOXED: flag.default(false),
  SERVICE_AUTO_UPDATE_INTERVAL_MS: whole(0, Number.MAX_SAFE_INTEGER).default(0),
  SERVICE_DEFAULT_REGISTRY_URL: z.url({ protocol: /^https?$/ }).optional(),
  SERVICE_PROCESS_TIMEOUT_MS: whole(1, Number.MAX_SAFE_INTEGER).default(30_000),
  SERVICE_PROCESS_CONCURRENCY: whole(1, 1_024).default(16),
  SERVICE_EXECUTOR: z.enum(["auto", "portable"]).default("auto"),
  SERVICE_PROCESS_QUEUE_MAX: whole(1, 1_000_000).default(10_000),
  SERVICE_PROCESS_MEMORY_MB: whole(16, 65_536).default(128),
  SERVICE_PROCESS_OUTPUT_BYTES: whole(1_024, 64 * 1_048_576).default(1_048_576),
  SERVICE_PROCESS_RETENTION: retention.default(30 * durations.d),
  SERVICE_TOOL_TIMEOUT_MS: whole(1, 3_600_000).default(30_000),
  SERVICE_SHUTDOWN_TIMEOUT_MS: whole(0, 3_600_000).default(10_000),
  SERVICE_LOG_LEVEL: z.enum(["debug", "info", "warn", "error"]).default("info"),
  /** Log records kept on disk; 0 keeps none there. */
  SERVICE_LOG_RETENTION: whole(0, 100_000_000).default(100_000),
});

export type Settings = z.infer<typeof settingsSchema>;

/** Settings whose values are never printed. */
export const secretSettings: readonly (keyof Settings)[] = [
  "SERVICE_API_KEYS",
  "SERVICE_SECRETS_KEY",
  "SERVICE_SECRETS_PREVIOUS_KEYS",
];

export type Environment = Readonly<Record<string, string | undefined>>;

export function parseSettings(environment: Environment): Settings {
  const problems: Problem[] = [];
  const given = readGiven(environment, problems);
  const parsed = settingsSchema.safeParse(given);
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      problems.push({ name: String(issue.path[0]), reason: issue.message });
    }
  }
  problems.push(...relationProblems(given), ...tlsSettingProblems(given, Date.now()));
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems);
  return parsed.data;
}

/** As `troupe config print` shows them. */
export function maskedSettings(settings: Settings): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(settings).map(([name, value]) => {
      const isSecret = secretSettings.includes(name as keyof Settings);
      const isGiven = Array.isArray(value) ? value.length > 0 : value !== undefined;
      return [name, isSecret && isGiven ? secretMask : value];
    }),
  );
}

/** An empty value counts as not given, as compose files and unit files tend to produce it. */
function readGiven(environment: Environment, problems: Problem[]): Record<string, string> {
  const given: Record<string, string> = {};
  for (const name of Object.keys(settingsSchema.shape)) {
    const value = environment[name];
    if (value !== undefined && value !== "") given[name] = value;
  }
  for (const name of secretSettings) {
    const file = environment[`${name}_FILE`];
    if (file === undefined || file === "") continue;
    if (given[name] !== undefined) {
      problems.push({ name: `${name}_FILE`, reason: `is given together with ${name}: use one of them` });
      continue;
    }
    try {
      given[name] = readFileSync(file, "utf8").trim();
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
      problems.push({ name: `${name}_FILE`, reason: `cannot read "${file}" (${code})` });
    }
  }
  return given;
}

/** Rules that span settings; looked at also when single ones are wrong, so that all problems are seen at once. */
function relationProblems(given: Readonly<Record<string, string>>): Problem[] {
  if (given.SERVICE_API_KEYS !== undefined || given.SERVICE_ALLOW_ANONYMOUS === "1") return [];
  return ["SERVICE_HTTP_HOST", "SERVICE_GRPC_HOST"].flatMap((name) => {
    const host = given[name];
    if (host === undefined || isLoopbackHost(host)) return [];
    const reason = `"${host}" is not a loopback address and SERVICE_API_KEYS is not set; set keys, or SERVICE_ALLOW_ANONYMOUS=1`;
    return [{ name, reason }];
  });
}

function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  const address = parseAddress(bare);
  return bare === "localhost" || (address !== undefined && isLoopback(address));
}

/** Addresses and CIDRs, or one of the words. */
function cidrs(...words: readonly string[]): z.ZodType<string[], string> {
  return list.superRefine((entries, context) => {
    for (const entry of entries) {
      const read = words.includes(entry) ? undefined : readCidr(entry);
      if (typeof read === "string") context.addIssue({ code: "custom", message: read });
    }
  });
}

function whole(least: number, most: number): z.ZodType<number, string> {
  return z
    .string()
    .regex(/^[0-9]+$/, "must be a whole number in plain digits")
    .transform(Number)
    .pipe(z.number().min(least, `must be at least ${least}`).max(most, `must be at most ${most}`)) as z.ZodType<
    number,
    string
  >;
}
