/** An MCP server over stdio, run as a process by the tests: `node mcp-stdio-server.ts MODE`. Honest ones are the SDK's. */
import { spawn } from "node:child_process";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";
import { toolServer } from "./mcp-tools.ts";

const mode = process.argv[2] ?? "honest";
const out = (text: string) => process.stdout.write(text);

if (mode === "exit") {
  console.error(`cannot open the ledger with key ${process.env.LEDGER_KEY}`);
  process.exit(3);
}
if (mode === "hang") setInterval(() => undefined, 1_000);
else if (mode === "babble") setInterval(() => out("la la la\n".repeat(50)), 5);
else if (mode === "endless-line") setInterval(() => out("x".repeat(1_000_000)), 1);
else await serve();

async function serve(): Promise<void> {
  const { server } = toolServer();
  server.registerTool("place", {}, () => said(JSON.stringify({ pid: process.pid, cwd: process.cwd() })));
  server.registerTool("die", {}, () => process.exit(7));
  server.registerTool("child", {}, () => {
    const child = spawn("sleep", ["600"], { stdio: "inherit" });
    return said(`${child.pid}`);
  });
  server.registerTool("change", {}, () => {
    server.registerTool("new", { inputSchema: { a: z.number() } }, () => said("new"));
    return said("changed");
  });
  server.registerTool("say", { inputSchema: { line: z.string(), times: z.number() } }, ({ line, times }) => {
    out(`${line}\n`.repeat(times));
    return said("said");
  });
  // Too long for an argument.
  server.registerTool("list", { inputSchema: { items: z.number() } }, ({ items }) => {
    out(`{"jsonrpc":"2.0","id":"x","result":[${"[],".repeat(items)}0]}\n`);
    return said("listed");
  });
  if (mode === "greet") out("Welcome!\n\n");
  if (mode === "flood-stderr") setInterval(() => process.stderr.write(`noise ${"x".repeat(100)}\n`.repeat(1_000)), 1);
  if (mode === "flood-stdout") {
    const notice = JSON.stringify({
      jsonrpc: "2.0",
      method: "notifications/message",
      params: { level: "info", data: 1 },
    });
    setInterval(() => out(`${notice}\n`.repeat(500)), 1);
  }
  if (mode === "stubborn") {
    process.stdin.on("end", () => setInterval(() => undefined, 1_000));
    process.on("SIGTERM", () => undefined);
  }
  server.registerTool("environment", {}, () => {
    if (mode === "deaf") process.stdin.pause();
    return said(JSON.stringify(process.env));
  });
  const transport = new StdioServerTransport();
  await server.connect(transport as Parameters<typeof server.connect>[0]);
}

function said(text: string): { content: { type: "text"; text: string }[] } {
  return { content: [{ type: "text", text }] };
}
