/** Servers: read from a document, offered as configuration, and turned into the one base URL of a call. */
import { Failure } from "../../errors/failure.ts";
import type { Server, ServerVariable } from "./plan.ts";
import { isTree, own, ownText } from "./read-document.ts";

export const variablePrefix = "serverVar_";
/** Longer than any server accepts in a request line. */
const urlCharactersMax = 4_096;
const variablePattern = /\{([^{}]+)\}/g;

/** Usable entries of a `servers` list; undefined when there is none, so that the next level counts. */
export function readServers(value: unknown): readonly Server[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const servers = value.filter((each) => isTree(each) && isUsable(ownText(each, "url").trim())).map(readServer);
  return servers.length > 0 ? servers : undefined;
}

function readServer(value: unknown): Server {
  const variables = own(value, "variables");
  const entries = isTree(variables)
    ? Object.entries(variables).map(([name, each]) => [name, readVariable(each)] as const)
    : [];
  return { url: ownText(value, "url").trim(), variables: Object.fromEntries(entries) };
}

function readVariable(value: unknown): ServerVariable {
  const listed = own(value, "enum");
  const fallback = own(value, "default");
  return {
    default:
      typeof fallback === "string" || typeof fallback === "number" || typeof fallback === "boolean"
        ? String(fallback)
        : null,
    enum: Array.isArray(listed) ? [...new Set(listed.filter((each) => typeof each !== "object").map(String))] : [],
    description: ownText(value, "description"),
  };
}

/** Relative, variable or http(s): web sockets and the like are not ours to call. */
function isUsable(url: string): boolean {
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):\/\//.exec(url)?.[1]?.toLowerCase();
  return url.length <= urlCharactersMax && (scheme === undefined || scheme === "http" || scheme === "https");
}

/** Names used in the URLs, with what the documents say of them; a default that differs between servers is left to each server. */
export function serverVariables(servers: readonly Server[]): Record<string, ServerVariable> {
  const merged: Record<string, ServerVariable> = {};
  for (const server of servers) {
    for (const [, name] of server.url.matchAll(variablePattern)) {
      const variable = variableOf(server, name!);
      const known = Object.hasOwn(merged, name!) ? merged[name!]! : undefined;
      if (name === "__proto__") continue;
      merged[name!] = known ? mergeVariables(known, variable) : variable;
    }
  }
  return merged;
}

function mergeVariables(left: ServerVariable, right: ServerVariable): ServerVariable {
  return {
    default: left.default === right.default ? left.default : null,
    // One server that allows anything allows anything.
    enum: left.enum.length > 0 && right.enum.length > 0 ? [...new Set([...left.enum, ...right.enum])] : [],
    description: left.description || right.description,
  };
}

function variableOf(server: Server, name: string): ServerVariable {
  return Object.hasOwn(server.variables, name) ? server.variables[name]! : { default: null, enum: [], description: "" };
}

export interface ServerSettings {
  readonly documentUrl: string | null;
  readonly config: Readonly<Record<string, unknown>>;
}

/**
 * The base URL of a call, without a slash at its end. A configured `serverUrl` goes before everything the document says, so
 * that an operator who names a server can be sure that nothing goes elsewhere. Throws Failure invalid_request.
 */
export function baseUrl(servers: readonly Server[], { documentUrl, config }: ServerSettings): string {
  const chosen = config.serverUrl;
  if (typeof chosen === "string" && chosen.trim() !== "") return checked(chosen.trim(), null, 'Configured "serverUrl"');
  const server = servers[0] ?? { url: "/", variables: {} };
  const filled = server.url.replaceAll(variablePattern, (_, name: string) => {
    const configured = config[`${variablePrefix}${name}`];
    const value = typeof configured === "string" ? configured : variableOf(server, name).default;
    if (value === null)
      throw new Failure(
        "invalid_request",
        `Server URL "${server.url}" needs the configuration value "${variablePrefix}${name}"`,
      );
    return value;
  });
  return checked(filled, documentUrl, `Server URL "${filled}"`);
}

function checked(text: string, base: string | null, subject: string): string {
  let url: URL;
  try {
    url = base === null ? new URL(text) : new URL(text, base);
  } catch {
    throw new Failure("invalid_request", `${subject} is not an absolute URL: set the configuration value "serverUrl"`);
  }
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new Failure("invalid_request", `${subject} is not an http or https URL`);
  if (url.username !== "" || url.password !== "")
    throw new Failure("invalid_request", `Server URL of host "${url.host}" holds a user name or password`);
  url.search = "";
  url.hash = "";
  let end = url.href.length;
  while (url.href[end - 1] === "/") end -= 1;
  return url.href.slice(0, end);
}
