/** The commands that serve, read a server's settings, or make something to start from; none of them talks to the control plane. */
import { resolve } from "node:path";
import type { Command } from "commander";
import type { Hosts } from "../cli-io.ts";
import type { CommandAction } from "../command-action.ts";
import type { ExitCode } from "../exit-codes.ts";
import type { Run } from "../run.ts";

export function serverCommands(program: Command, action: CommandAction, hosts: Hosts): void {
  program
    .command("serve")
    .description("serve in the foreground, as the SERVICE_ variables of the environment say")
    .action(action(() => hosts.serve()));
  const config = program.command("config").description("the settings of a server, from the environment");
  config
    .command("check")
    .description("report everything that is wrong with them")
    .action(
      action(async (run: Run) => {
        await hosts.checkSettings();
        await run.out.outcome({ valid: true }, "The settings are valid");
      }),
    );
  config
    .command("print")
    .description("print what is in force, secrets masked")
    .action(action(async (run: Run) => run.out.json(await hosts.settings())));
  program
    .command("mcp")
    .description("speak MCP on stdin and stdout for a running server")
    .option("--url <url>", "of its REST face (TROUPE_URL; default: http://127.0.0.1:8080)")
    .action(action(mcp));
  program
    .command("dev-registry")
    .description("serve the development registry, as the SERVICE_DEV_REGISTRY_ variables say")
    .action(action(() => hosts.devRegistry()));
  program
    .command("module")
    .description("a module of your own")
    .command("new <name>")
    .description("write a working module to start from into a new folder")
    .option("--type <type>", "adapter or environment (default: adapter)")
    .option("--into <folder>", "where to make the folder (default: here)")
    .action(action(moduleNew));
  program
    .command("version")
    .description("print the version of this command")
    .action(
      action(async (run: Run) => {
        const version = (await import("../../sdk/troupe-package.ts")).troupeVersion();
        await run.out.outcome({ version }, version);
      }),
    );
}

async function mcp({ options, io, signal }: Run): Promise<ExitCode> {
  // It ends with its stdin, and with Ctrl-C as if that had ended.
  signal.addEventListener("abort", () => io.stdin.destroy(), { once: true });
  const { url, keyFile } = options as { url?: string; keyFile?: string };
  const args = [
    ...(url === undefined ? [] : ["--url", url]),
    ...(keyFile === undefined ? [] : ["--key-file", keyFile]),
  ];
  return (await (await import("../mcp.ts")).runMcp(args, io.environment, io)) as ExitCode;
}

async function moduleNew({ options, io, out }: Run, name: string): Promise<ExitCode> {
  const { type, into } = options as { type?: string; into?: string };
  const args = [
    ...(type === undefined ? [] : ["--type", type]),
    ...(into === undefined ? [] : ["--into", into]),
    "--",
    name,
  ];
  const { runModuleNew } = await import("../module-new.ts");
  const exitCode = runModuleNew(args, {
    // What to do next is for people.
    stdout: (text) => out.isJson || io.stdout.write(text),
    stderr: (text) => io.stderr.write(text),
  }) as ExitCode;
  if (out.isJson && exitCode === 0)
    await out.json({ name, type: type ?? "adapter", folder: resolve(into ?? ".", name) });
  return exitCode;
}
