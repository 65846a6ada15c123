/** Holds an environment to its contract: what agents read, what programs can do, and that a program can always be ended. */
import { setTimeout as pause } from "node:timers/promises";
import type { DocumentedTool, Environment } from "../ports/environment.ts";
import type { RunEnd, ToolAnswer, ToolCall } from "../ports/executor.ts";
import { type CheckName, type Findings, requireEqual, shown } from "./findings.ts";
import type { ModuleSamples, ProgramSample, ProgramSamples, SampleTools } from "./samples.ts";

export interface EnvironmentUnderTest {
  readonly findings: Findings;
  readonly samples: ModuleSamples;
  readonly timeoutMs: number;
  open(): Promise<Environment>;
  /** The process it runs in; another one means that the former was ended. */
  processId(): number | null;
}

export async function checkEnvironment(test: EnvironmentUnderTest): Promise<void> {
  const { findings, samples, timeoutMs } = test;
  const opened = await findings.check("setup", "It is set up", () => test.open());
  if (!opened.ok) return;
  const environment = opened.value;
  try {
    await checkDocs(environment, findings);
    const { programs } = samples;
    // Authors who write JavaScript have no compiler to tell them.
    const missing = programNames.filter((name) => programs?.[name] === undefined);
    if (programs === undefined || missing.length > 0) {
      findings.add("prints", `The samples lack programs to check it with: ${missing.join(", ")}`);
      return;
    }
    await checkPrograms(environment, programs, test);
    await findings.check("kill", "A program that never ends is killed, and the process lives on", () =>
      requireKill(environment, programs, test.processId, timeoutMs),
    );
  } finally {
    await environment.close();
  }
}

const programNames = ["prints", "outputs", "callsTool", "fails", "neverEnds"] as const;

const documentedTool: DocumentedTool = {
  serviceId: "petstore",
  id: "findPets",
  name: "Find pets",
  summary: "Finds pets",
  description: "Pets with a tag",
  inputSchema: { type: "object", properties: { tag: { type: "string" } }, required: ["tag"] },
  outputSchema: { type: "array", items: { type: "object" } },
};

async function checkDocs(environment: Environment, findings: Findings): Promise<void> {
  await findings.check("docs", "It tells how to write programs and how to call a tool", async () => {
    if ((await environment.docs()).trim() === "") throw new Error("The docs are empty");
    const text = await environment.toolDocs(documentedTool);
    if (text.trim() === "") throw new Error("The docs of a tool are empty");
    const { serviceId, id } = documentedTool;
    // A language may spell it otherwise: find_pets.
    const plain = text.toLowerCase().replaceAll(/[^a-z]/g, "");
    for (const name of [serviceId, id]) {
      if (!plain.includes(name.toLowerCase()))
        throw new Error(`The docs of the tool ${serviceId}.${id} do not name "${name}"`);
    }
  });
}

async function checkPrograms(
  environment: Environment,
  programs: ProgramSamples,
  { findings, timeoutMs }: EnvironmentUnderTest,
) {
  const run = (program: ProgramSample) => runProgram(environment, program, timeoutMs);
  const each: readonly (readonly [CheckName, string, ProgramSample])[] = [
    ["prints", "A program prints", programs.prints],
    ["outputs", "A program gives output", programs.outputs],
    ["calls a tool", "A program calls a tool", programs.callsTool],
    ["fails", "A program fails with its reason", programs.fails],
    ...(programs.others ?? []).map((program) => ["other programs", "It does as the sample says", program] as const),
  ];
  for (const [check, whenFine, program] of each) {
    await findings.check(check, whenFine, async () => {
      const result = await run(program);
      requireResult(program, result);
      if (check === "calls a tool" && result.calls === 0) throw new Error("The program called no tool");
    });
  }
  await findings.check("runs at once", "Programs that run at the same time keep apart", async () => {
    const together = [programs.prints, programs.outputs, programs.fails, programs.prints];
    const results = await Promise.all(together.map(run));
    results.forEach((result, at) => {
      const program = together[at];
      if (program !== undefined) requireResult(program, result);
    });
  });
}

interface ProgramResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly calls: number;
  readonly end: RunEnd;
}

