/** `troupe processes`: what runs and what ran. */
import { Option } from "commander";
import type { CommandGroup } from "../command-action.ts";
import { CliError, exitCodes } from "../exit-codes.ts";
import { readCount, readId } from "../input.ts";
import { limitOf, pagesOf } from "../pages.ts";
import { followProcess, showLogs } from "../process-events.ts";
import { runProgram } from "../process-run.ts";
import { watchProcesses } from "../process-watch.ts";
import type { Run } from "../run.ts";
import type { Column } from "../table.ts";

const states = ["queued", "running", "idle", "terminating"] as const;
const exitStates = ["failed", "success", "timeout", "canceled"] as const;

const processColumns: readonly Column[] = [
  { title: "ID", of: "id", align: "right" },
  { title: "STATE", of: "state" },
  { title: "EXIT", of: "exitState" },
  { title: "CREATED", of: "createdAt" },
  { title: "REF", of: "ref" },
  { title: "ERROR", of: "error" },
];

export const processCommands: CommandGroup = (program, action) => {
  const processes = program.command("processes").description("what runs and what ran");
  processes
    .command("list")
    .description("list processes, newest first")
    .option("--ref <ref>", "only with this label")
    .addOption(new Option("--state <state>", "only in this state").choices(states))
    .addOption(new Option("--exit-state <state>", "only those that ended so").choices(exitStates))
    .option("--limit <count>", "at most so many")
    .option("--watch", "and every change, until Ctrl-C")
    .action(action(list));
  processes
    .command("get <id>")
    .description("show a process")
    .option("--wait <seconds>", "wait so long, at most 60, for it to be idle")
    .action(action(get));
  processes
    .command("run <file>")
    .description("run a program (- is stdin) and print what it returns; what it prints goes to stderr")
    .option("--watch", "show what it prints and calls as it happens")
    .option("--detach", "print its id and leave it")
    .option("--env <name=value>", "a value of its env; may be repeated", collect)
    .option("--env-config <json>", "its whole configuration: JSON, @file or -")
    .option("--timeout <duration>", "what it may take: 30s, 5m, none")
    .option("--ref <ref>", "a label to find it by")
    .action(action(runProgram));
  processes
    .command("logs <id>")
    .description("print what it printed, to stdout and stderr as it did")
    .option("-f, --follow", "and what comes, until it is over")
    .action(
      action((run: Run, id: string) =>
        run.options.follow === true ? followProcess(run, readId(id)) : showLogs(run, readId(id)),
      ),
    );
  processes
    .command("output <id>")
    .description("print what it returned, as JSON")
    .option("--wait <seconds>", "wait so long, at most 60, for it to be idle")
    .action(action(output));
  processes.command("code <id>").description("print its program").action(action(code));
  processes
    .command("start <id>")
    .description("run it (again)")
    .option("--force", "also when it runs already")
    .action(action(start));
  processes
    .command("kill <id...>")
    .description("end its run")
    .action(
      action((run: Run, ids: readonly string[]) =>
        each(run, ids, "is killed", (id) =>
          run.ask(({ processes }, calling) => processes.killProcess({ id }, calling)),
        ),
      ),
    );
  processes
    .command("unload <id...>")
    .description("give back what it holds while it is idle")
    .action(
      action((run: Run, ids: readonly string[]) =>
        each(run, ids, "is unloaded", (id) =>
          run.ask(({ processes }, calling) => processes.unloadProcess({ id }, calling)),
        ),
      ),
    );
  processes
    .command("delete <id...>")
    .description("delete it with its results")
    .action(
      action((run: Run, ids: readonly string[]) =>
        each(run, ids, "is deleted", (id) =>
          run.ask(({ processes }, calling) => processes.deleteProcess({ id }, calling)),
        ),
      ),
    );
};

interface ListOptions {
  readonly ref?: string;
  readonly state?: string;
  readonly exitState?: string;
  readonly watch?: boolean;
}

async function list(run: Run): Promise<void> {
  const { ref, state, exitState, watch } = run.options as ListOptions;
  const { ProcessState, ProcessExitState } = await import("../../gen/troupe/v1/process_pb.ts");
  const filter = {
    ...(ref === undefined ? {} : { ref }),
    ...(state === undefined ? {} : { state: ProcessState[state.toUpperCase() as keyof typeof ProcessState] }),
    ...(exitState === undefined
      ? {}
      : { exitState: ProcessExitState[exitState.toUpperCase() as keyof typeof ProcessExitState] }),
  };
  if (watch === true) {
    if (exitState !== undefined)
      throw new CliError(exitCodes.usage, "Option --exit-state is not watched for: leave it out, or --watch");
    return watchProcesses(run, filter, processColumns);
  }
  const page = (request: object) =>
    run.ask(({ processes }, calling) => processes.listProcesses({ ...filter, ...request }, calling));
  await run.out.list(processColumns, pagesOf(page, limitOf(run)));
}

async function get(run: Run, id: string): Promise<void> {
  const wait = waitOf(run);
  const answer = await run.ask(
    ({ processes }, calling) => processes.getProcess({ id: readId(id), ...wait }, calling),
    waitMsOf(wait),
  );
  await run.out.show({
    ...(answer.process as object),
    ...(answer.reason === undefined ? {} : { reason: answer.reason }),
  });
}

async function output(run: Run, id: string): Promise<void> {
  const wait = waitOf(run);
  const answer = await run.ask(
    ({ processes }, calling) => processes.getProcessOutput({ id: readId(id), ...wait }, calling),
    waitMsOf(wait),
  );
  await run.out.json(answer.output ?? {});
}

async function code(run: Run, id: string): Promise<void> {
  const answer = await run.ask(({ processes }, calling) => processes.getProcessCode({ id: readId(id) }, calling));
  if (run.out.isJson) return run.out.json(answer);
  const text = answer.code as string;
  await run.out.text(text.endsWith("\n") ? text : `${text}\n`);
}

async function start(run: Run, id: string): Promise<void> {
  const force = run.options.force === true;
  const answer = await run.ask(({ processes }, calling) => processes.runProcess({ id: readId(id), force }, calling));
  await run.out.outcome(answer.process as object as Readonly<Record<string, unknown>>, `Process ${id} is started`);
}

/** One after another, so that the first refusal says how far it came. */
async function each(
  run: Run,
  words: readonly string[],
  done: string,
  call: (id: bigint) => Promise<Readonly<Record<string, unknown>>>,
): Promise<void> {
  const ids = words.map(readId);
  const changed: unknown[] = [];
  for (const id of ids) {
    changed.push((await call(id)).process);
    if (!run.out.isJson) await run.out.line(`Process ${id} ${done}`);
  }
  if (run.out.isJson) await run.out.json(changed);
}

function waitOf(run: Run): { readonly wait?: number } {
  const { wait } = run.options as { wait?: string };
  return wait === undefined ? {} : { wait: readCount(wait, "Option --wait") };
}

/** The server makes at most this of it. */
const waitSecondsMax = 60;

function waitMsOf({ wait = 0 }: { readonly wait?: number }): number {
  return Math.min(wait, waitSecondsMax) * 1_000;
}

function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}
