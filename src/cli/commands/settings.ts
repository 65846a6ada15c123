/** `config` and `secrets` of services and of modules: the same commands, which change one name at a time by JSON Patch. */
import type { Message } from "@bufbuild/protobuf";
import type { Command } from "commander";
import type { JsonPatchOperation } from "../../gen/troupe/v1/json_patch_pb.ts";
import type { CommandAction } from "../command-action.ts";
import type { Item } from "../item.ts";
import type { Calling, Run } from "../run.ts";
import { readSecret } from "../secret-input.ts";
import type { Session } from "../session.ts";

type Operation = Pick<JsonPatchOperation, "op" | "path" | "value">;
type Client = Session["client"];

/** The rpcs of one kind of thing. */
export interface SettingsCalls {
  readonly noun: "Service" | "Module";
  getConfig(client: Client, id: string, calling: Calling): Promise<Message>;
  getConfigSchema(client: Client, id: string, calling: Calling): Promise<Message>;
  patchConfig(client: Client, id: string, patch: Operation[], calling: Calling): Promise<Message>;
  getSecrets(client: Client, id: string, calling: Calling): Promise<Message>;
  getSecretsSchema(client: Client, id: string, calling: Calling): Promise<Message>;
  patchSecrets(client: Client, id: string, patch: Operation[], calling: Calling): Promise<Message>;
}

export function settingsCommands(group: Command, action: CommandAction, calls: SettingsCalls): void {
  configCommands(group.command("config").description("its configuration"), action, calls);
  secretsCommands(group.command("secrets").description("its secrets: what is set, never what they are"), action, calls);
}

function configCommands(config: Command, action: CommandAction, calls: SettingsCalls): void {
  config
    .command("get <id>")
    .description("print the configuration, as JSON")
    .action(
      action(async (run: Run, id: string) => {
        const answer = await run.ask((client, calling) => calls.getConfig(client, id, calling));
        await run.out.json(run.out.isJson ? answer : (answer.config ?? {}));
        if (!run.out.isJson) await noteOutdated(run, answer);
      }),
    );
  config
    .command("schema <id>")
    .description("print what it may hold, as JSON Schema")
    .action(
      action(async (run: Run, id: string) => {
        const answer = await run.ask((client, calling) => calls.getConfigSchema(client, id, calling));
        await run.out.json(answer.configSchema);
      }),
    );
  config
    .command("set <id> <name> <value>")
    .description("set one name (or a JSON pointer, /a/b) to a value: JSON, or else text")
    .option("--text", "the value is text, also when it looks like JSON")
    .action(
      action(async (run: Run, id: string, name: string, given: string) => {
        const value = run.options.text === true ? given : jsonOrText(given);
        await patchConfig(run, calls, id, {
          op: "add",
          path: pointerOf(name),
          value: (await run.session()).value(value),
        });
      }),
    );
  config
    .command("unset <id> <name>")
    .description("remove one name")
    .action(
      action((run: Run, id: string, name: string) =>
        patchConfig(run, calls, id, { op: "remove", path: pointerOf(name) }),
      ),
    );
}

function secretsCommands(secrets: Command, action: CommandAction, calls: SettingsCalls): void {
  secrets
    .command("list <id>")
    .description("list the names that are set")
    .action(
      action(async (run: Run, id: string) => {
        const answer = await run.ask((client, calling) => calls.getSecrets(client, id, calling));
        if (run.out.isJson) return run.out.json(answer);
        for (const pointer of answer.present as readonly string[]) await run.out.text(`${nameOf(pointer)}\n`);
        await noteOutdated(run, answer);
      }),
    );
  secrets
    .command("schema <id>")
    .description("print which there may be, as JSON Schema")
    .action(
      action(async (run: Run, id: string) => {
        const answer = await run.ask((client, calling) => calls.getSecretsSchema(client, id, calling));
        await run.out.json(answer.secretsSchema);
      }),
    );
  secrets
    .command("set <id> <name>")
    .description("set one; its value is read from stdin, never from the command line")
    .option("--file <file>", "read it from a file")
    .action(
      action(async (run: Run, id: string, name: string) => {
        const { file } = run.options as { file?: string };
        const value = (await run.session()).value(await readSecret(run.io, file, `Secret "${name}"`));
        await patchSecrets(run, calls, id, { op: "add", path: pointerOf(name), value }, `Secret "${name}" is set`);
      }),
    );
  secrets
    .command("unset <id> <name>")
    .description("remove one")
    .action(
      action((run: Run, id: string, name: string) =>
        patchSecrets(run, calls, id, { op: "remove", path: pointerOf(name) }, `Secret "${name}" is not set any more`),
      ),
    );
}

async function patchConfig(run: Run, calls: SettingsCalls, id: string, operation: Operation): Promise<void> {
  const answer = await run.ask((client, calling) => calls.patchConfig(client, id, [operation], calling));
  await run.out.json(run.out.isJson ? answer : (answer.config ?? {}));
  if (!run.out.isJson) await noteOutdated(run, answer);
}

async function patchSecrets(
  run: Run,
  calls: SettingsCalls,
  id: string,
  operation: Operation,
  done: string,
): Promise<void> {
  const answer = await run.ask((client, calling) => calls.patchSecrets(client, id, [operation], calling));
  await run.out.outcome(answer, done);
  if (!run.out.isJson) await noteOutdated(run, answer);
}

async function noteOutdated(run: Run, answer: Item): Promise<void> {
  const outdated = (answer.outdated ?? []) as readonly string[];
  if (outdated.length > 0) await run.out.note(`No longer known to the schema: ${outdated.map(nameOf).join(", ")}`);
}

/** RFC 6901. */
function pointerOf(name: string): string {
  return name.startsWith("/") ? name : `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** As it is typed: only what is further down needs a pointer. */
function nameOf(pointer: string): string {
  const [, first, ...deeper] = pointer.split("/");
  if (first === undefined || first === "" || deeper.length > 0) return pointer;
  return first.replaceAll("~1", "/").replaceAll("~0", "~");
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
