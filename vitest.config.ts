import { resolve } from "node:path";
import { defineConfig } from "vitest/config";
import { SlowFirst } from "./test/slow-first.ts";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/corpus/**", "test/bench/**", "**/node_modules/**"],
    // Real child processes and LevelDB: forks keep native addons apart. A third file uses what two leave of two cores while they wait.
    setupFiles: ["test/property-seed.ts"],
    pool: "forks",
    maxWorkers: 3,
    // The suites start a server a few hundred times; a start that finds its code compiled takes a quarter less of the processor.
    env: { NODE_COMPILE_CACHE: resolve(import.meta.dirname, "node_modules/.cache/node-compile") },
    sequence: { sequencer: SlowFirst },
    testTimeout: 60_000,
    hookTimeout: 90_000,
  },
});
