/** `troupe registries`: catalogs that services and modules come from. */

import type { Command } from "commander";
import { Option } from "commander";
import type { CommandAction, CommandGroup } from "../command-action.ts";
import { CliError, exitCodes } from "../exit-codes.ts";
import type { Item } from "../item.ts";
import { limitOf, pagesOf } from "../pages.ts";
import type { Run } from "../run.ts";
import { readSecret } from "../secret-input.ts";
import type { Column } from "../table.ts";

const columns: readonly Column[] = [
  { title: "ID", of: "id" },
  { title: "URL", of: "baseUrl" },
  { title: "AUTH", of: "authType" },
  { title: "LAST SYNCED", of: "lastSyncedAt" },
];

const entryColumns: readonly Column[] = [
  { title: "ID", of: "id" },
  { title: "KIND", of: ({ kind, type }) => kind ?? type },
  { title: "NAME", of: "name" },
  { title: "DESCRIPTION", of: "description" },
];

export const registryCommands: CommandGroup = (program, action) => {
  const registries = program.command("registries").description("catalogs that services and modules come from");
  registries
    .command("list")
    .description("list registries")
    .option("--limit <count>", "at most so many")
    .action(action(list));
  registries
    .command("get <id>")
    .description("show a registry")
    .action(
      action(async (run: Run, id: string) => {
        const { registry } = await run.ask(({ registries }, calling) => registries.getRegistry({ id }, calling));
        await run.out.show(registry as Item);
      }),
    );
  withAuth(
    registries
      .command("add <url>")
      .description("add the registry at a URL")
      .option("--id <id>", "its id (default: the one it advertises)"),
  ).action(action(add));
  registries
    .command("browse <id> [words...]")
    .description("list what it offers, or what words find")
    .option("--modules", "modules instead of definitions of services")
    .option("--kind <kind>", "only definitions of this kind, or modules of this type")
    .option("--limit <count>", "at most so many")
    .action(action(browse));
  registries
    .command("refresh <id>")
    .description("read what it advertises again")
    .action(
      action(async (run: Run, id: string) => {
        const answer = await run.askLong(`Asking "${id}"`, ({ registries }, calling) =>
          registries.refreshRegistry({ id }, calling),
        );
        await run.out.outcome(answer.registry as Item, `Registry "${id}" is up to date`);
      }),
    );
  registries
    .command("delete <id>")
    .description("forget it; what was installed from it stays")
    .action(
      action(async (run: Run, id: string) => {
        await run.ask(({ registries }, calling) => registries.deleteRegistry({ id }, calling));
        await run.out.outcome({ id, deleted: true }, `Registry "${id}" is deleted`);
      }),
    );
  authCommands(registries.command("auth").description("its credentials"), action);
};

function authCommands(auth: Command, action: CommandAction): void {
  auth
    .command("get <id>")
    .description("show what is set, never the credentials")
    .action(
      action(async (run: Run, id: string) => {
        await run.out.show(await run.ask(({ registries }, calling) => registries.getRegistryAuth({ id }, calling)));
      }),
    );
  withAuth(auth.command("set <id>").description("give it credentials")).action(
    action(async (run: Run, id: string) => {
      const setup = await readAuth(run);
      if (setup === undefined)
        throw new CliError(exitCodes.usage, "Name --auth-key-file, or --client-id with --client-secret-file");
      const answer = await run.askLong(`Asking "${id}"`, ({ registries }, calling) =>
        registries.setRegistryAuth({ id, auth: setup }, calling),
      );
      await run.out.outcome(answer, authSentence(id, answer.auth as Item));
    }),
  );
  auth
    .command("delete <id>")
    .description("forget them")
    .action(
      action(async (run: Run, id: string) => {
        await run.ask(({ registries }, calling) => registries.deleteRegistryAuth({ id }, calling));
        await run.out.outcome({ id, deleted: true }, `Registry "${id}" has no credentials any more`);
      }),
    );
}

function withAuth(command: Command): Command {
  return command
    .option("--auth-key-file <file>", "its API key is in this file, - is stdin")
    .option("--client-id <id>", "OAuth2: client id")
    .addOption(new Option("--client-secret-file <file>", "OAuth2: the client's secret is in this file, - is stdin"))
    .option("--scope <scope...>", "OAuth2: only these scopes");
}

interface AuthOptions {
  readonly id?: string;
  readonly authKeyFile?: string;
  readonly clientId?: string;
  readonly clientSecretFile?: string;
  readonly scope?: readonly string[];
}

async function readAuth(run: Run) {
  const { authKeyFile, clientId, clientSecretFile, scope } = run.options as AuthOptions;
  if (authKeyFile !== undefined)
    return { type: "apiKey", apiKey: await readSecret(run.io, authKeyFile, "The API key") };
  if (clientId === undefined && clientSecretFile === undefined) return undefined;
  if (clientId === undefined) throw new CliError(exitCodes.usage, "Option --client-secret-file goes with --client-id");
  const clientSecret = await readSecret(run.io, clientSecretFile, "The client's secret");
  return { type: "oauth2", clientId, clientSecret, scopes: [...(scope ?? [])] };
}

async function list(run: Run): Promise<void> {
  const page = (request: object) => run.ask(({ registries }, calling) => registries.listRegistries(request, calling));
  await run.out.list(columns, pagesOf(page, limitOf(run)));
}

async function add(run: Run, baseUrl: string): Promise<void> {
  const { id } = run.options as AuthOptions;
  const auth = await readAuth(run);
  const request = { baseUrl, ...(id === undefined ? {} : { id }), ...(auth === undefined ? {} : { auth }) };
  const answer = await run.askLong("Adding the registry", ({ registries }, calling) =>
    registries.addRegistry(request, calling),
  );
  await run.out.outcome(answer, `Registry "${answer.id as string}" is added`);
  if (answer.auth !== undefined && !run.out.isJson)
    await run.out.note(authSentence(answer.id as string, answer.auth as Item));
}

async function browse(run: Run, id: string, words: readonly string[]): Promise<void> {
  const { modules, kind } = run.options as { modules?: boolean; kind?: string };
  const filter = { id, ...(words.length === 0 ? {} : { query: words.join(" ") }) };
  const page = (request: object) =>
    modules === true
      ? run.askLong(`Asking "${id}"`, ({ registries }, calling) =>
          registries.browseModules({ ...filter, ...(kind === undefined ? {} : { type: kind }), ...request }, calling),
        )
      : run.askLong(`Asking "${id}"`, ({ registries }, calling) =>
          registries.browseDefinitions({ ...filter, ...(kind === undefined ? {} : { kind }), ...request }, calling),
        );
  await run.out.list(entryColumns, pagesOf(page, limitOf(run), modules === true ? "modules" : "definitions"));
}

function authSentence(id: string, { status, message }: Item): string {
  const why = message === undefined ? "" : `: ${message as string}`;
  return `Credentials of registry "${id}": ${status as string}${why}`;
}
