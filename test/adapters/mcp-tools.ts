/** The tools that the real MCP servers of the tests have, over HTTP and over stdio alike. */
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";

export interface ToolServer {
  readonly server: McpServer;
  /** Ids of cancelled calls of `wait` and how many of them began. */
  readonly seen: { begun: number; cancelled: number };
}

export function toolServer(seen: ToolServer["seen"] = { begun: 0, cancelled: 0 }): ToolServer {
  const server = new McpServer(
    { name: "calculator", title: "Calculator", version: "2.1.0" },
    { instructions: "Adds numbers. And more.", capabilities: { tools: { listChanged: true }, logging: {} } },
  );
  const add = {
    title: "Add",
    description: "Adds two numbers. Slowly.",
    inputSchema: { a: z.number(), b: z.number() },
    outputSchema: { sum: z.number() },
  };
  server.registerTool("add", add, ({ a, b }) => ({
    content: [{ type: "text", text: `${a + b}` }],
    structuredContent: { sum: a + b },
  }));
  server.registerTool("fail", { description: "Fails" }, () => {
    throw new Error("no luck today");
  });
  server.registerTool("files_read.all-1", { inputSchema: { path: z.string() } }, ({ path }) => ({
    content: [
      { type: "text", text: path },
      { type: "image", data: "AAAA", mimeType: "image/png" },
    ],
  }));
  server.registerTool("big", { inputSchema: { bytes: z.number() } }, ({ bytes }) => ({
    content: [{ type: "text", text: "x".repeat(bytes) }],
  }));
  server.registerTool("progress", {}, async (extra) => {
    for (let progress = 0; progress < 5; progress += 1) {
      await extra.sendNotification({
        method: "notifications/message",
        params: { level: "info", data: `step ${progress}` },
      });
    }
    return { content: [{ type: "text", text: "done" }] };
  });
  server.registerTool("wait", { inputSchema: { ms: z.number() } }, ({ ms }, { signal }) => {
    seen.begun += 1;
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve({ content: [{ type: "text", text: "waited" }] }), ms);
      signal.addEventListener("abort", () => {
        seen.cancelled += 1;
        clearTimeout(timer);
      });
    });
  });
  return { server, seen };
}
