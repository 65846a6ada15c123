/**
 * Tools to run programs. A wait that is over, or whose client has gone, leaves the run as it is: the process is read again with
 * get_process, by whoever knows its id.
 */
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import {
  codeCharactersMax,
  mcpProgressCharactersMax,
  mcpProgressMs,
  mcpSilenceMs,
  mcpWaitSeconds,
  waitSecondsMax,
} from "../limits.ts";
import type { Snapshot } from "../operations/processes.ts";
import { type McpTool, type Progress, pick, type ToolArguments, type ToolContext } from "./tool.ts";
import { jsonResult, type ResultPart, resultOfParts } from "./tool-result.ts";

interface Seen {
  readonly process: Snapshot;
  readonly reason: string | null;
}

const answers = `{"snapshot": {"id", "state", "exitState", "error", …}, "output", "stdout", "stderr"}`;

const runProcess: McpTool = {
  name: "run_process",
  title: "Run a program",
  description: `Run a program in the sandbox and get what it answers. Programs call tools of services, several at once if they like, and filter or combine the results, so that only what you need comes back.
Read get_environment_docs first; it says which language and what a program sees.
Waits up to "wait" seconds for the end. Answers ${answers}: "output" is what the program returned or put out, "exitState" is "success", "failed", "timeout" or "canceled", "error" says why it failed, and stderr has the stack. If the program still runs after the wait, "next" says how to go on; it keeps running.
Example: {"code": "const { body } = await services.petstore.listPets({ query: { limit: 3 } });\\nreturn { names: body.map((pet) => pet.name) };"}`,
  annotations: { readOnlyHint: false, openWorldHint: true },
  countsAs: "createProcess",
  fields: {
    code: {
      of: "createProcess",
      description: "The program, in the language that get_environment_docs describes",
      more: { maxLength: codeCharactersMax },
    },
    ref: { of: "createProcess", description: "A label of your own, to find related processes by" },
    timeoutMs: {
      of: "createProcess",
      description:
        "Milliseconds the program may run before it is stopped; null for no limit; left out for the usual one",
    },
    wait: waitField(mcpWaitSeconds),
  },
  async run(args, context) {
    const wait = waitOf(args, mcpWaitSeconds, context);
    const { id } = await context.call<{ id: number }>("createProcess", pick(args, "code", "ref", "timeoutMs"));
    return answer(await waitUntilIdle(id, wait, context), context);
  },
};

const getProcess: McpTool = {
  name: "get_process",
  title: "Read a process",
  description: `Read a process that run_process started: how far it is, and its results. With "wait" it answers as soon as the program has ended, or after so many seconds.
Use it when run_process answered with "next". Answers ${answers}; "output" is there once the program has ended, stdout and stderr hold what was printed so far.
Example: {"id": 7, "wait": 30}`,
  annotations: { readOnlyHint: true, openWorldHint: false },
  countsAs: "getProcess",
  fields: { id: idField("getProcess"), wait: waitField(0) },
  async run(args, context) {
    const wait = waitOf(args, 0, context);
    return answer(await waitUntilIdle(args.id, wait, context), context);
  },
};

const killProcess: McpTool = {
  name: "kill_process",
  title: "Stop a program",
  description: `Stop a program that is queued or running; what it put out and printed so far is kept. Answers {"snapshot"}; one that has ended already is an error with code "conflict".
Example: {"id": 7}`,
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  countsAs: "killProcess",
  fields: { id: idField("killProcess") },
  async run(args, context) {
    const { process } = await context.call<{ process: Snapshot }>("killProcess", pick(args, "id"));
    return jsonResult({ snapshot: process }, "");
  },
};

export const processTools: readonly McpTool[] = [runProcess, getProcess, killProcess];

function idField(of: string) {
  return { of, description: "id of the process, as run_process answered it", more: { type: "integer" } };
}

function waitField(seconds: number) {
  const description = `Seconds to wait for the end, at most ${waitSecondsMax}; left out: ${seconds}`;
  const more = { type: "number", minimum: 0, maximum: waitSecondsMax, default: seconds };
  return { of: "getProcess", description, more };
}

