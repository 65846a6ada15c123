/**
 * `troupe dev-registry`: the registry in the foreground until SIGINT or SIGTERM. Programs read one JSON line on stdout, people
 * what to type on stderr.
 */
import { once } from "node:events";
import { defaultBehaviour } from "./behaviour.ts";
import { type DevRegistry, startDevRegistry } from "./dev-registry.ts";
import { paths, wellKnownPath } from "./routes.ts";
import { type DevRegistrySettings, DevRegistryStartError, readDevRegistrySettings } from "./settings.ts";

/** Resolves when it was stopped. @throws DevRegistryStartError, before anything listens. */
export async function runDevRegistry(environment: Readonly<Record<string, string | undefined>>): Promise<void> {
  const settings = readDevRegistrySettings(environment);
  const registry = await start(settings);
  const stopped = Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  const { auth, drift } = settings;
  const { url, tokenEndpoint } = registry;
  const line = { event: "listening", url, auth, drift, ...(auth === "oauth2" ? { tokenEndpoint } : {}) };
  process.stdout.write(`${JSON.stringify({ ...line, pid: process.pid })}\n`);
  process.stderr.write(`${introduction(settings, registry).join("\n")}\n`);
  await stopped;
  await registry.close();
}

async function start(settings: DevRegistrySettings): Promise<DevRegistry> {
  try {
    return await startDevRegistry(settings);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    const reasons: Readonly<Record<string, string>> = {
      EADDRINUSE: "another program listens there",
      EACCES: "this user may not use that port",
      EADDRNOTAVAIL: "this machine does not have that address",
    };
    const address = `${settings.host}:${settings.port}`;
    throw new DevRegistryStartError(74, `Cannot listen on "${address}": ${reasons[code] ?? code}`);
  }
}

/** Commands to paste. */
function introduction(settings: DevRegistrySettings, { url, origin, tokenEndpoint }: DevRegistry): string[] {
  const add = JSON.stringify({ baseUrl: url, ...authBody(settings) });
  return [
    "# What it advertises",
    `curl -sS ${origin}${wellKnownPath}`,
    "# A page of definitions",
    ...pageCommands(settings, `${origin}${paths.page("", "definitions")}`, tokenEndpoint),
    "# Let a Troupe server use it",
    `curl -sS http://127.0.0.1:8080/registries -H 'Content-Type: application/json' -d '${add}'`,
    ...(settings.drift === "off" ? [] : ["# Drift: what it advertises is not what it enforces"]),
  ];
}

function pageCommands(settings: DevRegistrySettings, page: string, tokenEndpoint: string): string[] {
  switch (settings.auth) {
    case "none":
      return [`curl -sS ${page}`];
    case "apikey":
      return [`curl -sS ${page} -H '${defaultBehaviour.headerName}: ${shown(settings, "apiKey")}'`];
    case "oauth2": {
      const client = `-d client_id=${shown(settings, "clientId")} -d client_secret=${shown(settings, "clientSecret")}`;
      return [
        `curl -sS ${tokenEndpoint} -d grant_type=client_credentials ${client}`,
        `curl -sS ${page} -H 'Authorization: Bearer ACCESS_TOKEN'`,
      ];
    }
  }
}

function authBody(settings: DevRegistrySettings): { readonly auth?: Readonly<Record<string, string>> } {
  switch (settings.auth) {
    case "none":
      return {};
    case "apikey":
      return { auth: { type: "apiKey", apiKey: shown(settings, "apiKey") } };
    case "oauth2": {
      const [clientId, clientSecret] = [shown(settings, "clientId"), shown(settings, "clientSecret")];
      return { auth: { type: "oauth2", clientId, clientSecret } };
    }
  }
}

/** The defaults are no secret; what somebody chose is not printed. */
function shown(settings: DevRegistrySettings, name: "apiKey" | "clientId" | "clientSecret"): string {
  const placeholders = { apiKey: "YOUR_API_KEY", clientId: "YOUR_CLIENT_ID", clientSecret: "YOUR_CLIENT_SECRET" };
  return settings[name] === defaultBehaviour[name] ? settings[name] : placeholders[name];
}
