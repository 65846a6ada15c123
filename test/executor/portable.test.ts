/** The portable executor under the contract, and what is its own: supervision of child processes. */
import { openPortableExecutor } from "../../src/executor/portable/portable-executor.ts";
import { executorContract } from "./contract.ts";
import { silentLog, systemClock } from "./program.ts";

executorContract("portable", (options) => openPortableExecutor({ ...options, clock: systemClock, log: silentLog }));
