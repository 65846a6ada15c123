/**
 * Requests made from the server's own OpenAPI document, right and wrong, by the thousand: no crash, no fault of the server, no answer that is
 * not documented, and memory that stays where it is. A failure names its seed; TROUPE_SEED and TROUPE_FUZZ_REQUESTS choose others.
 */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DevRegistry, startDevRegistry } from "../../../src/dev-registry/dev-registry.ts";
import { Contract, type Document, type Exchange } from "../answers/contract.ts";
import { removeFolder, type Server, startServer } from "../server.ts";
import { Random } from "./random.ts";
import { type FuzzRequest, type Known, Requests } from "./requests.ts";
import { openSender, type Sender } from "./send.ts";

const count = Number(process.env.TROUPE_FUZZ_REQUESTS ?? 3_000);
const wantedSeed = process.env.TROUPE_SEED ?? "20261128";
const seed = wantedSeed === "random" ? Date.now() % 2 ** 31 : Number(wantedSeed);
const atOnce = 8;
const residentMbMax = 400;
/** Records that deletions have taken are made again after so many requests. */
const renewedEvery = 50;

let server: Server;
let registry: DevRegistry;
let sender: Sender;
let document: Document;

/** Counted, so that the headers are there, and never reached. */
const unlimitedRates = [
  "*",
  "POST /registries",
  "POST /registries/{id}/refresh",
  "POST /registries/{id}/auth",
  "POST /modules",
  "POST /modules/reload",
  "POST /modules/{id}/update",
  "POST /modules/{id}/rollback",
  "POST /services",
  "POST /services/{id}/update",
  "POST /services/{id}/sync",
]
  .map((route) => `${route}=1000000/1s`)
  .join("; ");

/** Of processes that were created last. */
const processIds: number[] = [];
const processIdsMax = 20;

const known: Known = {
  "processes.id": processIds,
  "registries.id": ["open"],
  serviceId: ["pets"],
  toolId: ["getState"],
  moduleId: ["openapi", "javascript", "graphql"],
  entryId: ["petstore", "csv-table"],
  // Nothing but what is on this machine is asked for anything.
  "body.baseUrl": ["http://127.0.0.1:9/", "http://localhost:9/a", "ftp://127.0.0.1/", "no url"],
  "body.url": ["http://127.0.0.1:9/openapi.json", "file:///etc/passwd", "no url"],
  "body.source": ["http://127.0.0.1:9/a.tgz", "no url"],
  "body.registryId": ["open", "none"],
  "body.code": [
    "",
    "return 1",
    "throw 1",
    "output({ a: 1 })",
    "(",
    "console.log('\\ud800')",
    "await services.pets.getState({})",
  ],
  wait: [0, 1],
};

beforeAll(async () => {
  server = await startServer({
    settings: {
      SERVICE_API_KEYS: "boss:operator:boss-key",
      SERVICE_RATE_LIMITS: unlimitedRates,
      SERVICE_PROCESS_TIMEOUT_MS: "2000",
    },
  });
  registry = await startDevRegistry({ id: "open" });
  sender = openSender(server.http, "Bearer boss-key");
  document = JSON.parse((await sender.send(plain("GET", "/openapi.json"))).text);
  await renew();
});

afterAll(async () => {
  sender.close();
  await registry.close();
  await server.kill("SIGTERM");
  await removeFolder(server.folder);
});

function plain(method: string, path: string, body?: unknown): FuzzRequest {
  const headers: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
  return { kind: "plain", method, path, headers, body: body === undefined ? undefined : JSON.stringify(body) };
}

async function renew(): Promise<void> {
  const definition = {
    openapi: "3.1.0",
    info: { title: "Pets", version: "1.0.0" },
    servers: [{ url: "http://127.0.0.1:9" }],
    paths: { "/state": { get: { operationId: "getState", responses: { 200: { description: "The state" } } } } },
  };
  await sender.send(plain("POST", "/registries", { baseUrl: registry.url }));
  await sender.send(plain("POST", "/services", { id: "pets", definition }));
  await sender.send(plain("POST", "/services/pets/enabled", { enabled: true }));
  await sender.send(plain("POST", "/modules/javascript/enabled", { enabled: true }));
  for (const moduleId of ["openapi", "graphql"])
    await sender.send(plain("POST", `/modules/${moduleId}/enabled`, { enabled: true }));
  noteProcess(await sender.send(plain("POST", "/processes", { code: "return { a: 1 }" })));
}

function noteProcess({ method, path, status, text }: Exchange): void {
  if (method !== "POST" || !/^\/processes(\?|$)/.test(path) || status !== 200) return;
  processIds.push(JSON.parse(text).id);
  if (processIds.length > processIdsMax) processIds.shift();
}

/** Where others are asked something, what they do is not our fault; elsewhere nothing above 500 is expected while all is well. */
function isUnexpected({ method, path, status }: Exchange, contract: Contract): boolean {
  if (status < 500) return false;
  return status === 500 || contract.operation(method, path)?.responses[502] === undefined;
}

function residentMb(): number {
  const text = readFileSync(`/proc/${server.child.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(text)?.[1]) / 1024;
}

describe(`${count} requests from the document`, () => {
  it("are all answered as documented, without a fault of the server", { timeout: 60_000 + count * 60 }, async () => {
    const contract = new Contract(document);
    const requests = new Requests(document, known, new Random(seed));
    const problems: string[] = [];
    const statuses: Record<number, number> = {};
    let made = 0;
    let residentMbSeen = 0;

    async function oneAfterAnother(): Promise<void> {
      while (made < count && problems.length < 20) {
        made += 1;
        const number = made;
        if (number % renewedEvery === 0) await renew();
        if (number % 100 === 0) residentMbSeen = Math.max(residentMbSeen, residentMb());
        const request = requests.next();
        const told = `seed ${seed}, request ${number} (${request.kind}): ${request.method} ${request.path.slice(0, 200)} ${request.body?.slice(0, 200) ?? ""}`;
        try {
          const exchange = await sender.send(request);
          noteProcess(exchange);
          statuses[exchange.status] = (statuses[exchange.status] ?? 0) + 1;
          const found = contract.problems(exchange);
          if (isUnexpected(exchange, contract))
            found.push(`unexpected ${exchange.status}: ${exchange.text.slice(0, 200)}`);
          problems.push(...found.map((problem) => `${problem}\n  ${told}`));
        } catch (error) {
          problems.push(`${String(error)}\n  ${told}`);
        }
      }
    }

    await Promise.all(Array.from({ length: atOnce }, oneAfterAnother));
    console.info(`fuzz: ${made} requests, seed ${seed}, ${Math.round(residentMbSeen)} MiB at most`, statuses);
    // With what the log has to say on faults, which answers leave out.
    const faults = server.lines.filter((line) => line.includes('"level":"error"')).slice(0, 10);
    expect({ problems, faults }).toEqual({ problems: [], faults: [] });
    expect(server.child.exitCode).toBeNull();
    expect(residentMbSeen).toBeLessThan(residentMbMax);
    // It is no use when everything is refused, or nothing.
    const successes = (statuses[200] ?? 0) + (statuses[201] ?? 0) + (statuses[204] ?? 0);
    expect(successes / made).toBeGreaterThan(0.15);
    expect((statuses[400] ?? 0) / made).toBeGreaterThan(0.15);
    expect((await sender.send(plain("GET", "/healthz"))).status).toBe(200);
  });
});
