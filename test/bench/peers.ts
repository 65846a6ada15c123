/**
 * Other ways to run a program somebody sent, as the peers of processes.bench.ts: each takes the body of an async function and
 * gives what it returned as JSON. They have no tools, no deadline, no memory fence beside their own, and keep no record: less
 * than the product does, never more.
 */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import variantModule from "@jitl/quickjs-wasmfile-release-sync";
import { newQuickJSWASMModuleFromVariant, type QuickJSSyncVariant } from "quickjs-emscripten-core";
import { openPortableExecutor } from "../../src/executor/portable/portable-executor.ts";
import type { Log } from "../../src/ports/log.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";

export type RunProgram = (code: string) => Promise<string>;

export const peers = {
  executor: openExecutor,
  "isolated-vm": () => openChildren("isolated-vm"),
  "node-permission": async () => runInNode,
  quickjs: openQuickjs,
  vm: () => openChildren("vm"),
} satisfies Record<string, () => Promise<RunProgram>>;

export type Peer = keyof typeof peers;

/** The product's own executor, without queue, store and faces. */
async function openExecutor(): Promise<RunProgram> {
  const complain = (_event: string, message: string): void => console.error(message);
  const log: Log = { debug() {}, info() {}, warn: complain, error: complain };
  const executor = await openPortableExecutor({ memoryMbMax: 128, concurrency: 16, clock: systemClock, log });
  const limits = { memoryMb: 128, outputBytes: 1_048_576, cpuMs: null };
  let runs = 0;
  return (code) =>
    new Promise((resolve, reject) => {
      runs += 1;
      executor.start(
        { runId: String(runs), code, env: {}, limits, seed: runs },
        {
          started() {},
          stdout() {},
          stderr() {},
          toolCall() {},
          ended: (end) => (end.kind === "success" ? resolve(end.output) : reject(new Error(JSON.stringify(end)))),
        },
      );
    });
}

interface Pending {
  resolve(output: string): void;
  reject(error: Error): void;
}

/** Two long-lived children, as many as the machine of the reference figures has cores; peer-child.ts says what they do. */
async function openChildren(kind: "isolated-vm" | "vm"): Promise<RunProgram> {
  const pending = new Map<number, Pending>();
  const children = Array.from({ length: 2 }, () => {
    // isolated-vm asks for the flag from Node 20 on.
    const child = fork(fileURLToPath(new URL("./peer-child.ts", import.meta.url)), [kind], {
      execArgv: ["--no-node-snapshot"],
    });
    child.on("message", ({ id, output, error }: { id: number; output?: string; error?: string }) => {
      const waiting = pending.get(id);
      pending.delete(id);
      if (output === undefined) waiting?.reject(new Error(error));
      else waiting?.resolve(output);
    });
    return child;
  });
  await Promise.all(children.map(ready));
  let runs = 0;
  return (code) =>
    new Promise((resolve, reject) => {
      runs += 1;
      pending.set(runs, { resolve, reject });
      children[runs % children.length]!.send({ id: runs, code });
    });
}

function ready(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
}

/** A process for each run, with nothing allowed. */
function runInNode(code: string): Promise<string> {
  const program = `(async () => {\n${code}\n})().then((value) => process.stdout.write(JSON.stringify(value)))`;
  const child = spawn(process.execPath, ["--permission", "-e", program], {
    env: {},
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (status) => (status === 0 ? resolve(output) : reject(new Error(`Node ended with ${status}`))));
  });
}

/** A fresh runtime per run inside the serving process: no boundary but the engine's own. */
async function openQuickjs(): Promise<RunProgram> {
  // CommonJS and ESM builds of the variant differ in where the value sits.
  const variant = (variantModule as unknown as { default?: QuickJSSyncVariant }).default ?? variantModule;
  const engine = await newQuickJSWASMModuleFromVariant(variant as QuickJSSyncVariant);
  return async (code) => {
    const runtime = engine.newRuntime();
    runtime.setMemoryLimit(128 * 1_048_576);
    const context = runtime.newContext();
    try {
      const promise = context.unwrapResult(context.evalCode(`(async () => {\n${code}\n})().then(JSON.stringify)`));
      const settled = context.resolvePromise(promise);
      runtime.executePendingJobs();
      promise.dispose();
      const value = context.unwrapResult(await settled);
      const output = context.getString(value);
      value.dispose();
      return output;
    } finally {
      context.dispose();
      runtime.dispose();
    }
  };
}
