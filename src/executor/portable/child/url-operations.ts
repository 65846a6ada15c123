/** What the guest's URL classes ask for: JSON text in, JSON text out, undefined where the address is none. */
const parts = [
  "href",
  "protocol",
  "username",
  "password",
  "host",
  "hostname",
  "port",
  "pathname",
  "search",
  "hash",
  "origin",
] as const;
type Writable = Exclude<(typeof parts)[number], "origin">;

export function urlOperation(operation: string, json: string): string | undefined {
  switch (operation) {
    case "url-parse": {
      const [address, base] = JSON.parse(json) as [string, string?];
      return toParts(URL.parse(address, base));
    }
    case "url-set": {
      const [href, name, value] = JSON.parse(json) as [string, string, string];
      const url = URL.parse(href);
      if (url === null || !isWritable(name)) return undefined;
      if (name === "href") return toParts(URL.parse(value));
      url[name] = value;
      return toParts(url);
    }
    case "params-parse":
      return JSON.stringify([...new URLSearchParams(JSON.parse(json) as string)]);
    case "params-write":
      return JSON.stringify(new URLSearchParams(JSON.parse(json) as [string, string][]).toString());
    default:
      return undefined;
  }
}

function isWritable(name: string): name is Writable {
  return name !== "origin" && (parts as readonly string[]).includes(name);
}

function toParts(url: URL | null): string | undefined {
  if (url === null) return undefined;
  return JSON.stringify(Object.fromEntries(parts.map((name) => [name, url[name]])));
}
