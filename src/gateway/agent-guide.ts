/** /llms.txt: how an agent that knows nothing but this address finds tools, reads how to call them, and runs programs. */
import { bodyBytesMax, codeCharactersMax, idempotencyKeepMs, pageLimitMax, waitSecondsMax } from "../limits.ts";

export interface AgentGuideFacts {
  readonly needsKey: boolean;
  readonly timeoutMsDefault: number;
  readonly memoryMb: number;
  readonly outputBytes: number;
  readonly toolTimeoutMs: number;
  readonly isRateLimited: boolean;
}

export function agentGuide(
  facts: AgentGuideFacts,
  hasRoute: (route: { readonly method: string; readonly path: string }) => boolean,
): string {
  const sections = [head, access(facts), steps(facts), limits(facts), errors, links(hasRoute)];
  return `${sections.join("\n\n")}\n`;
}

const head = `# Troupe

> Connects agents to outside services, APIs and devices. Services are installed here; each offers tools. You send a small program, it runs
> in a sandbox, calls the tools it needs, and hands back one JSON object.

One program that calls five tools and keeps what matters is faster and cheaper than five calls whose whole answers you read.`;

function access({ needsKey }: AgentGuideFacts): string {
  return needsKey
    ? "## Access\n\nSend `Authorization: Bearer <key>` with every request. Only documents and probes need none."
    : "## Access\n\nThis server asks for no key.";
}

function steps({ timeoutMsDefault }: AgentGuideFacts): string {
  return `## How to work

1. Find tools: \`GET /tools?query=words&enabled=true\`. Best matches come first; each has \`serviceId\` and \`id\`. Take those with \`effectivelyEnabled\`.
2. Read how to call one: \`GET /tools/{serviceId}/{toolId}/docs\` (Markdown, with types). \`GET /environment/docs\` tells what else programs have.
3. Run a program: \`POST /processes\` with \`{"code": "…"}\` answers \`{"id": 1}\`. Without \`timeoutMs\` it may take ${timeoutMsDefault} ms.
4. Wait: \`GET /processes/{id}?wait=30\` answers as soon as it is idle (at most ${waitSecondsMax} s). \`exitState\` is \`success\`, \`failed\`, \`timeout\` or \`canceled\`.
5. Read the result: \`GET /processes/{id}/output\`. What it printed: \`/stdout\` and \`/stderr\`; a failed run has its stack in \`/stderr\`.

For a single call without a program: \`POST /tools/{serviceId}/{toolId}/invoke\` with \`{"parameters": {…}}\`.`;
}

function limits(facts: AgentGuideFacts): string {
  return `## Limits

- Program: ${codeCharactersMax} characters, ${facts.memoryMb} MiB of memory; output, stdout and stderr ${facts.outputBytes} bytes each.
- Tool call: ${facts.toolTimeoutMs} ms. Request body: ${bodyBytesMax} bytes.
- Lists: \`limit\` up to ${pageLimitMax}; pass \`nextCursor\` as \`cursor\` while \`hasMore\` is true.
- Rates: ${
    facts.isRateLimited
      ? "`X-RateLimit-Limit`, `-Remaining` and `-Reset` (Unix seconds) come with every answer."
      : "requests are not limited."
  }`;
}

const errors = `## Errors

Bodies are \`{"error": "a sentence", "code": "a_word"}\`; act on \`code\`. 429 is \`{"error": "rate_limit_exceeded", "message": "…", "retryAfter": 12}\`:
wait that many seconds. 503 has \`Retry-After\`. 502 and 504 are about the target of a call, not about your request. \`invalid_cursor\` and
\`cursor_expired\`: start again from the first page. To be able to send \`POST /processes\` twice and have it done once, add \`Idempotency-Key\` (kept
for ${idempotencyKeepMs / 3_600_000} hours).`;

function links(hasRoute: (route: { readonly method: string; readonly path: string }) => boolean): string {
  const known = [
    { path: "/openapi.json", method: "GET", about: "every operation, field and error (OpenAPI 3.0.0)" },
    { path: "/docs", method: "GET", about: "the same as a page" },
    { path: "/environment/docs", method: "GET", about: "how to write programs" },
    { path: "/mcp", method: "POST", about: "the same for clients of the Model Context Protocol (streamable HTTP)" },
  ];
  const lines = known.filter(hasRoute).map(({ path, about }) => `- [${path}](${path}): ${about}`);
  return `## Links\n\n${lines.join("\n")}`;
}
