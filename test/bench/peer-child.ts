/**
 * A child that lives through many programs. `isolated-vm`: an isolate of its own for each run. `vm`: a context of its own for
 * each run, which keeps nothing in or out (the ceiling of what a reused child can do, not a sandbox).
 */
import { createContext, Script } from "node:vm";
import type { RunProgram } from "./peers.ts";

const run = process.argv[2] === "vm" ? runInContext : await openIsolates();

process.on("message", ({ id, code }: { id: number; code: string }) => {
  run(`(async () => {\n${code}\n})().then(JSON.stringify)`).then(
    (output) => process.send?.({ id, output }),
    (error: unknown) => process.send?.({ id, error: String(error) }),
  );
});

async function runInContext(program: string): Promise<string> {
  return (await new Script(program).runInContext(createContext({}))) as string;
}

/** What is used of isolated-vm, whose types are there only once the peers are installed. */
interface IsolatedVm {
  Isolate: new (options: {
    memoryLimit: number;
  }) => {
    createContext(): Promise<unknown>;
    compileScript(code: string): Promise<{ run(context: unknown, options: { promise: true }): Promise<string> }>;
    dispose(): void;
  };
}

async function openIsolates(): Promise<RunProgram> {
  const name: string = "isolated-vm";
  const { default: ivm } = (await import(name)) as { default: IsolatedVm };
  return async (program) => {
    const isolate = new ivm.Isolate({ memoryLimit: 128 });
    try {
      const context = await isolate.createContext();
      const script = await isolate.compileScript(program);
      return await script.run(context, { promise: true });
    } finally {
      isolate.dispose();
    }
  };
}