function requireResult(program: ProgramSample, { stdout, stderr, end }: ProgramResult): void {
  const what = `of the program ${shown(program.code)}`;
  if (program.reason === undefined && end.kind === "failed") {
    throw new Error(`The end ${what} should be success and is a failure, ${end.reason}: ${end.error}`);
  }
  if (program.reason !== undefined) {
    if (end.kind !== "failed") throw new Error(`The end ${what} should be a failure and is ${end.kind}`);
    requireEqual(`The reason ${what}`, end.reason, program.reason);
    if (!end.error.includes(program.error ?? "")) {
      throw new Error(`The error ${what} should hold ${shown(program.error)} and is ${shown(end.error)}`);
    }
  }
  if (program.stdout !== undefined) requireEqual(`stdout ${what}`, stdout, program.stdout);
  if (program.stderr !== undefined) requireEqual(`stderr ${what}`, stderr, program.stderr);
  if (program.output !== undefined) requireEqual(`The output ${what}`, JSON.parse(end.output), program.output);
}

let lastRun = 0;

/** Rejects when the program has not ended in time. */
async function runProgram(environment: Environment, program: ProgramSample, timeoutMs: number): Promise<ProgramResult> {
  const run = start(environment, program);
  const timer = setTimeout(run.stop, timeoutMs);
  const end = await run.ended;
  clearTimeout(timer);
  if (end.kind === "stopped") throw new Error(`The program ${shown(program.code)} does not end within ${timeoutMs} ms`);
  return { ...run.printed, calls: run.calls(), end };
}

/** Two programs run; one is killed, then the other. */
async function requireKill(
  environment: Environment,
  { neverEnds, prints }: ProgramSamples,
  processId: () => number | null,
  timeoutMs: number,
): Promise<void> {
  const before = processId();
  const [killed, other] = [start(environment, neverEnds), start(environment, neverEnds)];
  await Promise.all([killed, other].map(({ started, ended }) => Promise.race([started, ended])));
  await pause(settleMs);
  killed.stop();
  const end = await killed.ended;
  if (end.kind !== "stopped") throw new Error(`The program ended by itself before it was killed: ${shown(end)}`);
  await pause(settleMs);
  const survived = other.isRunning();
  other.stop();
  await other.ended;
  // What runs next notices an ended process at the latest.
  const next = await runProgram(environment, prints, timeoutMs);
  const isCrashed = next.end.kind === "failed" && next.end.reason === "executor_crashed";
  if (isCrashed || processId() !== before) {
    throw new Error("execute did not settle within a second after kill, so the whole process was ended");
  }
  if (!survived) throw new Error("With one program another was killed, too");
  requireResult(prints, next);
}

/** For a program to get from its start to where it never ends, and for a wrong end to arrive. */
const settleMs = 100;

function start(environment: Environment, program: ProgramSample) {
  const printed = { stdout: "", stderr: "" };
  const started = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<RunEnd>();
  let calls = 0;
  let isRunning = true;
  lastRun += 1;
  const { code, env = {} } = program;
  const limits = { memoryMb: 128, outputBytes: 1024 * 1024, cpuMs: null };
  const handle = environment.executor.start(
    { runId: String(lastRun), code, env, limits, seed: lastRun },
    {
      started: () => started.resolve(),
      stdout: (text) => {
        printed.stdout += text;
      },
      stderr: (text) => {
        printed.stderr += text;
      },
      toolCall: (call) => {
        calls += 1;
        void answerOf(call, program.tools ?? {}).then((answer) => handle.answer(call.callId, answer));
      },
      ended: (end) => {
        isRunning = false;
        ended.resolve(end);
      },
    },
  );
  return {
    printed,
    started: started.promise,
    ended: ended.promise,
    calls: () => calls,
    isRunning: () => isRunning,
    stop: () => handle.stop(),
  };
}

async function answerOf({ serviceId, toolId, parameters }: ToolCall, tools: SampleTools): Promise<ToolAnswer> {
  const name = `${serviceId}.${toolId}`;
  const tool = Object.hasOwn(tools, name) ? tools[name] : undefined;
  if (tool === undefined) return { ok: false, message: `There is no tool "${name}"`, code: "not_found", status: 404 };
  try {
    return { ok: true, value: (await tool(parameters)) ?? null };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { ok: false, message, code: "upstream_failed", status: 502 };
  }
}
