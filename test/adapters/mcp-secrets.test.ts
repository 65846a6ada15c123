/** MCP servers that repeat the secrets they were sent: no error, no cause of one and no log line holds them, or a part of them. */
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { targetOf } from "../../src/adapters/mcp/settings.ts";
import { StderrLog } from "../../src/adapters/mcp/stderr-log.ts";
import { mcpErrorCharactersMax, mcpLogLineCharactersMax } from "../../src/limits.ts";
import { realClock, recordingLog } from "./adapter-bench.ts";
import { type McpBench, openMcpBench } from "./mcp-bench.ts";
import { openScriptedServer, type ScriptedServer, send } from "./mcp-scripted-server.ts";

let bench: McpBench;
let server: ScriptedServer;
beforeAll(async () => {
  [bench, server] = await Promise.all([openMcpBench(), openScriptedServer()]);
});
afterAll(async () => {
  await Promise.all([bench.close(), server.close()]);
});

const short = "tok-0123456789abcdefghijklmnop";
const long = `tok-${"LongSecret".repeat(300)}`;

describe("an answer that repeats the token", () => {
  test.each([
    ["once, in plain text", 401, "text/plain", short, `Who is "Bearer ${short}"?`],
    ["many times, so that a cut falls into one", 403, "text/plain", short, `${short} `.repeat(200)],
    ["that is longer than an error may be", 401, "text/plain", long, `Who is "Bearer ${long}"?`],
    ["behind a long text", 500, "text/plain", short, `${"x".repeat(490)}${short}`],
    ["across the end of what is looked at", 500, "text/plain", long, `${"x".repeat(256 * 1024 - 100)}${long}`],
    ["in a JSON-RPC error", 400, "application/json", long, JSON.stringify({ error: { code: -32_000, message: long } })],
  ])("%s gives none of it away", async (_, status, mediaType, token, body) => {
    server.script = (_message, response) => send(response, status, mediaType, body);
    const failure = await bench.ready({ url: server.url, tools: [] }, { secrets: { bearerToken: token } }).then(
      () => expect.unreachable("The server refuses everybody"),
      (error: unknown) => error,
    );
    // As the log shows it: with every cause.
    const shown = inspect(failure, { depth: 10, maxStringLength: null });
    expect(shown).toContain("upstream_failed");
    expect(shown).not.toContain(token.slice(0, 12));
  });
});

describe("a secret of several spellings", () => {
  const key = "-----BEGIN KEY-----\nMIIBVgIBADANBgkqhkiG9w0B\nAQEFAASCAUAwggE8AgEAAkEA\n-----END KEY-----";
  const quoted = 'pass"word\\with-everything';
  test.each<readonly [string, string, readonly Buffer[]]>([
    ["line by line", key, [Buffer.from(`${key}\n`)]],
    ["with other ends of lines", key, [Buffer.from(`${key.replaceAll("\n", "\r\n")}\r\n`)]],
    ["as JSON", key, [Buffer.from(`${JSON.stringify({ key })}\n`)]],
    ["as JSON with quotes in it", quoted, [Buffer.from(`${JSON.stringify({ quoted })}\n`)]],
    ["in two writes that meet in a character", "geheimnis-ä-geheimnis", splitIn("geheimnis-ä-geheimnis\n", "ä")],
  ])("written %s gives none of it away", (_, secret, chunks) => {
    const address = { kind: "stdio", command: "server", args: [], env: {} } as const;
    const target = targetOf(address, {}, { env: { TOKEN: secret } });
    const log = recordingLog();
    const stderr = new StderrLog({ address, target, clock: realClock, log });
    for (const chunk of chunks) stderr.push(chunk);
    const written = log.lines.map(({ message }) => message).join("\n");
    expect(written).toContain("***");
    expect(written).not.toMatch(/MIIB|AQEF|word|geheimnis/);
  });

  /** In the middle of the character. */
  function splitIn(text: string, character: string): Buffer[] {
    const bytes = Buffer.from(text);
    const at = bytes.indexOf(character) + 1;
    return [bytes.subarray(0, at), bytes.subarray(at)];
  }
});

describe("standard error that repeats a secret", () => {
  test.each([
    ["at the cut of a line", [`${"x".repeat(mcpLogLineCharactersMax - 10)}${long}\n`]],
    [
      "split over two writes at the cut",
      [`${"x".repeat(mcpLogLineCharactersMax - 10)}${long.slice(0, 10)}`, `${long.slice(10)}\n`],
    ],
    ["longer than a line may be", [`${long}\n`]],
    ["on a line without end", [`${"x".repeat(256 * 1024 - 20)}${long}`, "more", "\n"]],
  ])("%s gives none of it away", (_, chunks) => {
    const address = { kind: "stdio", command: "server", args: [], env: {} } as const;
    const target = targetOf(address, {}, { env: { TOKEN: long } });
    const log = recordingLog();
    const stderr = new StderrLog({ address, target, clock: realClock, log });
    for (const chunk of chunks) stderr.push(Buffer.from(chunk));
    const written = JSON.stringify(log.lines);
    expect(written).toContain("mcp-stderr");
    expect(written).not.toContain(long.slice(0, 12));
    // As an error shows the last words of a server that died.
    expect(target.quote(stderr.lastLine, mcpErrorCharactersMax)).not.toContain(long.slice(0, 12));
  });
});
