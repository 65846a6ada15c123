/** A host that starts Python programs and is then killed by its test: one computes, one waits. */
import { openPythonExecutor } from "../../src/executor/python/python-executor.ts";
import { silentLog, systemClock } from "./program.ts";

const executor = await openPythonExecutor({ memoryMbMax: 64, concurrency: 4, clock: systemClock, log: silentLog });
let started = 0;
for (const code of ["while True: pass", "import time\ntime.sleep(1000000)"]) {
  executor.start(
    { runId: code, code, env: {}, limits: { memoryMb: 64, outputBytes: 1000, cpuMs: null }, seed: 1 },
    {
      started() {
        started += 1;
        if (started === 2) process.stdout.write("running\n");
      },
      stdout: () => undefined,
      stderr: () => undefined,
      toolCall: () => undefined,
      ended: () => undefined,
    },
  );
}
