/**
 * When the server runs from its TypeScript sources, every module process would strip types from the runner's files again: half a second
 * of processor time, measured, where a built runner starts in 0.1 s. So they are stripped once and handed over in the first frame; a
 * small hook in the process gives the text to its module loader. A built server has JavaScript files, and none of this.
 */
import { readdirSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { basename, extname, join } from "node:path";
import { encodeFrame } from "./runner/frames.ts";

export interface RunnerSources {
  /** Flag of node. */
  readonly flag: string;
  /** To be written before anything else. */
  readonly frame: Buffer;
}

/** Undefined when the runner is JavaScript already. @param entry the runner's main file. */
export function runnerSources(entry: string): RunnerSources | undefined {
  if (extname(entry) !== ".ts") return undefined;
  const folder = entry.slice(0, -basename(entry).length);
  const names = readdirSync(folder).filter((name) => name.endsWith(".ts"));
  const texts = Object.fromEntries(names.map((name) => [name, stripQuietly(readFileSync(join(folder, name), "utf8"))]));
  return { flag: `--import=data:text/javascript,${encodeURIComponent(hook)}`, frame: encodeFrame(texts) };
}

/** The function announces itself as experimental; operators should not have to read that at every start. */
function stripQuietly(source: string): string {
  const { emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    return stripTypeScriptTypes(source);
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** Reads one frame from the socket, exactly, and leaves the rest to the runner. The folder of the runner ends in `/runner/` everywhere. */
const hook = `
import { readSync } from "node:fs";
import { registerHooks } from "node:module";
const read = (bytes) => {
  const buffer = Buffer.alloc(bytes);
  for (let at = 0; at < bytes; ) {
    const count = readSync(3, buffer, at, bytes - at, null);
    if (count === 0) process.exit(0);
    at += count;
  }
  return buffer;
};
const texts = JSON.parse(read(read(4).readUInt32BE(0)).toString());
const folder = new URL(".", "file://" + process.argv[1].split("/").map(encodeURIComponent).join("/")).href;
registerHooks({
  load(url, context, next) {
    const text = url.startsWith(folder) ? texts[url.slice(folder.length)] : undefined;
    return text === undefined ? next(url, context) : { format: "module", source: text, shortCircuit: true };
  },
});
`;
