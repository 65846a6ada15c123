/** Plays one plan against a reader over real sockets, and holds what the recorder saw against the oracle. */
import { isIP } from "node:net";
import { type Failure, isFailure } from "../../../src/errors/failure.ts";
import type { RegistryReader } from "../../../src/ports/registry-reader.ts";
import { insecureCidrs, type Names } from "./network.ts";
import { type Decision, decide } from "./oracle.ts";
import { type Credential, issueCredential, type Plan, type PlannedHop, type Want } from "./plan.ts";
import type { Arrival, Recorder } from "./recorder.ts";
import { type Search, searchFor } from "./secret-search.ts";

export type Fault =
  /** A run of the secret where it may not be. */
  | "leak"
  /** A legal hop without the credential, or with a changed one. */
  | "false strip"
  /** A hop in scope over unsafe plaintext that was sent all the same. */
  | "not refused"
  /** A hop that should have been asked and was not, or another one instead. */
  | "strayed"
  /** The wrong failure, or words that do not say what is wrong. */
  | "bad failure";

export interface Finding {
  readonly plan: Plan;
  readonly fault: Fault;
  readonly detail: string;
}

export interface Played {
  readonly findings: readonly Finding[];
  readonly decisions: readonly Decision[];
}

export type Reader = Pick<RegistryReader, "page" | "descriptor" | "artifact">;

export interface Stage {
  readonly reader: Reader;
  readonly recorder: Recorder;
  readonly names: Names;
  /** Everything the product logged since the last call, as text. */
  takeLog(): string;
}

const bodies: Readonly<Record<Want, string>> = {
  page: JSON.stringify({ definitions: [], nextCursor: null }),
  descriptor: JSON.stringify({ latestVersion: "1.0.0", versions: { "1.0.0": { downloadUrl: "/api/file" } } }),
  artifact: "bytes",
};

type Outcome = { readonly answer: unknown } | { readonly error: unknown };

export async function play(plan: Plan, stage: Stage): Promise<Played> {
  const issued = issueCredential(plan.kind, plan.headerName);
  stage.names.restart(plan.names, plan.flipsFrom);
  stage.recorder.expect(
    plan.hops.map(({ redirect }) =>
      redirect === undefined
        ? { status: 200, headers: { "content-type": "application/json" }, body: bodies[plan.want ?? "page"] }
        : { status: redirect.status, headers: { location: redirect.location, "set-cookie": "jar=1; Path=/" } },
    ),
  );
  const outcome = await browse(plan, stage, issued);
  return judge(plan, stage, issued, outcome);
}

async function browse(plan: Plan, { reader }: Stage, { credential }: Credential): Promise<Outcome> {
  const access = {
    registryId: "matrix",
    baseUrl: plan.base,
    credentials: { current: async () => credential, renewed: async () => null },
    signal: new AbortController().signal,
  };
  const url = plan.hops[0]?.url ?? "";
  const asked = {
    page: () => reader.page(access, "definitions", url, { limit: 50 }),
    descriptor: () => reader.descriptor(access, url),
    artifact: () => reader.artifact(access, url, 10_000, null),
  };
  try {
    return { answer: await asked[plan.want ?? "page"]() };
  } catch (error) {
    return { error };
  }
}

function judge(plan: Plan, stage: Stage, issued: Credential, outcome: Outcome): Played {
  const traces = searchFor(issued.secret);
  const decisions: Decision[] = [];
  const findings: Finding[] = [];
  const find = (fault: Fault, detail: string): void => void findings.push({ plan, fault, detail });

  for (const [at, hop] of plan.hops.entries()) {
    const arrival = stage.recorder.arrivals[at];
    if (arrival === undefined) {
      const decision = decisionOnTheWay(plan, hop, stage.names);
      decisions.push(decision);
      judgeStop(plan, at, decision, outcome, find);
      break;
    }
    if (!isAt(arrival, hop, at)) {
      find("strayed", `hop ${at} should be ${hop.url} and is ${arrival.scheme}://${hostOf(arrival)}${arrival.target}`);
    }
    const decision = decisionAt(plan, hop, arrival, stage.names);
    decisions.push(decision);
    judgeArrival(arrival, at, decision, issued, traces, find);
  }
  for (const [at, arrival] of stage.recorder.arrivals.slice(plan.hops.length).entries()) {
    find(traces(arrival.bytes) >= 0 ? "leak" : "strayed", `request ${plan.hops.length + at} was not asked for`);
  }
  const wasAnswered = stage.recorder.arrivals.length >= plan.hops.length;
  const last = plan.hops.at(-1)?.url ?? "";
  if (wasAnswered && "error" in outcome && new URL(last).origin === new URL(plan.base).origin) {
    find("bad failure", `the answer came and was refused: ${textOf(outcome)}`);
  }
  if (traces(textOf(outcome)) >= 0 || traces(stage.takeLog()) >= 0)
    find("leak", "the secret is in an error or the log");
  return { findings, decisions };
}

