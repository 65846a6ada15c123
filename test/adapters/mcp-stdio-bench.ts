/** The stdio server of the tests as documents and answers. */
import { fileURLToPath } from "node:url";

const script = fileURLToPath(new URL("./mcp-stdio-server.ts", import.meta.url));

/** The Node that runs the tests. */
export const command = process.execPath;

export function stdioDocument(mode: string): object {
  return { command, args: [script, mode] };
}

export function text(result: unknown): string {
  return (result as { content: { text: string }[] }).content[0]!.text;
}
