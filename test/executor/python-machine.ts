/** Python tests run where Python programs can: elsewhere their title says why not. */
import { afterAll, beforeAll, describe } from "vitest";
import { pythonUnavailable } from "../../src/executor/python/availability.ts";
import { openPythonExecutor } from "../../src/executor/python/python-executor.ts";
import type { Executor } from "../../src/ports/executor.ts";
import { silentLog, systemClock } from "./program.ts";

const reason = await pythonUnavailable();

export function openPython(concurrency = 10): Promise<Executor> {
  return openPythonExecutor({ memoryMbMax: 128, concurrency, clock: systemClock, log: silentLog });
}

export function describeWherePython(name: string, tests: () => void): void {
  const title = reason === null ? name : `${name} (not run here: ${reason})`;
  describe.runIf(reason === null)(title, tests);
}

/** `tests` are given an executor, opened once for them. */
export function describePython(name: string, tests: (current: () => Executor) => void): void {
  describeWherePython(name, () => {
    let executor: Executor;
    beforeAll(async () => {
      executor = await openPython();
    });
    afterAll(() => executor.close());
    tests(() => executor);
  });
}
