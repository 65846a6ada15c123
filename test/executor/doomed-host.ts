/** A host that starts programs and is then killed by its test: one computes, one waits, and a child is idle. */
import { openPortableExecutor } from "../../src/executor/portable/portable-executor.ts";
import { silentLog, systemClock } from "./program.ts";

const executor = await openPortableExecutor({ memoryMbMax: 64, concurrency: 4, clock: systemClock, log: silentLog });
let started = 0;
for (const code of ["for (;;) {}", "await new Promise(r => setTimeout(r, 1e6))"]) {
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
