/** Whether Python programs can run on this machine, found out by starting the sandbox once; and if not, why, for operators. */
import { accessSync, constants } from "node:fs";
import { executorStartMs } from "../../limits.ts";
import { bubblewrap, type PythonFacts, python, pythonFacts } from "./sandbox.ts";
import { Zygote } from "./zygote.ts";

/** Null when they can; else a sentence without a full stop. Takes about 0.2 s. */
export async function pythonUnavailable(): Promise<string | null> {
  if (process.platform !== "linux") return `Python programs need Linux, and this machine runs "${process.platform}"`;
  if (process.arch !== "x64" && process.arch !== "arm64") {
    return `Python programs need an x64 or arm64 processor, and this machine has "${process.arch}"`;
  }
  if (!isExecutable(bubblewrap)) return `Python programs need bubblewrap, and there is no "${bubblewrap}"`;
  if (!isExecutable(python)) return `Python programs need Python 3, and there is no "${python}"`;
  let facts: PythonFacts;
  try {
    facts = await pythonFacts();
  } catch (error) {
    return `Python programs cannot run with "${python}": ${lastLine(error instanceof Error ? error.message : "")}`;
  }
  const reason = await trial(facts);
  return reason === null ? null : `Python programs cannot run because their sandbox does not start here: ${reason}`;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function trial(facts: PythonFacts): Promise<string | null> {
  return new Promise((resolve) => {
    let works = false;
    const zygote = new Zygote(facts, {
      ready() {
        works = true;
        zygote.dismiss();
      },
      exited: () => undefined,
      gone({ code, signal, lastWords, killedFor }) {
        clearTimeout(timer);
        const how = `it ended with ${signal ?? `code ${code}`}`;
        resolve(works ? null : (killedFor ?? (lastLine(lastWords) || how)));
      },
    });
    const timer = setTimeout(() => zygote.kill("it was not ready in time"), executorStartMs);
  });
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
