/** `troupe module new NAME`: writes a working module into a new folder, and never into one that is there. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { troupeFolder, troupeVersion } from "../sdk/troupe-package.ts";
import { type ModuleType, moduleFiles, moduleNameFault, type NewModule } from "./module-files.ts";

/** Where the command writes: what it did, and what it refused. */
export interface CommandOutput {
  stdout(text: string): void;
  stderr(text: string): void;
}

/** Follow sysexits. */
const exitCodes = { done: 0, usage: 64, cannotCreate: 73 } as const;

const usage = "Usage: troupe module new NAME [--type adapter|environment] [--into FOLDER]\n";

interface Wish extends NewModule {
  /** The folder to make. */
  readonly folder: string;
}

/** `args` are what follows `module new`. Answers with the exit code: 0, 64 for what was asked wrongly, 73 for a folder that cannot be made. */
export function runModuleNew(args: readonly string[], output: CommandOutput): number {
  const wish = readWish(args);
  if (typeof wish === "string") {
    output.stderr(`${wish}\n${usage}`);
    return exitCodes.usage;
  }
  const refused = writeModule(wish);
  if (refused !== undefined) {
    output.stderr(`${refused}\n`);
    return exitCodes.cannotCreate;
  }
  output.stdout(nextSteps(wish));
  return exitCodes.done;
}

/** What is wanted, or why it is refused. */
function readWish(args: readonly string[]): Wish | string {
  const read = readArguments(args);
  if (typeof read === "string") return read;
  const { name, type, into } = read;
  if (type !== "adapter" && type !== "environment") {
    return `Cannot make a module of type "${type}": there are "adapter" and "environment"`;
  }
  const fault = moduleNameFault(name);
  if (fault !== undefined) return `Cannot name a module "${name}": ${fault}`;
  return { name, type, troupeVersion: troupeVersion(), folder: resolve(into ?? ".", name) };
}

function readArguments(args: readonly string[]): { name: string; type: ModuleType | string; into?: string } | string {
  try {
    const options = { type: { type: "string" }, into: { type: "string" } } as const;
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    const [name, ...others] = positionals;
    if (name === undefined) return "The module needs a name";
    if (others.length > 0) return `There is one name too many: "${others[0]}"`;
    return { name, type: values.type ?? "adapter", ...(values.into === undefined ? {} : { into: values.into }) };
  } catch (error) {
    return error instanceof Error ? (error.message.split(". ")[0] ?? error.message) : String(error);
  }
}

/** Why nothing was written; undefined when it was. */
function writeModule(wish: Wish): string | undefined {
  try {
    mkdirSync(resolve(wish.folder, ".."), { recursive: true });
    // Not recursive: it fails when something is there, also when it has come there in this moment.
    mkdirSync(wish.folder);
    for (const { path, text } of moduleFiles(wish)) writeFileSync(join(wish.folder, path), text, { flag: "wx" });
    return undefined;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    return `Cannot write a module to "${wish.folder}": ${reasons[code] ?? code}`;
  }
}

const reasons: Readonly<Record<string, string>> = {
  EEXIST: "it exists already, and nothing is overwritten",
  EACCES: "this user may not write there",
  ENOTDIR: "a part of the path is a file",
  ENOSPC: "the disk is full",
  EROFS: "the file system is read-only",
  ENAMETOOLONG: "the path is too long",
};

function nextSteps({ folder, type, name }: Wish): string {
  // Without a build there is only the source to take types and test kit from.
  const condition = import.meta.filename.endsWith(".ts") ? "NODE_OPTIONS=--conditions=troupe-source " : "";
  return `Module "${name}" (${type}) is in ${folder}

  cd ${shellWord(relative(process.cwd(), folder))}
  mkdir -p node_modules && ln -s ${shellWord(troupeFolder)} node_modules/troupe
  ${condition}npm test
  npm run pack
`;
}

/** In quotes when a shell would read it otherwise. */
function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
