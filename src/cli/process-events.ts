/** What a process did and does, as its events tell it. A connection that breaks is opened again where it broke off. */
import { exitCodes } from "./exit-codes.ts";
import { follow } from "./follow.ts";
import type { Item } from "./item.ts";
import type { Run, Streaming } from "./run.ts";

/** Plain events until the run is over and told. Throws TroupeError, but not for a connection that breaks on the way. */
export async function* processEvents(run: Run, id: bigint): AsyncGenerator<Item> {
  const { client, plain } = await run.session();
  const watch = (fromSequence: bigint | undefined, streaming: Streaming) =>
    client.processes.watchProcess({ id, ...(fromSequence === undefined ? {} : { fromSequence }) }, streaming);
  for await (const event of follow(run, watch, ({ sequence }) => sequence, { isEndless: false })) yield plain(event);
}

/** What a program printed so far. */
export async function showLogs(run: Run, id: bigint): Promise<void> {
  const [{ stdout }, { stderr }] = await Promise.all([
    run.ask(({ processes }, calling) => processes.getProcessStdout({ id }, calling)),
    run.ask(({ processes }, calling) => processes.getProcessStderr({ id }, calling)),
  ]);
  if (run.out.isJson) return run.out.json({ id: Number(id), stdout, stderr });
  await run.out.text(stdout as string);
  await run.out.errorText(stderr as string);
}

/** What it printed and prints, until it is over. */
export async function followProcess(run: Run, id: bigint): Promise<void> {
  for await (const event of processEvents(run, id)) {
    if (run.out.isJson) await run.out.jsonLine(event);
    else if (event.kind === "stdout") await run.out.text(event.text as string);
    else if (event.kind === "stderr") await run.out.errorText(event.text as string);
    else if (event.kind === "truncated") await run.out.note("What it printed beyond this is not kept as events");
  }
}

/** A line on what an event tells besides what was printed; undefined for what needs no line. */
export function eventLine(event: Item): string | undefined {
  if (event.kind === "state") return `· ${event.state as string}`;
  if (event.kind !== "toolCall") return undefined;
  const { serviceId, toolId, state, code, durationMs } = event.toolCall as Item;
  const took = durationMs === undefined ? "" : ` after ${Math.round(durationMs as number)} ms`;
  return `· ${serviceId}.${toolId} ${state}${took}${code === undefined ? "" : ` (${code})`}`;
}

export function exitCodeOfRun(exitState: unknown) {
  return exitState === "success" ? exitCodes.done : exitCodes.programFailed;
}
