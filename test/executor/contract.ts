/**
 * What every executor promises, whatever engine is inside. Another executor runs the same suite with its own `open`; nothing
 * here may depend on wording that comes from an engine.
 */
import { afterAll, beforeAll, describe } from "vitest";
import type { Executor } from "../../src/ports/executor.ts";
import { abuseContract } from "./contract/abuse.ts";
import { endingsContract } from "./contract/endings.ts";
import { globalsContract } from "./contract/globals.ts";
import { isolationContract } from "./contract/isolation.ts";
import { outputsContract } from "./contract/outputs.ts";
import { toolsContract } from "./contract/tools.ts";

export interface ContractOptions {
  readonly memoryMbMax: number;
  readonly concurrency: number;
}

export type Open = (options: ContractOptions) => Promise<Executor>;

/** The executor of a section, opened once for it. */
export type Current = () => Executor;

const sections = { globalsContract, outputsContract, endingsContract, toolsContract, abuseContract, isolationContract };

export function executorContract(name: string, open: Open): void {
  describe(`${name} executor`, () => {
    let executor: Executor;
    beforeAll(async () => {
      executor = await open({ memoryMbMax: 128, concurrency: 10 });
    });
    afterAll(() => executor.close());
    for (const section of Object.values(sections)) section(() => executor, open);
  });
}
