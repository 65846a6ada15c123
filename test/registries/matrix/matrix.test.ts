/**
 * Redirects and addresses: every generated chain of hops is answered by real servers, and the bytes they received are held
 * against an oracle that knows the specification only. TROUPE_MATRIX_ROUNDS=3 and more (up to 15) play more statuses and chain
 * lengths per combination.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { openRegistryReader } from "../../../src/registries/registry-reader.ts";
import { generateCells } from "./cells.ts";
import { insecureCidrs } from "./network.ts";
import { type Finding, play } from "./play.ts";
import { openTheatre, type Theatre } from "./stage.ts";
import { summary } from "./summary.ts";

const cellsMin = 600;

let theatre: Theatre;
beforeAll(async () => {
  theatre = await openTheatre();
});
afterAll(() => theatre.close());

test("no redirect leads a credential astray and none loses it, in at least 600 cells", async ({ annotate }) => {
  const stage = theatre.stage((parts) => openRegistryReader({ ...parts, insecureCidrs }));
  // Without the addresses beyond loopback there are fewer combinations, so more of each is played.
  const perRound = generateCells({ ...theatre, rounds: 1 }).length;
  const rounds = Math.max(Number(process.env.TROUPE_MATRIX_ROUNDS ?? 1), Math.ceil(cellsMin / perRound));
  const cells = generateCells({ ...theatre, rounds });
  const findings: Finding[] = [];
  const decisions: string[] = [];
  for (const cell of cells) {
    const played = await play(cell, stage);
    findings.push(...played.findings);
    decisions.push(...played.decisions);
  }
  const told = summary({ cells: cells.length, decisions, findings, leftOut: theatre.leftOut });
  await annotate(told);
  console.log(told);
  expect(cells.length).toBeGreaterThanOrEqual(cellsMin);
  expect(new Set(decisions)).toEqual(
    new Set(theatre.classes.includes("unlisted") ? ["attach", "anonymous", "refuse"] : ["attach", "anonymous"]),
  );
  expect(findings.map(({ plan, fault, detail }) => `${fault}: ${plan.name}: ${detail}`)).toEqual([]);
}, 300_000);
