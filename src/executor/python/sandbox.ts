/**
 * Where Python programs run: what this machine offers for it, and the command that starts the fork server.
 *
 * The command is bubblewrap: everything unshared (no network, a process table of its own), no capabilities, no environment,
 * and an empty root that holds only Python, its library, the shared libraries and our guest files, all read-only. One
 * small folder is writable, for the socket of the fork server; programs cannot write there either (guest/seccomp.py).
 */
import { execFile } from "node:child_process";
import { existsSync, lstatSync, readlinkSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const python = "/usr/bin/python3";
export const bubblewrap = "/usr/bin/bwrap";
/** The oldest whose library and syntax tree the guest files know. */
const pythonMinorMin = 9;
/** Where guest/zygote.py listens, inside. */
export const socketPath = "/run/troupe";

export interface PythonFacts {
  readonly minor: number;
  /** The standard library; on some systems its compiled part is elsewhere. */
  readonly libraryFolders: readonly string[];
  /** Such as x86_64-linux-gnu; empty where the system has no such folders. */
  readonly multiarch: string;
}

const question = `
import json, sys, sysconfig
paths = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
print(json.dumps([list(sys.version_info[:2]), sorted(set(paths)), sysconfig.get_config_var("MULTIARCH") or ""]))
`;

const factsMs = 10_000;

/** Rejects when Python does not run or is not what is expected. */
export async function pythonFacts(): Promise<PythonFacts> {
  const { stdout } = await promisify(execFile)(python, ["-I", "-S", "-c", question], {
    env: {},
    cwd: "/",
    timeout: factsMs,
  });
  const [[major, minor], libraryFolders, multiarch] = JSON.parse(stdout) as [[number, number], string[], string];
  if (major !== 3 || minor < pythonMinorMin) {
    throw new Error(`it is version ${major}.${minor}, and 3.${pythonMinorMin} or newer is needed`);
  }
  return { minor, libraryFolders, multiarch };
}

const guestFolder = dirname(fileURLToPath(new URL("./guest/zygote.py", import.meta.url)));
const socketFolderBytes = 65_536;

/** Arguments of bubblewrap. Descriptors 3 and 4 carry the control frames; it tells the process number on 5. */
export function sandboxArguments(facts: PythonFacts): readonly string[] {
  const libraries = ["/lib64", "/usr/lib64", ...multiarchFolders(facts.multiarch)];
  return [
    ...["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"],
    ...["--uid", "65534", "--gid", "65534", "--hostname", "troupe", "--cap-drop", "ALL"],
    ...["--die-with-parent", "--new-session", "--as-pid-1", "--clearenv", "--info-fd", "5"],
    ...linksAtRoot(),
    ...[...facts.libraryFolders, ...libraries, "/usr/share/zoneinfo"].filter(isFolder).flatMap(readOnly),
    ...readOnly(python),
    ...["--ro-bind", guestFolder, "/troupe"],
    ...["--size", String(socketFolderBytes), "--tmpfs", dirname(socketPath), "--remount-ro", "/", "--chdir", "/"],
    // -B: nothing is writable, so no compiled files either.
    ...["--", python, "-I", "-S", "-B", "/troupe/zygote.py"],
  ];
}

function multiarchFolders(multiarch: string): readonly string[] {
  return multiarch === "" ? [] : [`/lib/${multiarch}`, `/usr/lib/${multiarch}`];
}

/** Most systems have /lib as a link to usr/lib. */
function linksAtRoot(): readonly string[] {
  return ["/lib", "/lib64"]
    .filter((path) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true)
    .flatMap((path) => ["--symlink", readlinkSync(path), path]);
}

/** What is reached through a link at the root is bound at its real place. */
function isFolder(path: string): boolean {
  const root = `/${path.split("/")[1]}`;
  return existsSync(path) && lstatSync(root).isSymbolicLink() === false;
}

function readOnly(path: string): readonly string[] {
  return ["--ro-bind", path, path];
}
