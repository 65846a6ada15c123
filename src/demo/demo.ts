/**
 * `npm run demo`: a real server on a temporary folder, a real pet store, and everything a user does to get from one to the
 * other, then the same from a registry; each step printed as a curl command. `npm run demo -- FILE_OR_URL`: the same for any OpenAPI document, up to its
 * tools. Ends with 0 when every answer was the expected one, with 1 and the reason otherwise; leaves nothing behind.
 */
import { type Guide, takeTour } from "./guide.ts";
import { prepareDocument } from "./installation.ts";
import { startPetStore } from "./pet-store.ts";
import { registryClient, startRegistry } from "./registry-child.ts";
import { startServer } from "./server-child.ts";
import { documentTour, petStoreTour, registryTour } from "./tour.ts";

/** What must be undone, last first, however the demo ends. */
type Cleanups = (() => Promise<void> | void)[];

/** Not a secret: the pet store listens on loopback and forgets everything. */
const apiKey = "demo-key";

const interrupted = new AbortController();
const print = (text: string) => process.stdout.write(`${text}\n`);

process.exitCode = await main(process.argv.slice(2));

async function main(words: readonly string[]): Promise<number> {
  const [fileOrUrl, ...more] = words;
  if (more.length > 0 || fileOrUrl?.startsWith("-")) {
    process.stderr.write("Usage: npm run demo [-- FILE_OR_URL]\n");
    return 64;
  }
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => interrupted.abort());
  // A reader that has seen enough, such as head, ends the demo like Ctrl-C does.
  process.stdout.on("error", () => interrupted.abort());
  const cleanups: Cleanups = [];
  try {
    await (fileOrUrl === undefined ? petStoreDemo(cleanups) : documentDemo(fileOrUrl, cleanups));
    return 0;
  } catch (error) {
    if (interrupted.signal.aborted) return 130;
    process.stderr.write(`\nThe demo failed. ${reason(error)}\n`);
    return 1;
  } finally {
    for (const cleanup of cleanups.reverse()) await cleanup();
  }
}

async function petStoreDemo(cleanups: Cleanups): Promise<void> {
  const store = await startPetStore({ port: 0, apiKey });
  cleanups.push(() => store.close());
  print(`Pet store: ${store.url}, described at ${store.documentUrl}`);
  const guide = await startGuide(cleanups);
  const { documentUrl, port } = store;
  const output = await takeTour(petStoreTour({ documentUrl, port, apiKey }), guide);
  print(`\nThe program ran, and this is its output:\n${JSON.stringify(output, null, 2)}`);

  const registry = await startRegistry();
  cleanups.push(() => registry.stop());
  print(`\nThe same from a registry: ${registry.url}`);
  const counted = await takeTour(registryTour({ registryUrl: registry.url, ...registryClient, port, apiKey }), guide);
  print(`\nInstalled from the registry, it counts the same pets:\n${JSON.stringify(counted, null, 2)}`);
}

async function documentDemo(fileOrUrl: string, cleanups: Cleanups): Promise<void> {
  const { installation, close } = await prepareDocument(fileOrUrl);
  cleanups.push(close);
  await takeTour(documentTour(installation), await startGuide(cleanups));
  print(`\nThat is all of "${fileOrUrl}" that can be shown without its configuration and secrets.`);
}

/** Someone who knows the way around a server of our own. */
async function startGuide(cleanups: Cleanups): Promise<Guide> {
  const { signal } = interrupted;
  const server = await startServer({ signal });
  cleanups.push(() => server.stop());
  print(`Troupe: ${server.http} (REST) and ${server.grpc} (gRPC), on a temporary folder`);
  return { base: server.http, signal, print };
}

/** An error of fetch hides its reason in the cause. */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