type Find = (fault: Fault, detail: string) => void;

function judgeArrival(
  arrival: Arrival,
  at: number,
  decision: Decision,
  issued: Credential,
  traces: Search,
  find: Find,
): void {
  const where = `hop ${at}, ${arrival.target} on ${arrival.address}, ${decision}`;
  const [name, value] = issued.header;
  const carriers = arrival.headers.filter(([given]) => given.toLowerCase() === name);
  const elsewhere = carriers.reduce((bytes, [, given]) => bytes.replace(given, ""), arrival.bytes);
  if (arrival.headers.some(([given]) => given.toLowerCase() === "cookie")) find("leak", `${where}: a cookie was sent`);
  if (decision !== "attach") {
    if (traces(arrival.bytes) >= 0) find("leak", where);
    if (name !== "authorization" && hasHeader(arrival, "authorization")) find("leak", `${where}: made from user info`);
    if (decision === "refuse") find("not refused", where);
    return;
  }
  if (carriers.length !== 1 || carriers[0]?.[1] !== value) find("false strip", `${where}: ${carriers.length} headers`);
  if (traces(elsewhere) >= 0) find("leak", `${where}: also outside its header`);
}

/** The client stopped before hop `at`: right when refusing was right, or when the plan leaves it free. */
function judgeStop(plan: Plan, at: number, decision: Decision, outcome: Outcome, find: Find): void {
  const failure: Failure | undefined = "error" in outcome && isFailure(outcome.error) ? outcome.error : undefined;
  if (failure?.kind !== "upstream_failed") find("bad failure", `stopped before hop ${at} with ${textOf(outcome)}`);
  if (plan.mayStopBefore?.includes(at) === true) return;
  if (decision !== "refuse") {
    find(decision === "attach" ? "false strip" : "strayed", `hop ${at} never came: ${textOf(outcome)}`);
    return;
  }
  const message = failure?.message ?? "";
  if (!/requires https/i.test(message) || !/plaintext http/i.test(message)) {
    find("bad failure", `a plaintext refusal must say so, and says: ${message}`);
  }
}

function decisionAt(plan: Plan, hop: PlannedHop, arrival: Arrival, names: Names): Decision {
  const connected = arrival.address.replace(/^::ffff:/, "");
  const host = new URL(hop.url).hostname;
  // A flipping name had one address at a time: the one that was connected to is the one that counts.
  const resolved = names.given.findLast((one) => one.host === host && one.addresses.includes(connected))?.addresses;
  return decide({ base: plan.base, hop: hop.url, connected, resolved: resolved ?? [connected], insecureCidrs });
}

function decisionOnTheWay(plan: Plan, hop: PlannedHop, names: Names): Decision {
  const host = new URL(hop.url).hostname.replace(/^\[|\]$/g, "");
  const resolved = isIP(host) === 0 ? (names.given.findLast((one) => one.host === host)?.addresses ?? []) : [host];
  return decide({ base: plan.base, hop: hop.url, connected: resolved[0] ?? "", resolved, insecureCidrs });
}

function isAt(arrival: Arrival, hop: PlannedHop, at: number): boolean {
  const colon = hop.url.indexOf("://");
  const scheme = hop.url.slice(0, colon);
  const rest = hop.url.slice(colon + 3);
  const slash = rest.indexOf("/");
  const host = rest.slice(0, slash).replace(/^.*@/, "");
  const [target = ""] = rest.slice(slash).split("#");
  // The reader adds its query to the first.
  const arrived = at === 0 ? arrival.target.split("?")[0] : arrival.target;
  return (
    arrival.scheme === scheme && hostOf(arrival) === host && arrived === (at === 0 ? target.split("?")[0] : target)
  );
}

function hostOf(arrival: Arrival): string {
  return arrival.headers.find(([name]) => name.toLowerCase() === "host")?.[1] ?? "";
}

function hasHeader(arrival: Arrival, wanted: string): boolean {
  return arrival.headers.some(([name]) => name.toLowerCase() === wanted);
}

function textOf(outcome: Outcome): string {
  if ("answer" in outcome) return "an answer";
  const { error } = outcome;
  return error instanceof Error ? `${isFailure(error) ? error.kind : error.name}: ${error.message}` : String(error);
}
