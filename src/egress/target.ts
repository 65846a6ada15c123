/** The URLs the client will ask: absolute, http or https, nothing in front of the host. */
import { Failure } from "../errors/failure.ts";

/** @throws Failure upstream_failed. Only scheme and host are repeated: paths and queries may hold secrets. */
export function parseTarget(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href);
  if (url === null)
    throw new Failure(
      "upstream_failed",
      base === undefined ? "Cannot send a request: its URL is malformed" : `${said(base)} redirects to a malformed URL`,
    );
  const subject =
    base === undefined ? `Cannot send a request to "${url.host}"` : `${said(base)} redirects to "${url.host}"`;
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new Failure("upstream_failed", `${subject}: "${url.protocol}" is neither http nor https`);
  }
  if (url.username !== "" || url.password !== "")
    throw new Failure("upstream_failed", `${subject}: the URL holds credentials`);
  url.hash = "";
  return url;
}

/** Where a redirect leads; undefined when the answer is none. */
export function redirectTarget(status: number, location: string | undefined, from: URL): URL | undefined {
  const redirects = status === 301 || status === 302 || status === 303 || status === 307 || status === 308;
  return redirects && location !== undefined && location !== "" ? parseTarget(location, from) : undefined;
}

function said(url: URL): string {
  return `"${url.host}"`;
}
