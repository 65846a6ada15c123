/**
 * The matrix itself: a reader that follows the oracle passes every cell, and readers with one wrong rule each are found out. So
 * a green matrix means something.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Hop } from "../../../src/egress/egress.ts";
import { generateCells } from "./cells.ts";
import { insecureCidrs, remarkOnAddresses } from "./network.ts";
import { decide } from "./oracle.ts";
import type { Plan } from "./plan.ts";
import { type Fault, play } from "./play.ts";
import { type Policy, policyReader } from "./policy-reader.ts";
import { searchFor } from "./secret-search.ts";
import { openTheatre, type Theatre } from "./stage.ts";

const remark = remarkOnAddresses();
let theatre: Theatre;
beforeAll(async () => {
  theatre = await openTheatre();
});
afterAll(() => theatre.close());

const right: Policy = (base, { url, address, addresses }) =>
  decide({ base: base.href, hop: url.href, connected: address, resolved: addresses, insecureCidrs });

/** The right rule, asked about a path that was changed first. */
const overPath =
  (change: (pathname: string) => string): Policy =>
  (base, hop) =>
    right(base, withUrl(hop, { pathname: change(hop.url.pathname) }), 0);

type WrongRule = readonly [rule: string, policy: Policy, fault: Fault];

const wrong: readonly WrongRule[] = [
  ["attaches everywhere", () => "attach", "leak"],
  ["never attaches", () => "anonymous", "false strip"],
  ["decides once, on the first hop", (base, hop, number) => (number === 0 ? right(base, hop, 0) : "attach"), "leak"],
  [
    "forgets the credential after the first hop",
    (base, hop, number) => (number === 0 ? right(base, hop, 0) : "anonymous"),
    "false strip",
  ],
  ["compares hosts without ports", (base, hop) => right(base, withUrl(hop, { port: base.port }), 0), "leak"],
  ["compares origins without paths", overPath(() => "/api/x"), "leak"],
  [
    "compares hosts without schemes",
    (base, hop) => (hop.url.host === base.host && hop.url.pathname.startsWith("/api") ? "attach" : right(base, hop, 0)),
    "leak",
  ],
  [
    "compares paths as text",
    (base, hop) =>
      hop.url.href.startsWith(base.href) ? right(base, withUrl(hop, { pathname: "/api/x" }), 0) : right(base, hop, 0),
    "leak",
  ],
  ["compares paths in any case", overPath((pathname) => pathname.toLowerCase()), "leak"],
  ["takes encoded slashes for letters", overPath((pathname) => pathname.replace(/%2f|%5c/gi, "-")), "leak"],
  [
    "wants a slash after the prefix",
    (base, hop) => (hop.url.pathname === "/api" ? "anonymous" : right(base, hop, 0)),
    "false strip",
  ],
  [
    "drops queries in scope",
    (base, hop, number) => (number > 0 && hop.url.search !== "" ? "anonymous" : right(base, hop, 0)),
    "false strip",
  ],
  [
    "takes no address for safe",
    (base, hop) => (hop.url.protocol === "http:" && right(base, hop, 0) === "attach" ? "refuse" : right(base, hop, 0)),
    "false strip",
  ],
];

/** Wrong about addresses only, so it takes unsafe ones to see it. */
const wrongAboutAddresses: readonly WrongRule[] = [
  ["takes every address for safe", (base, hop) => right(base, at(hop, "127.0.0.1"), 0), "leak"],
  ["judges a host once per browse", onceByHost(), "leak"],
  [
    "goes on anonymously instead of refusing",
    (base, hop) => (right(base, hop, 0) === "refuse" ? "anonymous" : right(base, hop, 0)),
    "not refused",
  ],
];

/** As one does who resolves for the check and again for the connection. */
function onceByHost(): Policy {
  let judged = new Map<string, string>();
  return (base, hop, hopNumber) => {
    if (hopNumber === 0) judged = new Map();
    const address = judged.get(hop.url.host) ?? hop.address;
    judged.set(hop.url.host, address);
    return right(base, at(hop, address), hopNumber);
  };
}

function at(hop: Hop, address: string): Hop {
  return { ...hop, address, addresses: [address] };
}

function withUrl(hop: Hop, change: { readonly pathname?: string; readonly port?: string }): Hop {
  return { ...hop, url: Object.assign(new URL(hop.url), change) };
}

/** One in five where there are many, which is in step with neither kinds (3) nor schemes (2). */
const sampled = (): readonly Plan[] =>
  generateCells({ ...theatre, rounds: 1 }).filter((_cell, at) => remark !== "" || at % 5 === 2);

async function firstFault(policy: Policy, wanted: Fault): Promise<string | undefined> {
  const stage = theatre.stage((parts) => policyReader(parts, policy));
  for (const cell of sampled()) {
    const { findings } = await play(cell, stage);
    if (findings.some(({ fault }) => fault === wanted)) return cell.name;
  }
  return undefined;
}

describe(`the matrix can fail${remark}`, () => {
  test("a reader that does as the oracle says has no finding in any of them", async () => {
    const stage = theatre.stage((parts) => policyReader(parts, right));
    const findings = [];
    for (const cell of sampled()) findings.push(...(await play(cell, stage)).findings);
    expect(findings).toEqual([]);
  });

  test.each(remark === "" ? [...wrong, ...wrongAboutAddresses] : wrong)(
    "a reader that %s is found out",
    async (_rule, policy, fault) => {
      expect(await firstFault(policy, fault)).toBeDefined();
    },
  );
});

describe("a secret is found", () => {
  const secret = "k+/=%~ü and something long";
  const bytes = (text: string): string => Buffer.from(text).toString("latin1");

  test.each([
    ["as it is", `x: ${bytes(secret)}`],
    ["in part", `x: ${secret.slice(7, 20)}`],
    ["percent-encoded", `GET /?key=${encodeURIComponent(secret)}`],
    ["percent-encoded throughout", [...Buffer.from(secret)].map((byte) => `%${byte.toString(16)}`).join("")],
    ["in capitals", secret.toUpperCase()],
    ...["", "u", "us", "user"].flatMap((user): [string, string][] => {
      const pair = Buffer.from(`${user}:${secret}`);
      return [
        [`in base64 after ${JSON.stringify(user)}`, pair.toString("base64")],
        [`in base64 for URLs after ${JSON.stringify(user)}`, pair.toString("base64url")],
      ];
    }),
  ])("%s", (_form, text) => {
    expect(searchFor(secret)(text)).toBeGreaterThanOrEqual(0);
  });

  test("only where it is", () => {
    expect(searchFor(secret)("GET /api/definitions?limit=50 HTTP/1.1\r\nhost: four.test\r\nx: and some\r\n")).toBe(-1);
  });
});
