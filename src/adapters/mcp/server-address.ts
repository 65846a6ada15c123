/** Where an MCP server is: an http or https URL, or a command that this machine starts and speaks to over its standard input and output. */
import { Failure } from "../../errors/failure.ts";
import { mcpArgumentsMax, urlCharactersMax } from "../../limits.ts";

export type ServerAddress = HttpAddress | StdioAddress;

export interface HttpAddress {
  readonly kind: "http";
  readonly url: string;
}

export interface StdioAddress {
  readonly kind: "stdio";
  /** As in SERVICE_MCP_STDIO_COMMANDS: absolute, or a name looked up on the PATH of the server. */
  readonly command: string;
  readonly args: readonly string[];
  /** Not secret; secret ones are set as secrets. */
  readonly env: Readonly<Record<string, string>>;
}

/** @throws Failure invalid_request. The message never repeats the URL: it may hold what it should not. */
export function readServerUrl(value: unknown): string {
  const url = typeof value === "string" && value.length <= urlCharactersMax ? URL.parse(value) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) throw refused("url", "must be an absolute http or https URL");
  if (url.username !== "" || url.password !== "") throw refused("url", "may not hold a user name or password");
  url.hash = "";
  return url.href;
}

/** @throws Failure invalid_request. */
export function readCommand({ command, args, env }: Omit<StdioAddress, "kind">): StdioAddress {
  if (command === "" || command.includes("\0")) throw refused("command", "must be the name or path of an executable");
  if (command.includes("/") && !command.startsWith("/")) throw refused("command", "must be absolute when it is a path");
  if (args.length > mcpArgumentsMax) throw refused("args", `may hold at most ${mcpArgumentsMax} arguments`);
  if (args.some((argument) => argument.includes("\0"))) throw refused("args", "may not hold NUL characters");
  return { kind: "stdio", command, args, env: readEnvironment(env, "definition") };
}

/**
 * Variables by which a loader or interpreter runs other code than its own. The administrator of the machine allowed one executable, not
 * whatever such a variable makes of it.
 */
const steering =
  /^(PATH|IFS|ENV|BASH_ENV|SHELLOPTS|LD_.*|DYLD_.*|GCONV_PATH|NODE_OPTIONS|NODE_PATH|PYTHON(PATH|HOME|STARTUP)|PERL5.*|RUBY(OPT|LIB)|_?JAVA_.*|JDK_JAVA_OPTIONS)$/i;

/** @throws Failure invalid_request naming names only. */
export function readEnvironment(env: unknown, place: "definition" | "secrets"): Record<string, string> {
  if (typeof env !== "object" || env === null) return {};
  const entries = Object.entries(env);
  if (entries.length > mcpArgumentsMax) throw refused("env", `may hold at most ${mcpArgumentsMax} variables`);
  for (const [name, value] of entries) {
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name)) throw refused("env", `of the ${place} holds a name that is none`);
    if (steering.test(name)) throw refused("env", `of the ${place} may not set "${name}"`);
    if (typeof value !== "string" || value.includes("\0")) throw refused("env", `"${name}" of the ${place} is no text`);
  }
  return Object.fromEntries(entries) as Record<string, string>;
}

/** For error texts: queries of URLs hold keys now and then, arguments too. */
export function shownServer(server: ServerAddress): string {
  if (server.kind === "stdio") return `MCP server "${server.command}"`;
  const { origin, pathname } = new URL(server.url);
  return `MCP server at "${origin}${pathname}"`;
}

/** @throws Failure invalid_request naming the setting that would allow it. */
export function requireAllowed(server: ServerAddress, stdioCommands: readonly string[]): void {
  if (server.kind === "http" || stdioCommands.includes(server.command)) return;
  throw new Failure(
    "invalid_request",
    `Cannot start "${server.command}": it is not one of the commands in setting SERVICE_MCP_STDIO_COMMANDS`,
  );
}

function refused(field: string, reason: string): Failure {
  return new Failure("invalid_request", `The "${field}" of an MCP service ${reason}`, {
    fields: [{ field, description: reason }],
  });
}
