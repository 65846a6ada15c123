/** `troupe processes run`: a program from a file to its output, waited for, watched or left alone. */
import type { JsonObject } from "@bufbuild/protobuf";
import { CliError, type ExitCode, exitCodes } from "./exit-codes.ts";
import { isLost } from "./follow.ts";
import { isObject, readDuration, readInput, readJson } from "./input.ts";
import type { Item } from "./item.ts";
import { eventLine, exitCodeOfRun, processEvents } from "./process-events.ts";
import { Progress } from "./progress.ts";
import { answerMsMax, type Run } from "./run.ts";

interface RunOptions {
  readonly watch?: boolean;
  readonly detach?: boolean;
  readonly env?: readonly string[];
  readonly envConfig?: string;
  readonly timeout?: string;
  readonly ref?: string;
}

/** At once; the server does not hold a request longer. */
const waitSeconds = 30;

export async function runProgram(run: Run, file: string): Promise<ExitCode> {
  const options = run.options as RunOptions;
  if (options.watch === true && options.detach === true) {
    throw new CliError(exitCodes.usage, "A program is watched or left alone: --watch and --detach exclude each other");
  }
  const request = await readRequest(run, file, options);
  const { client } = await run.session();
  const { id } = await client.processes.createProcess(request, { signal: run.signal, timeoutMs: answerMsMax });
  if (options.detach === true) {
    await (run.out.isJson ? run.out.json({ id: Number(id) }) : run.out.line(String(id)));
    return exitCodes.done;
  }
  try {
    return await (options.watch === true ? watch(run, id) : wait(run, id));
  } catch (error) {
    if (run.io.signal.aborted || isLost(error)) {
      run.io.stderr.write(`Process ${id} goes on; \`troupe processes kill ${id}\` ends it\n`);
    }
    throw error;
  }
}

async function readRequest(run: Run, file: string, { env, envConfig, timeout, ref }: RunOptions) {
  const config = envConfig === undefined ? {} : await readJson(run.io, envConfig, "Option --env-config");
  if (!isObject(config)) throw new CliError(exitCodes.usage, "Option --env-config must be a JSON object");
  const values = (env ?? []).map((pair) => {
    const at = pair.indexOf("=");
    if (at < 1) throw new CliError(exitCodes.usage, "Option --env must be NAME=VALUE");
    return [pair.slice(0, at), pair.slice(at + 1)] as const;
  });
  const whole = { ...config, ...Object.fromEntries(values) };
  return {
    code: await readInput(run.io, file),
    ...(ref === undefined ? {} : { ref }),
    ...(Object.keys(whole).length === 0 ? {} : { envConfig: whole as JsonObject }),
    ...(timeout === undefined
      ? {}
      : timeout === "none"
        ? { noTimeout: true }
        : { timeoutMs: readDuration(timeout, "Option --timeout") }),
  };
}

async function wait(run: Run, id: bigint): Promise<ExitCode> {
  const { client, plain } = await run.session();
  const progress = new Progress(run.io.stderr, `Process ${id} runs`);
  try {
    await client.waitForProcess(id, { timeoutMs: Number.MAX_SAFE_INTEGER, signal: run.signal });
  } finally {
    progress.end();
  }
  const calling = { signal: run.signal };
  const [snapshot, output, stdout, stderr] = (
    await Promise.all([
      client.processes.getProcess({ id }, calling),
      client.processes.getProcessOutput({ id, wait: waitSeconds }, calling),
      client.processes.getProcessStdout({ id }, calling),
      client.processes.getProcessStderr({ id }, calling),
    ])
  ).map(plain) as [Item, Item, Item, Item];
  const process = snapshot.process as Item;
  if (run.out.isJson) {
    await run.out.json({ process, output: output.output ?? {}, stdout: stdout.stdout, stderr: stderr.stderr });
    return exitCodeOfRun(process.exitState);
  }
  await run.out.errorText(stdout.stdout as string);
  await run.out.errorText(stderr.stderr as string);
  return finish(run, process, output.output);
}

async function watch(run: Run, id: bigint): Promise<ExitCode> {
  let process: Item = {};
  let output: unknown;
  if (!run.out.isJson) await run.out.note(`· process ${id}`);
  for await (const event of processEvents(run, id)) {
    if (event.process !== undefined) process = event.process as Item;
    if (event.kind === "output") output = event.output;
    if (run.out.isJson) {
      await run.out.jsonLine(event);
      continue;
    }
    if (event.kind === "stdout" || event.kind === "stderr") await run.out.errorText(event.text as string);
    const line = eventLine(event);
    if (line !== undefined) await run.out.note(line);
  }
  return run.out.isJson ? exitCodeOfRun(process.exitState) : finish(run, process, output);
}

async function finish(run: Run, process: Item, output: unknown): Promise<ExitCode> {
  await run.out.json(output ?? {});
  if (process.exitState !== "success") {
    const why = process.error === undefined ? "" : `: ${process.error as string}`;
    await run.out.note(`Process ${process.id as number} ended with ${process.exitState as string}${why}`);
  }
  return exitCodeOfRun(process.exitState);
}
