/**
 * Redirects and addresses: every generated chain of hops is answered by real servers, and the bytes they received are held
 * against an oracle that knows the specification only. TROUPE_MATRIX_ROUNDS=3 and more (up to 15) play more statuses and chain
 * lengths per combination.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { openRegistryReader } from "../../../src/registries/registry-reader.ts";
import { generateCells } from "./cells.ts";
import { insecureCidrs, remarkOnAddresses } from "./network.ts";
import { issueCredential, type Plan } from "./plan.ts";
import { type Finding, play, type Stage } from "./play.ts";
import { searchFor } from "./secret-search.ts";
import { openTheatre, type Theatre } from "./stage.ts";
import { summary } from "./summary.ts";

const cellsMin = 600;

let theatre: Theatre;
beforeAll(async () => {
  theatre = await openTheatre();
});
afterAll(() => theatre.close());

const openStage = (): Stage => theatre.stage((parts) => openRegistryReader({ ...parts, insecureCidrs }));

interface Result {
  readonly decisions: readonly string[];
  readonly findings: readonly Finding[];
}

async function playAll(cells: readonly Plan[]): Promise<Result> {
  const stage = openStage();
  const findings: Finding[] = [];
  const decisions: string[] = [];
  for (const cell of cells) {
    const played = await play(cell, stage);
    findings.push(...played.findings);
    decisions.push(...played.decisions);
  }
  console.log(summary({ cells: cells.length, decisions, findings, leftOut: theatre.leftOut }));
  return { decisions, findings };
}

const described = ({ plan, fault, detail }: Finding): string => `${fault}: ${plan.name}: ${detail}`;

test(`no redirect leads a credential astray and none loses it, in at least 600 cells${remarkOnAddresses()}`, async () => {
  // Without the addresses beyond loopback there are fewer combinations, so more of each is played.
  const perRound = generateCells({ ...theatre, rounds: 1 }).length;
  const rounds = Math.max(Number(process.env.TROUPE_MATRIX_ROUNDS ?? 1), Math.ceil(cellsMin / perRound));
  const cells = generateCells({ ...theatre, rounds });
  const { decisions, findings } = await playAll(cells);
  expect(cells.length).toBeGreaterThanOrEqual(cellsMin);
  expect(new Set(decisions)).toEqual(
    new Set(theatre.classes.includes("unlisted") ? ["attach", "anonymous", "refuse"] : ["attach", "anonymous"]),
  );
  expect(findings.map(described)).toEqual([]);
}, 300_000);

test.each(["descriptor", "artifact"] as const)("the same holds for a request of kind %s", async (want) => {
  const every = want === "descriptor" ? 5 : 3;
  const cells = generateCells({ ...theatre, rounds: 1 }).filter((_cell, at) => at % every === 1);
  const { findings } = await playAll(cells.map((cell) => ({ ...cell, want })));
  expect(findings.map(described)).toEqual([]);
});

test("registries below each other on one origin, read at once, each send their own credential only", async () => {
  const stage = openStage();
  const origin = `http://four.test:${theatre.ports.main}`;
  const registries = ["", "/b", "/b/c"].map((path) => {
    const { secret, credential, header } = issueCredential("apiKey", "X-API-Key");
    const credentials = { current: async () => credential, renewed: async () => null };
    const access = { registryId: path, baseUrl: `${origin}${path}`, credentials, signal: new AbortController().signal };
    // All ask for the same path, which lies in the scope of each: what differs is on whose behalf.
    const url = `${origin}/b/c/definitions?for=${encodeURIComponent(path)}`;
    return { path, url, access, value: header[1], traces: searchFor(secret) };
  });
  const asked = Array.from({ length: 50 }, () => registries).flat();
  stage.names.restart();
  stage.recorder.expect(asked.map(() => ({ status: 200, headers: {}, body: '{"definitions":[],"nextCursor":null}' })));
  await Promise.all(asked.map(({ access, url }) => stage.reader.page(access, "definitions", url, { limit: 50 })));
  expect(stage.recorder.arrivals).toHaveLength(asked.length);
  for (const { target, bytes } of stage.recorder.arrivals) {
    const path = new URLSearchParams(target.split("?")[1]).get("for");
    for (const registry of registries) expect(registry.traces(bytes) >= 0).toBe(registry.path === path);
  }
});

test("the token of the retry after a 401 is led by the same rules as the first", async () => {
  const stage = openStage();
  const base = `http://four.test:${theatre.ports.main}/api`;
  const [first, second] = [issueCredential("oauth2", "Authorization"), issueCredential("oauth2", "Authorization")];
  const credentials = { current: async () => first.credential, renewed: async () => second.credential };
  const access = { registryId: "retry", baseUrl: base, credentials, signal: new AbortController().signal };
  const goTo = (location: string) => ({ status: 307, headers: { location } });
  stage.names.restart();
  stage.recorder.expect([
    goTo(`${base}/moved`),
    { status: 401, headers: {} },
    goTo(`http://evil.test:${theatre.ports.main}/api/x`),
    goTo(`${base}/back`),
    { status: 200, headers: {}, body: '{"definitions":[],"nextCursor":null}' },
  ]);
  await stage.reader.page(access, "definitions", `${base}/definitions`, { limit: 50 });
  const carried = stage.recorder.arrivals.map(({ bytes }) =>
    [first, second].map(({ secret }) => searchFor(secret)(bytes) >= 0),
  );
  const [withFirst, withSecond, withNone] = [
    [true, false],
    [false, true],
    [false, false],
  ];
  expect(carried).toEqual([withFirst, withFirst, withSecond, withNone, withSecond]);
});
