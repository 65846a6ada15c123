/** Redirects to hand-picked URLs, and redirects that lead nowhere. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isFailure } from "../../../src/errors/failure.ts";
import { openRegistryReader } from "../../../src/registries/registry-reader.ts";
import { insecureCidrs } from "./network.ts";
import { decide } from "./oracle.ts";
import { headerNameFor, issueCredential, type Plan } from "./plan.ts";
import { type Finding, play, type Stage } from "./play.ts";
import type { Answer } from "./recorder.ts";
import { searchFor } from "./secret-search.ts";
import { openTheatre, type Theatre } from "./stage.ts";
import { summary } from "./summary.ts";
import { type UrlRow, urlRows } from "./url-rows.ts";

let theatre: Theatre;
let stage: Stage;
beforeAll(async () => {
  theatre = await openTheatre();
  stage = theatre.stage((parts) => openRegistryReader({ ...parts, insecureCidrs }));
});
afterAll(() => theatre.close());

const kinds = ["apiKey under an odd name", "oauth2"] as const;
const statuses = [301, 302, 303, 307, 308];

function planOf(row: UrlRow, turn: number, kind: (typeof kinds)[number]): Plan {
  const capability = `${row.base.replace(/\/$/, "")}/definitions`;
  return {
    name: `${row.why}: ${row.location} from ${row.base}, ${kind}`,
    group: row.why,
    base: row.base,
    kind,
    headerName: headerNameFor(kind, turn),
    hops: [
      { url: capability, redirect: { status: statuses[turn % statuses.length] ?? 302, location: row.location } },
      { url: row.means },
    ],
    ...(row.names === undefined ? {} : { names: row.names }),
    ...(row.mayStop === true ? { mayStopBefore: [1] } : {}),
  };
}

test("the oracle and the decisions written by hand agree about every row", () => {
  const rows = urlRows(theatre.ports);
  const differing = rows.filter(({ base, means, decision }) => {
    const connected = "127.0.0.1";
    return decide({ base, hop: means, connected, resolved: [connected], insecureCidrs }) !== decision;
  });
  expect(differing.map(({ why, means }) => `${why}: ${means}`)).toEqual([]);
});

test("hand-picked URLs get a credential exactly where they should", async () => {
  const findings: Finding[] = [];
  const open: Finding[] = [];
  const decisions: string[] = [];
  const rows = urlRows(theatre.ports);
  for (const [at, row] of rows.entries()) {
    for (const kind of kinds) {
      const played = await play(planOf(row, at, kind), stage);
      (row.isOpen === true ? open : findings).push(...played.findings);
      decisions.push(...played.decisions);
    }
  }
  console.log(summary({ cells: rows.length * kinds.length, decisions, findings, leftOut: [] }));
  // What the specification leaves open may go to either side, but the credential must not be changed or appear elsewhere.
  expect(
    open.filter(({ fault }) => fault !== "false strip").map(({ plan, detail }) => `${plan.name}: ${detail}`),
  ).toEqual([]);
  expect(findings.map(({ plan, fault, detail }) => `${fault}: ${plan.name}: ${detail}`)).toEqual([]);
});

/** Requests that arrived, and the failure or "a page". */
async function browse(
  base: string,
  answers: readonly Answer[],
  signal?: AbortSignal,
): Promise<{ requests: number; outcome: string }> {
  const { secret, credential } = issueCredential("apiKey", "X-API-Key");
  stage.recorder.expect(answers);
  const access = {
    registryId: "matrix",
    baseUrl: base,
    credentials: { current: async () => credential, renewed: async () => null },
    signal: signal ?? new AbortController().signal,
  };
  const outcome = await stage.reader.page(access, "definitions", `${base}/definitions`, { limit: 50 }).then(
    () => "a page",
    (error: unknown) => (isFailure(error) ? `${error.kind}: ${error.message}` : String(error)),
  );
  expect(searchFor(secret)(outcome)).toBe(-1);
  return { requests: stage.recorder.arrivals.length, outcome };
}

const redirect = (location: string | readonly string[], status = 302): Answer => ({ status, headers: { location } });

describe("a redirect that leads nowhere is refused", () => {
  const base = (): string => `http://four.test:${theatre.ports.main}/api`;

  test.each([
    ["to a malformed URL", "http://[bad"],
    ["to a malformed port", "http://evil.test:99999/"],
    ["to a script", "javascript:1"],
    ["to a file", "file:///etc/passwd"],
    ["to data", "data:application/json,{}"],
    ["to another protocol", "ftp://evil.test/x"],
    ["to a socket", "ws://evil.test/x"],
    ["without a host", "http://"],
    ["with nothing in its Location", ""],
    ["to a Location of 1 MB", `/api/${"x".repeat(1_000_000)}`],
  ])("%s", async (_what, location) => {
    stage.names.restart();
    const startedAt = performance.now();
    const { requests, outcome } = await browse(base(), [redirect(location)]);
    expect(outcome).toMatch(/^upstream_failed: /);
    expect(requests).toBe(1);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });

  test("without a Location", async () => {
    const { requests, outcome } = await browse(base(), [{ status: 302, headers: {} }]);
    expect(outcome).toMatch(/^upstream_failed: /);
    expect(requests).toBe(1);
  });

  test.each([
    ["to itself", () => [`${base()}/definitions`]],
    ["between two", () => [`${base()}/a`, `${base()}/b`]],
    ["between two origins", () => [`http://evil.test:${theatre.ports.main}/a`, `${base()}/b`]],
    ["along a chain without end", () => Array.from({ length: 50 }, (_, at) => `${base()}/${at}`)],
  ])("when it goes round %s, after six requests", async (_what, locations) => {
    const places = locations();
    const answers = Array.from({ length: 60 }, (_, at) => redirect(places[at % places.length] ?? ""));
    const { requests, outcome } = await browse(base(), answers);
    expect(outcome).toMatch(/^upstream_failed: /);
    expect(requests).toBe(6);
  });

  test("two Location fields never lead the credential to the second of them", async () => {
    const answers = [redirect([`${base()}/x`, `http://evil.test:${theatre.ports.main}/`])];
    const { outcome } = await browse(base(), [...answers, { status: 404, headers: {} }]);
    expect(outcome).toMatch(/^upstream_failed: /);
    expect(stage.recorder.arrivals.every(({ address }) => address === stage.recorder.arrivals[0]?.address)).toBe(true);
  });

  test("when it is no redirect, whatever its Location says", async () => {
    for (const status of [300, 304, 305, 306, 201]) {
      const { requests } = await browse(base(), [redirect(`http://evil.test:${theatre.ports.main}/`, status)]);
      expect(requests, String(status)).toBe(1);
    }
  });
});
