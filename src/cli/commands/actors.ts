/** `troupe actors`: the supervision tree, one actor with its state, and bringing a parked one back. */
import { Option } from "commander";
import type { CommandGroup } from "../command-action.ts";
import { CliError, exitCodes } from "../exit-codes.ts";
import type { Item } from "../item.ts";
import { limitOf, type PageRequest, pagesOf } from "../pages.ts";
import type { Run } from "../run.ts";
import type { Column } from "../table.ts";

const kinds = ["process", "service", "module", "registry"] as const;

const columns: readonly Column[] = [
  { title: "ACTOR", of: ({ kind, id }) => `${kind}/${id}` },
  { title: "PHASE", of: "phase" },
  { title: "MAILBOX", of: "mailboxDepth", align: "right" },
  { title: "RESTARTS", of: "restarts", align: "right" },
  { title: "LAST ERROR", of: "lastError" },
];

export const actorCommands: CommandGroup = (program, action) => {
  const actors = program.command("actors").description("the supervision tree");
  actors
    .command("list")
    .description("list the actors in memory")
    .addOption(new Option("--kind <kind>", "only of this kind").choices(kinds))
    .option("--parked", "only those given up until somebody restarts them")
    .option("--troubled", "only those somebody should look at")
    .option("--limit <count>", "at most so many")
    .action(action(list));
  actors
    .command("get <actor>")
    .description("show one, like process/42, with its stored state, secrets masked; as JSON")
    .action(
      action(async (run: Run, name: string) => {
        const { actor } = await run.ask(({ diagnostics }, calling) => diagnostics.getActor(actorOf(name), calling));
        await run.out.json(actor);
      }),
    );
  actors
    .command("restart <actor>")
    .description("bring a parked one back from its record")
    .action(
      action(async (run: Run, name: string) => {
        const answer = await run.askLong(`Restarting ${name}`, ({ diagnostics }, calling) =>
          diagnostics.restartActor(actorOf(name), calling),
        );
        await run.out.outcome(answer, answer.message as string);
      }),
    );
};

async function list(run: Run): Promise<void> {
  const { kind, parked, troubled } = run.options as {
    kind?: string;
    parked?: boolean;
    troubled?: boolean;
  };
  const filter = {
    ...(kind === undefined ? {} : { kind }),
    onlyParked: parked === true,
    onlyTroubled: troubled === true,
  };
  /** A page of the tree without its branches: an actor names its kind itself. */
  const page = async (request: PageRequest): Promise<Item> => {
    const answer = await run.ask(({ diagnostics }, calling) =>
      diagnostics.listActors({ ...filter, ...request }, calling),
    );
    const branches = (answer.node as Item).kinds as readonly Item[];
    return { ...answer, items: branches.flatMap(({ actors }) => actors as readonly Item[]) };
  };
  await run.out.list(columns, pagesOf(page, limitOf(run)));
}

function actorOf(name: string): { readonly kind: string; readonly id: string } {
  const [, kind, id] = /^([^/]+)\/(.+)$/.exec(name) ?? [];
  if (kind === undefined || id === undefined) {
    throw new CliError(exitCodes.usage, `"${name}" is not an actor: name kind and id, like process/42`);
  }
  return { kind, id };
}
