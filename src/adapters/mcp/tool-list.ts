/** The tools of a server, page by page to the end. */
import { z } from "zod";
import { Failure } from "../../errors/failure.ts";
import { mcpPageBytesMax, mcpPagesMax, mcpToolsMax } from "../../limits.ts";
import type { Session } from "./session.ts";
import type { RequestBounds } from "./transport.ts";

const pageShape = z.object({ tools: z.array(z.unknown()), nextCursor: z.string().nullish() });

/** Gives each page's tools. Rejects with Failure for a list without end, else with what stood in the way. */
export async function* toolPages(
  session: Session,
  signal: AbortSignal,
  leftMs: () => number,
): AsyncGenerator<readonly unknown[]> {
  const seen = new Set<string>();
  let cursor: string | undefined;
  let tools = 0;
  for (let page = 0; page < mcpPagesMax; page += 1) {
    const bounds: RequestBounds = { signal, timeoutMs: leftMs(), bytesMax: mcpPageBytesMax };
    const request = { method: "tools/list", params: cursor === undefined ? {} : { cursor } } as const;
    const found = await session.request(request, pageShape, bounds);
    tools += found.tools.length;
    if (tools > mcpToolsMax) throw endless(`it has more than ${mcpToolsMax} tools`);
    yield found.tools;
    if (found.nextCursor === undefined || found.nextCursor === null || found.nextCursor === "") return;
    if (seen.has(found.nextCursor)) throw endless("its tool list comes back to a page that was there before");
    seen.add(found.nextCursor);
    cursor = found.nextCursor;
  }
  throw endless(`its tool list has more than ${mcpPagesMax} pages`);
}

function endless(reason: string): Failure {
  return new Failure("upstream_failed", `Cannot read the tools of the MCP server: ${reason}`);
}

/** Whether the server still lists a tool of this name. */
export async function hasTool(
  session: Session,
  name: string,
  signal: AbortSignal,
  leftMs: () => number,
): Promise<boolean> {
  for await (const tools of toolPages(session, signal, leftMs)) {
    if (tools.some((tool) => typeof tool === "object" && tool !== null && "name" in tool && tool.name === name))
      return true;
  }
  return false;
}
