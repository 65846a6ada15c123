/**
 * `troupe mcp`: MCP over stdin and stdout for clients that start their servers themselves; each message goes to POST /mcp of a running
 * service. Nothing but MCP is written to stdout. Ends when stdin does.
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { McpProxy, type McpStreams, type McpTarget } from "./mcp-proxy.ts";

/** Follow sysexits. */
const exitCodes = { done: 0, usage: 64, settings: 78 } as const;

const usage = `Usage: troupe mcp [--url URL] [--key-file FILE]
Settings: TROUPE_URL (http://127.0.0.1:8080), TROUPE_API_KEY\n`;

const urlDefault = "http://127.0.0.1:8080";

/** `args` are what follows `mcp`. Resolves with the exit code: 0, 64 for what was asked wrongly, 78 for a URL or key that cannot be used. */
export async function runMcp(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  streams: McpStreams,
): Promise<number> {
  const options = readOptions(args);
  if (typeof options === "string") {
    streams.stderr.write(`${options}\n${usage}`);
    return exitCodes.usage;
  }
  const target = readTarget({
    url: options.url ?? (environment.TROUPE_URL || urlDefault),
    key: options.keyFile === undefined ? { text: environment.TROUPE_API_KEY } : { file: options.keyFile },
  });
  if (typeof target === "string") {
    streams.stderr.write(`${target}\n`);
    return exitCodes.settings;
  }
  await new McpProxy(target, streams).run();
  return exitCodes.done;
}

function readOptions(args: readonly string[]): { url: string | undefined; keyFile: string | undefined } | string {
  try {
    const known = { url: { type: "string" }, "key-file": { type: "string" } } as const;
    const { values } = parseArgs({ args: [...args], options: known });
    return { url: values.url, keyFile: values["key-file"] };
  } catch (error) {
    return error instanceof Error ? (error.message.split(". ")[0] ?? error.message) : String(error);
  }
}

type KeySource = { readonly text: string | undefined } | { readonly file: string };

/** What to talk to, or why not. No sentence repeats a key, or what a URL holds before its `@`. */
function readTarget({ url, key }: { readonly url: string; readonly key: KeySource }): McpTarget | string {
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
    return "The URL of the service must be absolute, like http://127.0.0.1:8080";
  }
  if (parsed.username !== "" || parsed.password !== "") {
    return "The URL of the service must not hold credentials: set TROUPE_API_KEY or --key-file";
  }
  parsed.search = "";
  parsed.hash = "";
  if (!parsed.pathname.endsWith("/mcp")) parsed.pathname = `${parsed.pathname.replace(/\/$/, "")}/mcp`;
  const text = readKey(key);
  if (text instanceof Error) return text.message;
  if (text !== undefined && !/^[\x21-\x7e]+$/.test(text)) return "The API key must be printable ASCII without spaces";
  return { url: parsed.href, apiKey: text };
}

function readKey(key: KeySource): string | undefined | Error {
  if ("text" in key) return key.text?.trim() || undefined;
  try {
    return readFileSync(key.file, "utf8").trim();
  } catch (error) {
    return new Error(`Cannot read the key file "${key.file}" (${(error as NodeJS.ErrnoException).code ?? "unknown"})`);
  }
}
