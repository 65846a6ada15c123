/** A worker that misbehaves on request; run as a child by supervised-worker.test.ts. */
import { writeFileSync } from "node:fs";
import { serveWorker } from "../../src/adapters/worker/serve-worker.ts";
import { Failure } from "../../src/errors/failure.ts";

let calls = 0;
const kept: unknown[] = [];

serveWorker({
  echo: (input: unknown) => input,
  count: () => {
    calls += 1;
    return calls;
  },
  environment: () => Object.keys(process.env),
  refuse: (input: string) => {
    throw new Failure("not_found", input, { fields: [{ field: "a.b", description: "is absent" }] });
  },
  break: () => {
    throw new TypeError("a fault of ours");
  },
  overflow: () => {
    const deeper = (depth: number): number => deeper(depth + 1) + 1;
    return deeper(0);
  },
  unanswerable: () => () => "functions cannot be sent",
  hang: (path: string | null) => {
    if (path !== null) writeFileSync(path, String(process.pid));
    for (;;) calls += 1;
  },
  wait: (ms: number) => new Promise((resolve) => setTimeout(resolve, ms)),
  fillMemory: () => {
    for (;;) kept.push({ text: "x".repeat(64), number: kept.length });
  },
  exit: () => process.exit(3),
  /** Dies the first time only: the file remembers. */
  exitOnce: (path: string) => {
    try {
      writeFileSync(path, "", { flag: "wx" });
    } catch {
      return "second child";
    }
    return process.exit(4);
  },
});
