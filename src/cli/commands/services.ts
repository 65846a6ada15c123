/** `troupe services`: what is installed, from a document or from a registry, and how it is set up. */
import type { CommandGroup } from "../command-action.ts";
import { CliError, exitCodes } from "../exit-codes.ts";
import { readInput } from "../input.ts";
import { limitOf, pagesOf } from "../pages.ts";
import type { Run } from "../run.ts";
import type { Column } from "../table.ts";
import { type SettingsCalls, settingsCommands } from "./settings.ts";
import { listTools } from "./tools.ts";

const columns: readonly Column[] = [
  { title: "ID", of: "id" },
  { title: "VERSION", of: "version" },
  { title: "ADAPTER", of: "adapter" },
  { title: "ENABLED", of: ({ enabled, effectivelyEnabled }) => (enabled && !effectivelyEnabled ? "not now" : enabled) },
  { title: "STALE", of: "stale" },
  { title: "NAME", of: "name" },
];

const settings: SettingsCalls = {
  noun: "Service",
  getConfig: ({ services }, serviceId, calling) => services.getServiceConfig({ serviceId }, calling),
  getConfigSchema: ({ services }, serviceId, calling) => services.getServiceConfigSchema({ serviceId }, calling),
  patchConfig: ({ services }, serviceId, patch, calling) => services.patchServiceConfig({ serviceId, patch }, calling),
  getSecrets: ({ services }, serviceId, calling) => services.getServiceSecrets({ serviceId }, calling),
  getSecretsSchema: ({ services }, serviceId, calling) => services.getServiceSecretsSchema({ serviceId }, calling),
  patchSecrets: ({ services }, serviceId, patch, calling) =>
    services.patchServiceSecrets({ serviceId, patch }, calling),
};

export const serviceCommands: CommandGroup = (program, action) => {
  const services = program.command("services").description("installed services");
  services
    .command("list [words...]")
    .description("list services, or those that words find")
    .option("--limit <count>", "at most so many")
    .action(action(list));
  services.command("get <id>").description("show a service").action(action(get));
  services
    .command("add [url]")
    .description("install a service from the URL of its definition, a file or a registry; it starts disabled")
    .option("--id <id>", "its id (default: from its title)")
    .option("--adapter <id>", "openapi, mcp, grpc, graphql, … (default: found out)")
    .option("--file <file>", "the definition itself, - is stdin")
    .option("--registry <id>", "with --definition: from this registry")
    .option("--definition <id>", "entry of the registry")
    .option("--version <version>", "this version of it")
    .option("--constraint <range>", "versions that updates may bring, ^1.0.0")
    .option("--auto-update", "takes part in the update sweep")
    .action(action(add));
  for (const enabled of [true, false]) {
    const verb = enabled ? "enable" : "disable";
    services
      .command(`${verb} <id>`)
      .description(enabled ? "let programs call it; configuration and secrets are checked" : "no program may call it")
      .action(
        action(async (run: Run, serviceId: string) => {
          const answer = await run.askLong(`Service "${serviceId}"`, ({ services }, calling) =>
            services.setServiceEnabled({ serviceId, enabled }, calling),
          );
          await run.out.outcome(answer, `Service "${serviceId}" is ${verb}d`);
        }),
      );
  }
  services
    .command("update <id>")
    .description("bring it to the newest version of its registry")
    .action(
      action(async (run: Run, serviceId: string) => {
        const answer = await run.askLong(`Updating "${serviceId}"`, ({ services }, calling) =>
          services.updateService({ serviceId }, calling),
        );
        await run.out.outcome(answer, updated(serviceId, answer.updated === true, answer.version as string));
      }),
    );
  services
    .command("sync <id>")
    .description("read its definition again from where it came")
    .action(
      action(async (run: Run, serviceId: string) => {
        const answer = await run.askLong(`Reading "${serviceId}" again`, ({ services }, calling) =>
          services.syncService({ serviceId }, calling),
        );
        await run.out.outcome(answer, updated(serviceId, answer.updated === true, answer.version as string));
      }),
    );
  services
    .command("delete <id>")
    .description("delete it with its configuration and secrets")
    .action(
      action(async (run: Run, serviceId: string) => {
        await run.ask(({ services }, calling) => services.deleteService({ serviceId }, calling));
        await run.out.outcome({ id: serviceId, deleted: true }, `Service "${serviceId}" is deleted`);
      }),
    );
  services
    .command("tools <id>")
    .description("list its tools")
    .option("--limit <count>", "at most so many")
    .action(action((run: Run, serviceId: string) => listTools(run, { serviceId })));
  settingsCommands(services, action, settings);
};

async function list(run: Run, words: readonly string[]): Promise<void> {
  const query = words.length === 0 ? {} : { query: words.join(" ") };
  const page = (request: object) =>
    run.ask(({ services }, calling) => services.listServices({ ...query, ...request }, calling));
  await run.out.list(columns, pagesOf(page, limitOf(run)));
}

async function get(run: Run, serviceId: string): Promise<void> {
  const { service } = await run.ask(({ services }, calling) => services.getService({ serviceId }, calling));
  await run.out.show(service as Readonly<Record<string, unknown>>, ["configSchema", "secretsSchema"]);
}

interface AddOptions {
  readonly id?: string;
  readonly adapter?: string;
  readonly file?: string;
  readonly registry?: string;
  readonly definition?: string;
  readonly version?: string;
  readonly constraint?: string;
  readonly autoUpdate?: boolean;
}

async function add(run: Run, url: string | undefined): Promise<void> {
  const { id, adapter, file, registry, definition, version, constraint, autoUpdate } = run.options as AddOptions;
  if ([url, file, registry].filter((from) => from !== undefined).length !== 1) {
    throw new CliError(
      exitCodes.usage,
      "A service comes from a URL, from --file, or from --registry with --definition",
    );
  }
  const { value } = await run.session();
  const request = {
    ...(url === undefined ? {} : { url }),
    ...(file === undefined ? {} : { definition: value(await readInput(run.io, file)) }),
    ...(id === undefined ? {} : { id }),
    ...(adapter === undefined ? {} : { adapter }),
    ...(registry === undefined ? {} : { registryId: registry }),
    ...(definition === undefined ? {} : { definitionId: definition }),
    ...(version === undefined ? {} : { version }),
    ...(constraint === undefined ? {} : { constraint }),
    ...(autoUpdate === undefined ? {} : { autoUpdate }),
  };
  const answer = await run.askLong("Installing the service", ({ services }, calling) =>
    services.createService(request, calling),
  );
  await run.out.outcome(answer, `Service "${answer.id as string}" is installed, and disabled until it is set up`);
}

export function updated(id: string, isNew: boolean, version: string): string {
  return isNew ? `"${id}" is now at version ${version}` : `"${id}" stays at version ${version}`;
}
