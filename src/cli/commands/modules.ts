/** `troupe modules`: adapters and environments, built in and installed. */
import { Option } from "commander";
import type { CommandGroup } from "../command-action.ts";
import { CliError, exitCodes } from "../exit-codes.ts";
import { limitOf, pagesOf } from "../pages.ts";
import type { Run } from "../run.ts";
import type { Column } from "../table.ts";
import { updated } from "./services.ts";
import { type SettingsCalls, settingsCommands } from "./settings.ts";

const columns: readonly Column[] = [
  { title: "ID", of: "id" },
  { title: "TYPE", of: "type" },
  { title: "VERSION", of: "version" },
  { title: "ENABLED", of: "enabled" },
  { title: "BUILT IN", of: "isBuiltin" },
  {
    title: "DESCRIPTION",
    of: ({ missing, reason, description }) => (missing ? `missing: ${reason ?? ""}` : description),
  },
];

const settings: SettingsCalls = {
  noun: "Module",
  getConfig: ({ modules }, moduleId, calling) => modules.getModuleConfig({ moduleId }, calling),
  getConfigSchema: ({ modules }, moduleId, calling) => modules.getModuleConfigSchema({ moduleId }, calling),
  patchConfig: ({ modules }, moduleId, patch, calling) => modules.patchModuleConfig({ moduleId, patch }, calling),
  getSecrets: ({ modules }, moduleId, calling) => modules.getModuleSecrets({ moduleId }, calling),
  getSecretsSchema: ({ modules }, moduleId, calling) => modules.getModuleSecretsSchema({ moduleId }, calling),
  patchSecrets: ({ modules }, moduleId, patch, calling) => modules.patchModuleSecrets({ moduleId, patch }, calling),
};

export const moduleCommands: CommandGroup = (program, action) => {
  const modules = program.command("modules").description("adapters and environments, built in and installed");
  modules
    .command("list [words...]")
    .description("list modules, or those that words find")
    .addOption(new Option("--type <type>", "only of this type").choices(["adapter", "environment"]))
    .option("--limit <count>", "at most so many")
    .action(action(list));
  modules
    .command("get <id>")
    .description("show a module")
    .action(
      action(async (run: Run, moduleId: string) => {
        const { module } = await run.ask(({ modules }, calling) => modules.getModule({ moduleId }, calling));
        await run.out.show(module as Readonly<Record<string, unknown>>, ["configSchema", "secretsSchema"]);
      }),
    );
  modules
    .command("install [source]")
    .description("install a package from a URL that ends with #sha256=HASH, or from a registry; it starts disabled")
    .option("--hash <sha256>", "of the package, when the URL does not have it")
    .option("--registry <id>", "with --module: from this registry")
    .option("--module <id>", "entry of the registry")
    .option("--version <version>", "this version of it")
    .option("--constraint <range>", "versions that updates may bring, ^1.0.0")
    .option("--auto-update", "takes part in the update sweep")
    .action(action(install));
  for (const enabled of [true, false]) {
    const verb = enabled ? "enable" : "disable";
    modules
      .command(`${verb} <id>`)
      .description(enabled ? "use it" : "use it no more")
      .action(
        action(async (run: Run, moduleId: string) => {
          const answer = await run.askLong(`Module "${moduleId}"`, ({ modules }, calling) =>
            modules.setModuleEnabled({ moduleId, enabled }, calling),
          );
          await run.out.outcome(answer, `Module "${moduleId}" is ${verb}d`);
        }),
      );
  }
  modules
    .command("update <id>")
    .description("bring it to the newest version of its registry")
    .action(
      action(async (run: Run, moduleId: string) => {
        const answer = await run.askLong(`Updating "${moduleId}"`, ({ modules }, calling) =>
          modules.updateModule({ moduleId }, calling),
        );
        await run.out.outcome(answer, updated(moduleId, answer.updated === true, answer.version as string));
      }),
    );
  modules
    .command("rollback <id>")
    .description("go back to the version before")
    .action(
      action(async (run: Run, moduleId: string) => {
        const answer = await run.askLong(`Going back with "${moduleId}"`, ({ modules }, calling) =>
          modules.rollBackModule({ moduleId }, calling),
        );
        await run.out.outcome(answer, `"${moduleId}" is at version ${answer.version as string} again`);
      }),
    );
  modules
    .command("reload")
    .description("look at the packages on disk again")
    .action(
      action(async (run: Run) => {
        const answer = await run.askLong("Looking at the packages", ({ modules }, calling) =>
          modules.reloadModules({}, calling),
        );
        await run.out.outcome(answer, `${answer.modules as number} modules, ${answer.faulty as number} of them faulty`);
      }),
    );
  modules
    .command("delete <id>")
    .description("delete it with its configuration and secrets")
    .action(
      action(async (run: Run, moduleId: string) => {
        await run.ask(({ modules }, calling) => modules.deleteModule({ moduleId }, calling));
        await run.out.outcome({ id: moduleId, deleted: true }, `Module "${moduleId}" is deleted`);
      }),
    );
  settingsCommands(modules, action, settings);
};

async function list(run: Run, words: readonly string[]): Promise<void> {
  const { type } = run.options as { type?: string };
  const { ModuleType } = await import("../../gen/troupe/v1/module_pb.ts");
  const filter = {
    ...(words.length === 0 ? {} : { query: words.join(" ") }),
    ...(type === undefined ? {} : { type: type === "adapter" ? ModuleType.ADAPTER : ModuleType.ENVIRONMENT }),
  };
  const page = (request: object) =>
    run.ask(({ modules }, calling) => modules.listModules({ ...filter, ...request }, calling));
  await run.out.list(columns, pagesOf(page, limitOf(run)));
}

interface InstallOptions {
  readonly hash?: string;
  readonly registry?: string;
  readonly module?: string;
  readonly version?: string;
  readonly constraint?: string;
  readonly autoUpdate?: boolean;
}

async function install(run: Run, source: string | undefined): Promise<void> {
  const { hash, registry, module, version, constraint, autoUpdate } = run.options as InstallOptions;
  if ((source === undefined) === (registry === undefined)) {
    throw new CliError(exitCodes.usage, "A module comes from a URL, or from --registry with --module");
  }
  const request = {
    ...(source === undefined ? {} : { source }),
    ...(hash === undefined ? {} : { hash }),
    ...(registry === undefined ? {} : { registryId: registry }),
    ...(module === undefined ? {} : { moduleId: module }),
    ...(version === undefined ? {} : { version }),
    ...(constraint === undefined ? {} : { constraint }),
    ...(autoUpdate === undefined ? {} : { autoUpdate }),
  };
  const answer = await run.askLong("Installing the module", ({ modules }, calling) =>
    modules.installModule(request, calling),
  );
  const { id, version: installed } = answer.module as { id: string; version: string };
  await run.out.outcome(answer, `Module "${id}" ${installed} is installed, and disabled until it is enabled`);
}
