/** `troupe status`, `diagnostics` and `log-level`: how the node is, at a glance and in full. */
import { Argument } from "commander";
import { bytesText, secondsText } from "../amounts.ts";
import type { CommandGroup } from "../command-action.ts";
import type { Item } from "../item.ts";
import type { Style } from "../output.ts";
import type { Run } from "../run.ts";
import type { Column } from "../table.ts";

const levels = ["debug", "info", "warn", "error"] as const;

const kindColumns: readonly Column[] = [
  { title: "ACTORS", of: "kind" },
  { title: "IN MEMORY", of: "resident", align: "right" },
  { title: "PARKED", of: "parked", align: "right" },
  { title: "FULLEST MAILBOX", of: "mailboxDepthMax", align: "right" },
  { title: "TURNS", of: "turns", align: "right" },
  { title: "CRASHES", of: "crashes", align: "right" },
  { title: "RESTARTS", of: "restarts", align: "right" },
];

const childColumns: readonly Column[] = [
  { title: "CHILD", of: "pid", align: "right" },
  { title: "KIND", of: "kind" },
  { title: "NAME", of: "name" },
  { title: "STATE", of: "state" },
  { title: "RUNS", of: ({ runs }) => (runs as readonly Item[]).map(({ processId }) => processId).join(" ") },
  {
    title: "MEMORY",
    of: ({ memoryBytes }) => (memoryBytes === undefined ? "" : bytesText(memoryBytes as number)),
    align: "right",
  },
  { title: "RESTARTS", of: "restarts", align: "right" },
  { title: "LAST ERROR", of: "lastError" },
];

const deadLetterColumns: readonly Column[] = [
  { title: "DEAD LETTERS FOR", of: "kind" },
  { title: "REASON", of: "reason" },
  { title: "COUNT", of: "count", align: "right" },
];

export const nodeCommands: CommandGroup = (program, action) => {
  program.command("status").description("how the server is, in a few lines").action(action(status));
  program
    .command("diagnostics")
    .description("the node in full: store, event loop, memory, actors, children, dead letters")
    .action(action(diagnostics));
  program
    .command("log-level")
    .description("show which log lines are written, or change it until the server ends")
    .addArgument(new Argument("[level]", "lines of this level and above").choices(levels))
    .action(action(logLevel));
};

async function status(run: Run): Promise<void> {
  const node = await nodeOf(run);
  if (run.out.isJson) return run.out.json(node);
  await run.out.show({ server: run.url, ...glance(node) }, [], stylesOf(node));
}

async function diagnostics(run: Run): Promise<void> {
  const [node, executors, deadLetters] = await Promise.all([
    nodeOf(run),
    run.ask(({ diagnostics }, calling) => diagnostics.listExecutors({}, calling)),
    run.ask(({ diagnostics }, calling) => diagnostics.listDeadLetters({}, calling)),
  ]);
  if (run.out.isJson) return run.out.json({ node, executors, deadLetters });
  await run.out.show({ server: run.url, ...glance(node), ...details(node) }, [], stylesOf(node));
  for (const [columns, items] of [
    [kindColumns, node.actors],
    [childColumns, (executors.children as readonly Item[]).filter(isWorthALine)],
    [deadLetterColumns, deadLetters.counts],
  ] as const) {
    if ((items as readonly Item[]).length === 0) continue;
    await run.out.line("");
    await run.out.list(columns, [items as readonly Item[]]);
  }
}

/** Workers are started when they are needed: one that never was has nothing to tell. */
function isWorthALine({ state, restarts, lastError }: Item): boolean {
  return state !== "down" || restarts !== 0 || lastError !== undefined;
}

