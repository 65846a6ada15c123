/** `troupe events`: what happens on the node, as it happens. A connection that breaks is opened again where it broke off. */
import { Option } from "commander";
import type { CommandGroup } from "../command-action.ts";
import { follow } from "../follow.ts";
import type { Item } from "../item.ts";
import type { Run, Streaming } from "../run.ts";
import { textOf } from "../table.ts";

const kinds = ["registry", "service", "module", "process"] as const;

export const eventCommands: CommandGroup = (program, action) => {
  program
    .command("events")
    .description("what there is and what happens to it, until Ctrl-C")
    .addOption(new Option("--kind <kind...>", "only things of these kinds").choices(kinds))
    .action(action(events));
};

async function events(run: Run): Promise<void> {
  const { kind = [] } = run.options as { kind?: readonly (typeof kinds)[number][] };
  const { SubjectKind } = await import("../../gen/troupe/v1/event_pb.ts");
  const wanted = kind.map((word) => SubjectKind[word.toUpperCase() as keyof typeof SubjectKind]);
  const { client, plain } = await run.session();
  const watch = (fromSequence: bigint | undefined, streaming: Streaming) =>
    client.events.watchEvents({ kinds: wanted, ...(fromSequence === undefined ? {} : { fromSequence }) }, streaming);
  for await (const message of follow(run, watch, ({ sequence }) => sequence)) {
    const item = plain(message);
    if (run.out.isJson) await run.out.jsonLine(item);
    else for (const line of linesOf(item)) await run.out.line(line);
  }
}

function linesOf({ snapshot, event }: Item): readonly string[] {
  if (event !== undefined) {
    const { time, type, kind, id, state } = event as Item;
    return [`${time} ${kind}/${textOf(id)} ${type}${state === undefined ? "" : ` (${textOf(state)})`}`];
  }
  const { items, hasMore } = snapshot as { items: readonly Item[]; hasMore: boolean };
  const lines = items.map(
    ({ kind, id, state }) => `there is ${kind}/${textOf(id)}${state === undefined ? "" : ` (${textOf(state)})`}`,
  );
  return hasMore ? [...lines, "there are more"] : lines;
}
