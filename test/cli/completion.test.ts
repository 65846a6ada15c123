/** What the scripts of `troupe completion` do in the shells they are for: each is asked what can follow a line, as its Tab key would ask. */
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Shell, shells } from "../../src/cli/completion-scripts.ts";
import { runInProcess } from "./run-in-process.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-completion-"));
const scriptOf = (shell: Shell): string => join(folder, `completion.${shell}`);
const run = promisify(execFile);

beforeAll(async () => {
  for (const shell of shells) {
    const { stdout } = await runInProcess(["completion", shell]);
    writeFileSync(scriptOf(shell), stdout);
  }
  writeFileSync(join(folder, ".zshrc"), zshrc);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Tab puts all that can follow into the line, and then the line goes to the file that is named for it. */
const zshrc = `
autoload -Uz compinit && compinit -u -D
source '${scriptOf("zsh")}'
insert_all() { compstate[insert]=all }
complete_all() { comppostfuncs=(insert_all); zle complete-word; print -r -- "$BUFFER" > "$LINE_FILE"; exit }
zle -N complete_all
bindkey '^I' complete_all
zle-line-init() { print READY }
zle -N zle-line-init
PROMPT=
`;

const asking: Readonly<Record<Shell, (line: string) => Promise<readonly string[]>>> = {
  async bash(line) {
    const words = line.split(" ");
    const given = `COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}`;
    const registered = "$(complete -p troupe | sed 's/.* -F //; s/ troupe$//')";
    const ask = `source '${scriptOf("bash")}'; ${given}; ${registered}; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return linesOf((await run("bash", ["--norc", "-c", ask])).stdout);
  },
  async zsh(line) {
    const file = join(folder, "line");
    const ask = `
zmodload zsh/zpty
zpty asked zsh -i
zpty -r -m asked shown '*READY*'
zpty -w -n asked $'${line}\\t'
while zpty -r asked shown; do :; done
[[ -s '${file}' ]] && cat '${file}'`;
    const env = { ...process.env, ZDOTDIR: folder, LINE_FILE: file, TERM: "vt100" };
    const { stdout } = await run("zsh", ["-f", "-c", ask], { env, timeout: 20_000 });
    rmSync(file);
    const before = line.slice(0, line.lastIndexOf(" ") + 1);
    expect(stdout.startsWith(before)).toBe(true);
    return stdout.slice(before.length).trim().split(/\s+/);
  },
  async fish(line) {
    const ask = `source '${scriptOf("fish")}'; complete -C '${line}'`;
    const { stdout } = await run("fish", ["--no-config", "-c", ask], { env: { ...process.env, HOME: folder } });
    return linesOf(stdout).map((found) => found.split("\t")[0] ?? "");
  },
};

describe.each(shells)("completion of %s", (shell) => {
  const isThere = isInstalled(shell);
  const whyNot = isThere ? "" : ` (left out: ${shell} is not installed)`;

  it.runIf(isThere).each([
    ["troupe pro", ["processes"]],
    ["troupe processes ", ["code", "delete", "get", "kill", "list", "logs", "output", "run", "start", "unload"]],
    ["troupe processes l", ["list", "logs"]],
    ["troupe --json services config s", ["schema", "set"]],
    ["troupe processes list --st", ["--state"]],
    ["troupe processes list --state r", ["running"]],
    ["troupe status --key", ["--key-file"]],
  ])(`finds what follows %j${whyNot}`, async (line, expected) => {
    expect([...(await asking[shell](line))].sort()).toEqual(expected);
  });

  it("names every command", async () => {
    const { stdout } = await runInProcess(["completion", shell]);
    const { stdout: ofFish } = await runInProcess(["completion", "fish"]);
    const paths = /contains -- \$next (.*); and/.exec(ofFish)?.[1]?.split(" '") ?? [];
    expect(paths.length).toBeGreaterThan(60);
    for (const path of paths) expect(stdout).toContain(`'${path.replaceAll("'", "")}'`);
  });
});

function linesOf(text: string): readonly string[] {
  return text.trim().split("\n");
}

function isInstalled(shell: string): boolean {
  try {
    execFileSync("sh", ["-c", `command -v ${shell}`]);
    return true;
  } catch {
    return false;
  }
}
