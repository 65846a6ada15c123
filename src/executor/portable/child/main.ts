/**
 * The child process: takes one run at a time from descriptor 3, answers on descriptor 4, and ends when the host closes the
 * former. Started with an empty environment; nothing here opens a file, a socket or a process once it is ready.
 */
import { Socket } from "node:net";
import { FrameReader } from "../frames.ts";
import type { HostMessage } from "../messages.ts";
import { type Instance, loadEngine } from "./engine.ts";
import { Outbox } from "./outbox.ts";
import { Run } from "./run.ts";
import { type Stage, setStage } from "./stage.ts";
import { loadTranspiler, transpile } from "./transpile.ts";

const megabyte = 1024 * 1024;

/** A child that is measured loads everything a run may need first. */
if (process.argv.includes("measure")) {
  loadTranspiler();
  transpile("const warm: number = 1;");
}

const engine = loadEngine();
const outbox = new Outbox(4);
// The host is believed; its largest frame is a tool answer.
const frames = new FrameReader(Number.MAX_SAFE_INTEGER);
let instance: Instance | undefined;
let stage: Stage | undefined;
let run: Run | undefined;

const input = new Socket({ fd: 3, readable: true, writable: false });
input.on("data", (chunk) => {
  frames.push(chunk);
  for (let message = frames.next(); message !== undefined; message = frames.next()) take(message as HostMessage);
});
input.on("error", () => process.exit(0));
input.on("close", () => process.exit(0));

await prepare(true);

function take(message: HostMessage): void {
  switch (message.type) {
    case "run":
      run = new Run(stage as Stage, outbox, message, () => setImmediate(leave));
      run.begin();
      return;
    case "answer":
      run?.answer(message);
      return;
    case "stop":
      run?.stop();
  }
}

/** After a run: its stage goes, and the instance with it when the program made it grow or broke it. */
function leave(): void {
  const broken = run?.broken === true || !dispose(stage as Stage);
  run = undefined;
  stage = undefined;
  void prepare(broken || instance?.grew === true);
}

/** False when the engine finds its own structures damaged or leaking. */
function dispose(old: Stage): boolean {
  try {
    old.dispose();
    return true;
  } catch {
    return false;
  }
}

async function prepare(fresh: boolean): Promise<void> {
  if (fresh) {
    const first = instance === undefined;
    instance = await engine.newInstance();
    if (!first) globalThis.gc?.();
  }
  stage = setStage(instance as Instance);
  outbox.send({ type: "ready", usedMb: process.memoryUsage.rss() / megabyte });
}
