/**
 * How a module process is kept from everything but its own folder and its socket to the host. The layers, the strongest first:
 *
 * 1. `bubblewrap`: namespaces of its own for users, processes, network, IPC and host name; a read-only root that holds the node binary, its
 *    libraries, the runner and the module's folder; no /proc, no /dev, no environment. Inside it Node's permission model as well, which
 *    also refuses child processes, threads and native addons.
 * 2. `permission`: Node's permission model alone: files outside the module's folder, child processes, threads and addons are refused.
 *    It has no say about the network, so the runner takes the ways to it out of reach (`runner/restrict.ts`), and where `unshare`
 *    works the process has no network to begin with. What remains without `unshare`: code that breaks out of those restrictions in
 *    its own process can open connections with the server's rights. It is meant for faulty modules, not for hostile ones.
 * 3. `none`: only when the operator asked for it.
 *
 * A layer counts only after a real start: a machine may have the program and forbid what it needs.
 */
import { execFile } from "node:child_process";
import { basename, dirname, extname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export interface StartPlan {
  readonly command: string;
  readonly arguments: readonly string[];
  /** The module's main file as the process sees it. */
  readonly main: string;
}

export interface Isolation {
  readonly name: string;
  /** @param folder without links. @param main absolute path inside it. */
  plan(folder: string, main: string, flags: readonly string[]): StartPlan;
}

export interface IsolationLayer {
  readonly name: string;
  /** The layer, proved by a start; or a sentence why this machine has it not. */
  open(): Promise<Isolation | string>;
}

export const runner = fileURLToPath(new URL(`./runner/main${extname(import.meta.url)}`, import.meta.url));
const runnerFolder = dirname(runner);
const probeMs = 15_000;

export function defaultLayers(): readonly IsolationLayer[] {
  return [bubblewrapLayer(), permissionLayer()];
}

export function bubblewrapLayer(command = "bwrap"): IsolationLayer {
  return {
    name: "bubblewrap",
    async open() {
      const outside = bubblewrapArguments();
      const isolation: Isolation = {
        name: "bubblewrap",
        plan(folder, main, flags) {
          const inside = join("/module", relative(folder, main));
          return {
            command,
            arguments: [
              ...outside,
              ...bindReadOnly(runnerFolder, "/runner"),
              ...bindReadOnly(folder, "/module"),
              ...["--remount-ro", "/", "--chdir", "/module", "/node", ...flags],
              ...permissionFlags("/runner", "/module"),
              ...[join("/runner", basename(runner)), "restricted"],
            ],
            main: inside,
          };
        },
      };
      const fault = await startFault(command, [...outside, "/node", ...permissionFlags("/"), "--eval", "0"]);
      return fault === undefined ? isolation : `bubblewrap does not work here (${fault})`;
    },
  };
}

export function permissionLayer(unshare = "unshare"): IsolationLayer {
  return {
    name: "permission",
    async open() {
      const { execPath } = process;
      const fault = await startFault(execPath, [...permissionFlags("/nonexistent"), "--eval", "0"]);
      if (fault !== undefined) return `Node's permission model does not work here (${fault})`;
      const noNetwork = ["--user", "--net"];
      const hasUnshare = (await startFault(unshare, [...noNetwork, execPath, "--eval", "0"])) === undefined;
      return {
        name: hasUnshare ? "permission, no network" : "permission",
        plan: (folder, main, flags) => {
          const node = [...flags, ...permissionFlags(runnerFolder, folder), runner, "restricted"];
          return hasUnshare
            ? { command: unshare, arguments: [...noNetwork, execPath, ...node], main }
            : { command: execPath, arguments: node, main };
        },
      };
    },
  };
}

/** Nothing is kept from the module but the environment variables. */
export const noIsolation: Isolation = {
  name: "none",
  plan: (_folder, main, flags) => ({ command: process.execPath, arguments: [...flags, runner], main }),
};

/** The first layer that works; else the reasons, one sentence for the operator. */
export async function chooseIsolation(
  layers: readonly IsolationLayer[],
  unsandboxed: boolean,
): Promise<{ readonly isolation: Isolation } | { readonly unavailable: string }> {
  const reasons: string[] = [];
  for (const layer of layers) {
    const opened = await layer.open();
    if (typeof opened !== "string") return { isolation: opened };
    reasons.push(opened);
  }
  if (unsandboxed) return { isolation: noIsolation };
  return { unavailable: `Third-party modules cannot be kept apart on this machine: ${reasons.join("; ")}` };
}

function permissionFlags(...readable: readonly string[]): readonly string[] {
  return ["--permission", ...readable.map((path) => `--allow-fs-read=${path}`)];
}

function bubblewrapArguments(): readonly string[] {
  return [
    ...["--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"],
    ...["--uid", "65534", "--gid", "65534", "--hostname", "module", "--cap-drop", "ALL"],
    ...["--die-with-parent", "--new-session", "--clearenv"],
    ...sharedLibraries().flatMap((path) => bindReadOnly(path, path)),
    ...bindReadOnly(process.execPath, "/node"),
  ];
}

function bindReadOnly(from: string, to: string): readonly string[] {
  return ["--ro-bind", from, to];
}

/** Of this very process, which runs the same binary; addons it has loaded are its own affair. */
function sharedLibraries(): readonly string[] {
  // Newer than the type definitions; without it the report resolves names of open connections.
  const report = process.report as NodeJS.ProcessReport & { excludeNetwork: boolean };
  const before = report.excludeNetwork;
  report.excludeNetwork = true;
  const { sharedObjects } = report.getReport() as unknown as { readonly sharedObjects: readonly string[] };
  report.excludeNetwork = before;
  return sharedObjects.filter((path) => path.startsWith("/") && path !== process.execPath && !path.endsWith(".node"));
}

function startFault(command: string, args: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile(
      command,
      args,
      { env: {}, cwd: "/", timeout: probeMs, killSignal: "SIGKILL" },
      (error, _output, errors) => {
        if (error === null) resolve(undefined);
        else if (error.code === "ENOENT") resolve(`"${command}" is not installed`);
        else resolve((errors.trim().split("\n").at(-1) || error.message).slice(0, 200));
      },
    );
  });
}