async function logLevel(run: Run, wanted: (typeof levels)[number] | undefined): Promise<void> {
  const { LogLevel } = await import("../../gen/troupe/v1/log_pb.ts");
  if (wanted === undefined) {
    const { logLevel } = await run.ask(({ diagnostics }, calling) => diagnostics.getLogLevel({}, calling));
    return run.out.show(logLevel as Item);
  }
  const level = LogLevel[wanted.toUpperCase() as keyof typeof LogLevel];
  const answer = await run.ask(({ diagnostics }, calling) => diagnostics.setLogLevel({ level }, calling));
  await run.out.outcome(answer, answer.message as string);
}

async function nodeOf(run: Run): Promise<Item> {
  return (await run.ask(({ diagnostics }, calling) => diagnostics.getNode({}, calling))).node as Item;
}

function glance(node: Item): Item {
  const { healthy, reason } = node.store as Item;
  const { waiting, executing, slots } = node.runs as Item;
  const parked = (node.actors as readonly Item[]).reduce((sum, kind) => sum + (kind.parked as number), 0);
  return {
    version: `${node.version} on Node.js ${node.nodeVersion}, pid ${node.pid}`,
    up: secondsText(node.uptimeSeconds as number),
    ready: node.ready ? "yes" : `no: ${node.notReadyReason ?? "it does not say why"}`,
    store: healthy ? "healthy" : `failing: ${reason}`,
    programs: `${executing} of ${slots} slots in use, ${waiting} waiting`,
    parked: parked === 0 ? "no actor" : `${parked} (troupe actors list --parked)`,
    memory: bytesText((node.memory as Item).rssBytes as number),
    deadLetters: node.deadLetters,
    logLevel: node.logLevel,
    ...Object.fromEntries((node.certificates as readonly Item[]).map(certificateLine)),
  };
}

function stylesOf(node: Item): Readonly<Record<string, Style | undefined>> {
  const ofCertificates = (node.certificates as readonly Item[]).map((one) => [titleOf(one), certificateStyle(one)]);
  return { ready: node.ready ? "green" : "red", ...Object.fromEntries(ofCertificates) };
}

function certificateLine(one: Item): [string, string] {
  const { subject, notAfter } = one;
  const left = leftSeconds(one);
  if (left <= 0) return [titleOf(one), `${subject}, expired at ${notAfter}`];
  return [titleOf(one), `${subject}, until ${notAfter} (${secondsText(left)} left)`];
}

/** In yellow for two weeks before its end. */
function certificateStyle(one: Item): Style | undefined {
  const left = leftSeconds(one);
  if (left <= 0) return "red";
  return left < soonSeconds ? "yellow" : undefined;
}

/** As what it is for. */
function titleOf({ name }: Item): string {
  return name === "client_ca" ? "clientAuthority" : `${name}Certificate`;
}

function leftSeconds({ notAfter }: Item): number {
  return (Date.parse(notAfter as string) - Date.now()) / 1_000;
}

const soonSeconds = 14 * 86_400;

function details({ store, memory, eventLoopDelay, eventLoopDelayBefore, startedAt }: Item): Item {
  const { epoch, commits, syncs, commitsQueued, reopens } = store as Item;
  const { heapUsedBytes, heapLimitBytes } = memory as Item;
  return {
    startedAt,
    commits: `${commits} in ${syncs} syncs, ${commitsQueued} queued; opening ${epoch} of the store, ${reopens} reopens`,
    heap: `${bytesText(heapUsedBytes as number)} of at most ${bytesText(heapLimitBytes as number)}`,
    eventLoopDelay: delayText(eventLoopDelay as Item),
    ...(eventLoopDelayBefore === undefined ? {} : { minuteBefore: delayText(eventLoopDelayBefore as Item) }),
  };
}

function delayText({ p50Ms, p99Ms, maxMs, windowSeconds }: Item): string {
  const [half, most, worst] = [p50Ms, p99Ms, maxMs].map((ms) => (ms as number).toFixed(1));
  return `${half} ms half of the time, ${most} ms at 99 %, at most ${worst} ms, in ${windowSeconds} s`;
}
