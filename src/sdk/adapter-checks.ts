/**
 * Holds an adapter to its contract, one sample service after the other. Definitions are made in one process and used in another,
 * because that is what a restart does: what an adapter needs later is in the plan, or lost.
 */
import { isDeepStrictEqual } from "node:util";
import type { Adapter, Definition } from "../ports/adapter.ts";
import { type Findings, settle, shown } from "./findings.ts";
import type { ModuleSamples, ServiceSample } from "./samples.ts";
import { checkService } from "./service-checks.ts";

export interface AdapterUnderTest {
  readonly findings: Findings;
  readonly samples: ModuleSamples;
  readonly timeoutMs: number;
  /** A new process each time. Rejects when setup fails. */
  open(): Promise<Adapter>;
  /** Why the process of the adapter that is open ended, if it did. */
  crash(): string | null;
}

interface DefinedSample {
  readonly sample: ServiceSample;
  readonly definition: Definition;
}

export async function checkAdapter(test: AdapterUnderTest): Promise<void> {
  const { findings, samples } = test;
  const services = samples.services ?? [];
  if (services.length === 0) {
    findings.add("definition", "The samples hold no service, so there was nothing to check");
  }
  const defined = await inProcess(test, "It is set up", async (adapter) => {
    const defined: DefinedSample[] = [];
    for (const sample of services) {
      const definition = await checkDefinition(adapter, sample, findings);
      if (definition !== undefined) defined.push({ sample, definition });
    }
    if (samples.badDocuments !== undefined) await checkBadDocuments(adapter, samples.badDocuments, findings);
    return defined;
  });
  if (defined === undefined || defined.length === 0) return;
  await inProcess(test, "It is set up in another process", async (adapter) => {
    for (const { sample, definition } of defined) {
      await checkService({ ...test, adapter, sample, definition });
      await findings.check("pure definition", "Another process makes the same definition", async () =>
        requireSame(definition, await define(adapter, sample)),
      );
    }
  });
}

async function inProcess<Value>(test: AdapterUnderTest, whenFine: string, work: (adapter: Adapter) => Promise<Value>) {
  const opened = await test.findings.check("setup", whenFine, () => test.open());
  if (!opened.ok) return undefined;
  try {
    return await work(opened.value);
  } finally {
    await opened.value.close();
  }
}

function define(adapter: Adapter, { document, url }: ServiceSample): Promise<Definition> {
  return adapter.define({ text: document, url });
}

async function checkDefinition(adapter: Adapter, sample: ServiceSample, findings: Findings) {
  // The host refuses what is no definition: ids that occur twice, schemas that are none, and the like.
  const made = await findings.check(
    "definition",
    "The document makes tools, with schemas that can be used",
    async () => {
      const definition = await define(adapter, sample);
      if (definition.tools.length === 0) throw new Error("The document makes no tools");
      return definition;
    },
  );
  if (!made.ok) return undefined;
  const definition = made.value;
  await findings.check("pure definition", "The same document makes the same definition", async () =>
    requireSame(definition, await define(adapter, sample)),
  );
  return definition;
}

function requireSame(first: Definition, second: Definition): void {
  const keys = Object.keys(first) as (keyof Definition)[];
  const differing = keys.find((key) => !isDeepStrictEqual(first[key], second[key]));
  if (differing === undefined) return;
  const [one, other] = [shown(first[differing]), shown(second[differing])];
  throw new Error(`The same document makes another "${differing}" the next time: ${one}, then ${other}`);
}

async function checkBadDocuments(adapter: Adapter, documents: readonly string[], findings: Findings): Promise<void> {
  await findings.check("bad documents", `${documents.length} bad documents are refused`, async () => {
    for (const text of documents) {
      const outcome = await settle(adapter.define({ text }));
      if (outcome.ok) throw new Error(`The document ${shown(text)} is taken`);
      if (outcome.code !== "invalid_request") {
        throw new Error(`The document ${shown(text)} should be refused with invalid_request: ${outcome.reason}`);
      }
    }
  });
}
