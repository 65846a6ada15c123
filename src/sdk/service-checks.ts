/** One sample service of an adapter, from its settings to its end. */
import { createHash } from "node:crypto";
import { fillDefaults } from "../json/defaults.ts";
import { describeProblems, validate } from "../json/schema.ts";
import type { PlanContents } from "../module-host/definition-check.ts";
import type { Adapter, Definition, HydratedService, PlanReference } from "../ports/adapter.ts";
import { type Findings, requireEqual, settle, shown } from "./findings.ts";
import type { CallSample, ServiceSample } from "./samples.ts";

export interface ServiceUnderTest {
  readonly findings: Findings;
  readonly timeoutMs: number;
  readonly adapter: Adapter;
  readonly sample: ServiceSample;
  readonly definition: Definition;
  crash(): string | null;
}

export async function checkService(test: ServiceUnderTest): Promise<void> {
  const { findings, adapter, sample, definition } = test;
  const settings = await findings.check("service settings", "The settings of the sample service are valid", () => ({
    config: settled("config", definition.configSchema, sample.config),
    secrets: settled("secrets", definition.secretsSchema, sample.secrets),
  }));
  if (!settings.ok) return;
  const hydrate = (plan: PlanReference) => adapter.hydrate({ serviceId: "sample", plan, ...settings.value });
  const plan = planOf(definition);
  const hydrated = await findings.check("hydrate", "It hydrates, and again in place of the former", async () => {
    await hydrate(plan);
    return hydrate(plan);
  });
  if (!hydrated.ok) return;
  for (const call of sample.calls) {
    await findings.check("calls", `Tool "${call.tool}" does as the sample says`, () =>
      requireCall(test, plan, hydrated.value, call),
    );
  }
  await findings.check("unknown tool", "A tool that it does not have is refused", async () => {
    const service = await hydrate(planOf(withUnknownTool(definition)));
    const outcome = await settle(invoke(service, { tool: unknownToolId }, test.timeoutMs));
    service.close?.();
    if (outcome.ok)
      throw new Error(`The unknown tool "${unknownToolId}" is not refused: it answers ${shown(outcome.value)}`);
    if (!refusals.includes(outcome.code)) throw new Error(`The unknown tool is not refused: ${outcome.reason}`);
  });
  await findings.check("dehydrate", "It lets go of a service, and hydrates it again", async () => {
    hydrated.value.close?.();
    // In the order they are asked for; what goes wrong in between ends the process, which may take a moment to be seen.
    const again = await hydrate(plan);
    again.close?.();
    await hydrate(plan);
    const crash = test.crash();
    if (crash !== null) throw new Error(`The process of the module ${crash}`);
  });
}

/** Codes that say no, and not that something broke. */
const refusals = ["invalid_request", "not_found", "upstream_failed", "conflict"];

/** A tool of an older release: a service that was defined by it may still be asked for it. */
const unknownToolId = "toolOfAnOlderRelease";

function withUnknownTool(definition: Definition): Definition {
  const { tools, plan } = JSON.parse(definition.plan) as PlanContents;
  const unknown = { [unknownToolId]: { inputSchema: true, outputSchema: true } };
  return { ...definition, plan: JSON.stringify({ tools: { ...tools, ...unknown }, plan } satisfies PlanContents) };
}

function invoke(service: HydratedService, { tool, parameters = {} }: CallSample, timeoutMs: number): Promise<unknown> {
  return service.invoke({ toolId: tool, parameters, timeoutMs, signal: new AbortController().signal });
}

/** The host checks the parameters first, as on a server: what is not valid never reaches the module. */
async function requireCall(
  { adapter, timeoutMs }: ServiceUnderTest,
  plan: PlanReference,
  service: HydratedService,
  call: CallSample,
): Promise<void> {
  const what = `Tool "${call.tool}" with ${shown(call.parameters ?? {})}`;
  const outcome = await settle(invoke(service, call, timeoutMs));
  if (call.code !== undefined) {
    if (outcome.ok) throw new Error(`${what} should fail with ${call.code} and answers ${shown(outcome.value)}`);
    if (outcome.code !== call.code) throw new Error(`${what} should fail with ${call.code}: ${outcome.reason}`);
    return;
  }
  if (!outcome.ok) throw new Error(`${what} fails: ${outcome.reason}`);
  if ("answer" in call) requireEqual(`The answer of ${what}`, outcome.value, call.answer);
  const { outputSchema } = await adapter.describe(plan, call.tool);
  const problems = validate(outputSchema, outcome.value);
  if (problems.length > 0) {
    throw new Error(`The answer of ${what} is not valid against its outputSchema: ${describeProblems(problems)}`);
  }
}

/** With defaults. @throws Error that names what the schema does not allow. */
export function settled(what: string, schema: unknown, given: Readonly<Record<string, unknown>> = {}) {
  const value = fillDefaults(schema, given);
  const problems = validate(schema, value);
  if (problems.length > 0) throw new Error(`The sample's ${what} is not valid: ${describeProblems(problems)}`);
  return value;
}

function planOf({ plan }: Definition): PlanReference {
  return { hash: createHash("sha256").update(plan).digest("hex"), load: async () => plan };
}
