/**
 * The test kit: holds a module to its contract (sdk.ts) the way a server meets it, in a process of its own, from the files that
 * would be packed and nothing else. It belongs to no test framework: it answers with findings, or throws one error for them all.
 *
 *   await requireSoundModule(import.meta.dirname, { services: [{ document, calls: [{ tool: "list" }] }] });
 */
import type { ModuleHost } from "../ports/module-host.ts";
import type { ModulePackage } from "../ports/packages.ts";
import { checkAdapter } from "./adapter-checks.ts";
import { checkEnvironment } from "./environment-checks.ts";
import { type Finding, Findings } from "./findings.ts";
import { openHermeticHost } from "./hermetic-host.ts";
import type { ModuleSamples } from "./samples.ts";
import { settled } from "./service-checks.ts";
import { stageModule } from "./staged-module.ts";

export type { CheckName, Finding } from "./findings.ts";
export type {
  CallSample,
  FailureReason,
  ModuleSamples,
  ProgramSample,
  ProgramSamples,
  SampleAnswer,
  SampleTools,
  ServiceSample,
} from "./samples.ts";

const timeoutMsDefault = 10_000;

/** `folder` is the one with package.json. Where a check failed, those that build on it are not made. */
export async function checkModule(folder: string, samples: ModuleSamples = {}): Promise<readonly Finding[]> {
  const findings = new Findings();
  const staged = await findings.check("package", "It can be packed, and its manifest is valid", () =>
    stageModule(folder),
  );
  if (!staged.ok) return findings.list;
  const { modulePackage, remove } = staged.value;
  const timeoutMs = samples.timeoutMs ?? timeoutMsDefault;
  try {
    const host = await openHermeticHost(samples, timeoutMs);
    await checkCode({ modulePackage, host, findings, samples, timeoutMs }).finally(() => host.close());
  } finally {
    remove();
  }
  return findings.list;
}

/** @throws Error with every finding that is not ok. */
export async function requireSoundModule(folder: string, samples: ModuleSamples = {}): Promise<void> {
  const faults = (await checkModule(folder, samples)).filter(({ ok }) => !ok);
  if (faults.length === 0) return;
  const lines = faults.map(({ check, message }) => `  ${check}: ${message}`);
  throw new Error(`The module in "${folder}" does not keep its contract:\n${lines.join("\n")}`);
}

interface ModuleUnderTest {
  readonly modulePackage: ModulePackage;
  readonly host: ModuleHost;
  readonly findings: Findings;
  readonly samples: ModuleSamples;
  readonly timeoutMs: number;
}

async function checkCode({ modulePackage, host, ...test }: ModuleUnderTest): Promise<void> {
  const { findings, samples } = test;
  const declared = await findings.check("load", "It loads, and is what its manifest says", () =>
    host.inspect(modulePackage),
  );
  if (!declared.ok) return;
  const settings = await findings.check("settings", "The settings of the samples are valid", () => ({
    config: settled("config", declared.value.configSchema, samples.config),
    secrets: settled("secrets", declared.value.secretsSchema, samples.secrets),
  }));
  if (!settings.ok) return;
  // Given up: every call says so from then on.
  const hosted = { modulePackage, ...settings.value, onFailed: () => {} };
  const process = () => host.processes().at(-1);
  if (modulePackage.manifest.type === "adapter") {
    const crash = () => process()?.lastError ?? null;
    await checkAdapter({ ...test, crash, open: () => host.openAdapter(hosted) });
  } else {
    const processId = () => process()?.pid ?? null;
    await checkEnvironment({ ...test, processId, open: () => host.openEnvironment(hosted) });
  }
}