/** Looked at before anything is created. Throws Failure invalid_request. */
function waitOf({ wait }: ToolArguments, usual: number, context: ToolContext): number {
  if (wait === undefined || wait === null) return usual;
  return Math.min(context.check<{ wait: number }>("getProcess", { id: 1, wait }).wait, waitSecondsMax);
}

/** At once if it is idle, else when it is, else after the seconds. */
async function waitUntilIdle(id: unknown, seconds: number, context: ToolContext): Promise<Seen> {
  const { progress } = context;
  if (progress === undefined || seconds === 0) return context.call<Seen>("getProcess", { id, wait: seconds });
  const told = new ToldProgress(progress, seconds, context);
  let wait = 0;
  for (;;) {
    const seen = await context.call<Seen>("getProcess", { id, wait });
    const leftMs = told.startedAt + seconds * 1_000 - context.now();
    if (seen.process.state === "idle" || leftMs <= 0) return seen;
    await told.tell(seen.process);
    wait = Math.min(mcpProgressMs, leftMs) / 1_000;
  }
}

/** What the client was told of a run so far, so that it is told only what is new. */
class ToldProgress {
  readonly startedAt: number;
  readonly #progress: Progress;
  readonly #total: number;
  readonly #context: ToolContext;
  #last: { readonly state: string; readonly at: number } | undefined;
  readonly #printed = { stdout: 0, stderr: 0 };

  constructor(progress: Progress, total: number, context: ToolContext) {
    this.#progress = progress;
    this.#total = total;
    this.#context = context;
    this.startedAt = context.now();
  }

  async tell({ id, state }: Snapshot): Promise<void> {
    const news = state === "queued" ? "" : await this.#newlyPrinted(id);
    const now = this.#context.now();
    // Some clients give up after a silence, so they are told now and then that nothing is new.
    const isSilent = this.#last !== undefined && now - this.#last.at < mcpSilenceMs;
    if (news === "" && state === this.#last?.state && isSilent) return;
    this.#last = { state, at: now };
    const message = `Process ${id} is ${state}${news === "" ? "" : `; it printed: ${news}`}`;
    await this.#progress({ done: (now - this.startedAt) / 1_000, total: this.#total, message });
  }

  /** The end of what was printed since last time. */
  async #newlyPrinted(id: number): Promise<string> {
    const { stdout, stderr } = await printed(id, this.#context);
    const news = stdout.slice(this.#printed.stdout) + stderr.slice(this.#printed.stderr);
    this.#printed.stdout = stdout.length;
    this.#printed.stderr = stderr.length;
    const text = news.trim();
    return text.length <= mcpProgressCharactersMax ? text : `…${text.slice(-mcpProgressCharactersMax).toWellFormed()}`;
  }
}

async function printed(id: number, { call }: ToolContext): Promise<{ stdout: string; stderr: string }> {
  const [{ stdout }, { stderr }] = await Promise.all([
    call<{ stdout: string }>("getProcessStdout", { id }),
    call<{ stderr: string }>("getProcessStderr", { id }),
  ]);
  return { stdout, stderr };
}

async function answer({ process, reason }: Seen, context: ToolContext): Promise<CallToolResult> {
  const { id, state } = process;
  const isIdle = state === "idle";
  const output: ResultPart[] = isIdle
    ? [{ name: "output", value: (await context.call<{ output: unknown }>("getProcessOutput", { id })).output }]
    : [];
  const { stdout, stderr } = await printed(id, context);
  const next = `The program has not ended: call get_process with {"id": ${id}, "wait": ${mcpWaitSeconds}} to go on waiting, or kill_process to stop it`;
  const head = { snapshot: process, ...(reason === null ? {} : { reason }), ...(isIdle ? {} : { next }) };
  const parts = [...output, { name: "stdout", value: stdout }, { name: "stderr", value: stderr }];
  const whole = `The whole is at GET /processes/${id}/output, /processes/${id}/stdout and /processes/${id}/stderr of the REST face. Better let programs answer less`;
  return resultOfParts(head, parts, whole);
}
