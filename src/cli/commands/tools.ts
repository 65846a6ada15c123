/** `troupe tools`: what programs can call. A tool is named as they name it, `petstore.listPets`, or with a slash. */
import type { CommandGroup } from "../command-action.ts";
import { CliError, exitCodes } from "../exit-codes.ts";
import { readJson } from "../input.ts";
import { limitOf, pagesOf } from "../pages.ts";
import type { Run } from "../run.ts";
import type { Column } from "../table.ts";

const columns: readonly Column[] = [
  { title: "TOOL", of: ({ serviceId, id }) => `${serviceId}.${id}` },
  { title: "ENABLED", of: ({ enabled, effectivelyEnabled }) => (enabled && !effectivelyEnabled ? "not now" : enabled) },
  { title: "SUMMARY", of: ({ summary, name }) => summary || name },
];

export const toolCommands: CommandGroup = (program, action) => {
  const tools = program.command("tools").description("what programs can call");
  tools
    .command("list")
    .description("list all tools")
    .option("--service <id>", "only of this service")
    .option("--limit <count>", "at most so many")
    .action(
      action((run: Run) => {
        const { service } = run.options as { service?: string };
        return listTools(run, service === undefined ? {} : { serviceId: service });
      }),
    );
  tools
    .command("search <words...>")
    .description("find tools, the best first")
    .option("--service <id>", "only of this service")
    .option("--limit <count>", "at most so many (default: 20)")
    .action(
      action((run: Run, words: readonly string[]) => {
        const { service } = run.options as { service?: string };
        const filter = { query: words.join(" "), ...(service === undefined ? {} : { serviceId: service }) };
        return listTools(run, filter, searchItemsMax);
      }),
    );
  tools
    .command("get <tool>")
    .description("show a tool with its schemas, as JSON")
    .action(
      action(async (run: Run, name: string) => {
        const { tool } = await run.ask(({ tools }, calling) => tools.getTool(toolOf(name), calling));
        await run.out.json(tool);
      }),
    );
  tools
    .command("docs [tool]")
    .description("print how a program calls it; without a tool, how to write programs")
    .action(action(docs));
  tools
    .command("call <tool>")
    .description("call it and print its result, as JSON")
    .option("--params <json>", "its parameters: JSON, @file or -")
    .action(action(call));
  for (const enabled of [true, false]) {
    const verb = enabled ? "enable" : "disable";
    tools
      .command(`${verb} <tool>`)
      .description(enabled ? "let programs call it" : "no program may call it")
      .action(
        action(async (run: Run, name: string) => {
          const tool = { ...toolOf(name), enabled };
          const answer = await run.ask(({ tools }, calling) => tools.setToolEnabled(tool, calling));
          await run.out.outcome(answer, `Tool "${name}" is ${verb}d`);
        }),
      );
  }
};

const searchItemsMax = 20;

export async function listTools(
  run: Run,
  filter: { readonly serviceId?: string; readonly query?: string },
  itemsMaxDefault?: number,
): Promise<void> {
  const page = (request: object) =>
    run.ask(({ tools }, calling) => tools.listTools({ ...filter, ...request }, calling));
  await run.out.list(columns, pagesOf(page, limitOf(run) ?? itemsMaxDefault));
}

async function docs(run: Run, name: string | undefined): Promise<void> {
  const answer =
    name === undefined
      ? await run.ask(({ tools }, calling) => tools.getEnvironmentDocs({}, calling))
      : await run.ask(({ tools }, calling) => tools.getToolDocs(toolOf(name), calling));
  if (run.out.isJson) return run.out.json(answer);
  await run.out.text(`${(answer.docs as string).trimEnd()}\n`);
}

async function call(run: Run, name: string): Promise<void> {
  const tool = toolOf(name);
  const { params } = run.options as { params?: string };
  const given = params === undefined ? undefined : await readJson(run.io, params, "Option --params");
  const { value } = await run.session();
  const parameters = given === undefined ? {} : { parameters: value(given) };
  const answer = await run.askLong(`Calling "${name}"`, ({ tools }, calling) =>
    tools.invokeTool({ ...tool, ...parameters }, calling),
  );
  await run.out.json(answer.result);
}

/** Ids of services hold no dot and no slash; ids of tools may. */
function toolOf(name: string): { readonly serviceId: string; readonly toolId: string } {
  const [, serviceId, toolId] = /^([^./]+)[./](.+)$/.exec(name) ?? [];
  if (serviceId === undefined || toolId === undefined) {
    throw new CliError(exitCodes.usage, `"${name}" is not a tool: name service and tool, like petstore.listPets`);
  }
  return { serviceId, toolId };
}
