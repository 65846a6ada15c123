/**
 * The transport rule by address: which addresses may have a credential in clear, when a name has several, changes between
 * look-ups, or may not be reached at all. Played over real sockets and held against the oracle.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isFailure } from "../../../src/errors/failure.ts";
import type { RegistryReader } from "../../../src/ports/registry-reader.ts";
import { openRegistryReader } from "../../../src/registries/registry-reader.ts";
import { addresses, insecureCidrs, remarkOnAddresses } from "./network.ts";
import { decide } from "./oracle.ts";
import { headerNameFor, type Plan } from "./plan.ts";
import { play, type Stage } from "./play.ts";
import { openTheatre, type Theatre } from "./stage.ts";

let theatre: Theatre;
let stage: Stage;
let reader: RegistryReader;
beforeAll(async () => {
  theatre = await openTheatre();
  stage = theatre.stage((parts) => {
    reader = openRegistryReader({ ...parts, insecureCidrs });
    return reader;
  });
});
afterAll(() => theatre.close());

const where = remarkOnAddresses();
const { loopback4, listed4, listed6, unlisted, forbidden, other } = addresses;

interface NameRow {
  readonly what: string;
  readonly resolved: readonly string[];
  readonly expected: "attach" | "refuse" | "unreachable";
}

const loopbackRows: readonly NameRow[] = [
  { what: "one loopback address", resolved: [loopback4], expected: "attach" },
  { what: "two loopback addresses", resolved: [loopback4, other], expected: "attach" },
  { what: "a loopback address inside an IPv6 one", resolved: [`::ffff:${loopback4}`], expected: "attach" },
  { what: "no address", resolved: [], expected: "unreachable" },
  { what: "a metadata address", resolved: ["169.254.169.254"], expected: "unreachable" },
  { what: "a loopback and a metadata address", resolved: [loopback4, "169.254.169.254"], expected: "unreachable" },
];

const outerRows: readonly NameRow[] = [
  { what: "a listed address", resolved: [listed4], expected: "attach" },
  { what: "a listed address inside an IPv6 one", resolved: [`::ffff:${listed4}`], expected: "attach" },
  { what: "a listed IPv6 address", resolved: [listed6], expected: "attach" },
  { what: "a loopback and a listed address", resolved: [loopback4, listed4], expected: "attach" },
  { what: "an unlisted address", resolved: [unlisted], expected: "refuse" },
  { what: "an unlisted address inside an IPv6 one", resolved: [`::ffff:${unlisted}`], expected: "refuse" },
  { what: "a loopback address, then an unlisted one", resolved: [loopback4, unlisted], expected: "refuse" },
  { what: "an unlisted address, then a loopback one", resolved: [unlisted, loopback4], expected: "refuse" },
  { what: "a listed address, then an unlisted one", resolved: [listed4, unlisted], expected: "refuse" },
  { what: "a forbidden address", resolved: [forbidden], expected: "unreachable" },
  { what: "a loopback and a forbidden address", resolved: [loopback4, forbidden], expected: "unreachable" },
];

const rows = where === "" ? [...loopbackRows, ...outerRows] : loopbackRows;

function planFor(scheme: "http" | "https", resolved: readonly string[]): Plan {
  const base = `${scheme}://named.test:${theatre.ports.main}/api`;
  const kind = "apiKey under an odd name";
  return {
    name: `${scheme} ${resolved.join(" ")}`,
    group: "names",
    base,
    kind,
    headerName: headerNameFor(kind, 0),
    hops: [{ url: `${base}/definitions` }],
    names: { "named.test": resolved },
  };
}

async function outcomeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "done",
    (error: unknown) => (isFailure(error) ? `${error.kind}: ${error.message}` : String(error)),
  );
}

const signal = new AbortController().signal;

describe(`plaintext to a name with certain addresses${where}`, () => {
  test.each(rows)("$what: $expected when browsing", async ({ resolved, expected }) => {
    const { findings, decisions } = await play(planFor("http", resolved), stage);
    if (expected === "unreachable") {
      expect(stage.recorder.arrivals).toEqual([]);
      return;
    }
    expect(decisions).toEqual([expected]);
    expect(findings.map(({ fault, detail }) => `${fault}: ${detail}`)).toEqual([]);
  });

  test.each(rows)("$what: $expected at setup", async ({ resolved, expected }) => {
    stage.names.restart({ "named.test": resolved });
    stage.recorder.expect([]);
    const outcome = await outcomeOf(
      reader.requireSafeTransport(`http://named.test:${theatre.ports.main}/token`, signal),
    );
    if (expected === "attach") expect(outcome).toBe("done");
    else
      expect(outcome).toMatch(
        expected === "refuse" ? /^refused: Registry authentication requires https/ : /^refused: /,
      );
    expect(stage.recorder.arrivals).toEqual([]);
  });

  test.each(rows)("$what: $expected for a token request", async ({ resolved, expected }) => {
    stage.names.restart({ "named.test": resolved });
    stage.recorder.expect([{ status: 200, headers: {}, body: '{"access_token":"t"}' }]);
    const tokenEndpoint = `http://named.test:${theatre.ports.main}/token`;
    const request = { tokenEndpoint, clientId: "id", clientSecret: "secret-of-the-client", scopes: [] };
    const outcome = await outcomeOf(reader.exchange(request, signal));
    expect(stage.recorder.arrivals).toHaveLength(expected === "attach" ? 1 : 0);
    if (expected === "attach") expect(outcome).toBe("done");
    if (expected === "refuse") expect(outcome).toMatch(/^refused: Registry authentication requires https/);
    expect(outcome).not.toContain("secret-of-the-client");
  });
});

describe(`https needs no exemption${where}`, () => {
  const reachable = rows.filter(({ resolved, expected }) => expected !== "unreachable" && resolved.length === 1);

  test.each(reachable)("$what: attach", async ({ resolved }) => {
    const plan = { ...planFor("https", resolved), base: `https://four.test:${theatre.ports.main}/api` };
    const named = { ...plan, hops: [{ url: `${plan.base}/definitions` }], names: { "four.test": resolved } };
    const { findings, decisions } = await play(named, stage);
    expect(findings.map(({ fault, detail }) => `${fault}: ${detail}`)).toEqual([]);
    expect(decisions).toEqual(["attach"]);
  });
});

test("one thousand browses of a name that changes its address at every look-up leak nothing", async () => {
  const base = `http://flip.test:${theatre.ports.main}/api`;
  const flips = theatre.classes.includes("flipping");
  const plan: Plan = {
    ...planFor("http", []),
    base: flips ? base : base.replace("flip", "four"),
    hops: [{ url: `${flips ? base : base.replace("flip", "four")}/definitions` }],
  };
  const counts = { attach: 0, anonymous: 0, refuse: 0 };
  for (let turn = 0; turn < 1_000; turn += 1) {
    const { findings, decisions } = await play({ ...plan, flipsFrom: turn % 2 === 0 ? "safe" : "unsafe" }, stage);
    expect(findings.map(({ fault, detail }) => `${fault}: ${detail}`)).toEqual([]);
    for (const decision of decisions) counts[decision] += 1;
    if (decisions[0] === "refuse") expect(stage.recorder.arrivals).toEqual([]);
  }
  expect(counts).toEqual(
    flips ? { attach: 500, anonymous: 0, refuse: 500 } : { attach: 1_000, anonymous: 0, refuse: 0 },
  );
});

test.each([
  ["https://four.test/token", "done"],
  ["http://127.0.0.1:1/", "done"],
  ["http://127.255.255.254/", "done"],
  ["http://2130706433/", "done"],
  ["http://0177.0.0.1/", "done"],
  ["http://0x7f.1/", "done"],
  ["http://127.1/", "done"],
  ["http://[::1]/", "done"],
  ["http://[::ffff:127.0.0.1]/", "done"],
  ["http://10.77.0.5/", "done"],
  ["http://0x0a4d0005/", "done"],
  ["http://10.77.5/", "done"],
  ["http://[::ffff:10.77.0.5]/", "done"],
  ["http://[fd77::9]/", "done"],
  ["http://10.78.0.5/", "refused"],
  ["http://0x0a4e0005/", "refused"],
  ["http://[::ffff:10.78.0.5]/", "refused"],
  ["http://93.184.216.34/", "refused"],
  ["http://[2606:4700::1111]/", "refused"],
  ["http://127.0.0.1.evil.test/", "refused"],
  ["http://localhost.evil.test/", "refused"],
  ["ftp://127.0.0.1/", "refused"],
  ["file:///etc/passwd", "refused"],
  ["127.0.0.1", "refused"],
  ["", "refused"],
])("setup over %j is %s", async (url, expected) => {
  const elsewhere = ["93.184.216.34"];
  stage.names.restart({ "127.0.0.1.evil.test": elsewhere, "localhost.evil.test": elsewhere });
  expect((await outcomeOf(reader.requireSafeTransport(url, signal))).split(":")[0]).toBe(expected);
  const parsed = URL.parse(url);
  if (parsed === null || !parsed.protocol.startsWith("http") || parsed.hostname.endsWith(".test")) return;
  const connected = parsed.hostname.replace(/^\[|\]$/g, "").replace(/^::ffff:([0-9a-f]+):([0-9a-f]+)$/, unmapped);
  const decision = decide({ base: url, hop: url, connected, resolved: [connected], insecureCidrs });
  expect(decision).toBe(expected === "done" ? "attach" : "refuse");
});

function unmapped(_all: string, high: string, low: string): string {
  const [left, right] = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return [left >> 8, left & 255, right >> 8, right & 255].join(".");
}
