/** From what the user typed after `npm run demo --` to the way its document is installed. */
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { basename, extname } from "node:path";
import { quoted } from "./curl.ts";
import type { Installation } from "./tour.ts";

/** Request bodies hold 2 MiB and JSON escapes grow the text, so larger files are served to the server by URL instead. */
const inlineBytesMax = 1_000_000;

const saying = {
  url: "Install the document as a service; the server fetches it. It starts disabled.",
  inline: "Install the document as a service, sent along as text. It starts disabled.",
  served:
    "Install the document as a service. It is too large to be sent along, so the demo serves it by URL meanwhile.",
} as const;

export interface PreparedDocument {
  readonly installation: Installation;
  close(): void;
}

/** Rejects with a sentence for the user when the file cannot be read. A URL is left for the server to fetch. */
export async function prepareDocument(fileOrUrl: string): Promise<PreparedDocument> {
  if (/^https?:\/\//i.test(fileOrUrl)) {
    return { installation: { say: saying.url, body: { adapter: "openapi", url: fileOrUrl } }, close: () => {} };
  }
  const text = await readDocument(fileOrUrl);
  if (Buffer.byteLength(text) > inlineBytesMax) return servedOnLoopback(fileOrUrl, text);
  const id = serviceIdFrom(fileOrUrl);
  const bodyFrom = `jq -Rs '{id: "${id}", adapter: "openapi", definition: .}' ${quoted(fileOrUrl)}`;
  return {
    installation: { say: saying.inline, body: { id, adapter: "openapi", definition: text }, bodyFrom },
    close: () => {},
  };
}

async function readDocument(file: string): Promise<string> {
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: "there is no such file",
    EISDIR: "it is a folder",
    EACCES: "it may not be read",
  };
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    throw new Error(`Cannot read "${file}": ${reasons[code] ?? (code || String(error))}`);
  }
}

async function servedOnLoopback(file: string, text: string): Promise<PreparedDocument> {
  const server = createServer((_, response) => response.end(text));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/${encodeURIComponent(basename(file))}`;
  return {
    installation: { say: saying.served, body: { id: serviceIdFrom(file), adapter: "openapi", url } },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** `./My API.v2.yaml` → `My_API_v2`. */
export function serviceIdFrom(file: string): string {
  const id = basename(file, extname(file)).replace(/[^A-Za-z0-9_$]/g, "_");
  return /^[A-Za-z_$]/.test(id) ? id : `_${id}`;
}
