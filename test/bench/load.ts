/**
 * The load generator, in a process of its own that lives through the whole benchmark: one that starts for each round would
 * spend it compiling itself, slow every server to its own speed, and so flatter the slower one.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { cpuMs } from "./cpu-time.ts";
import type { Sample } from "./measure.ts";
import type { ServerProcess } from "./server-process.ts";

export interface LoadOrder {
  readonly url: string;
  /** Absent: GET. */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly connections: number;
  /** How many requests, over all connections. */
  readonly requests: number;
}

export interface LoadResult {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface Load {
  /** Rejects when an answer was not 2xx or a request failed: a fast error is no result. */
  run(order: LoadOrder): Promise<LoadResult>;
  stop(): Promise<void>;
}

export type LoadSample = Sample<"perSecond" | "p50Ms" | "p99Ms" | "cpuUs">;

/** With the processor time that each request took of the server. */
export async function measureLoad(load: Load, server: ServerProcess, order: LoadOrder): Promise<LoadSample> {
  const before = cpuMs(server.pid);
  const { requestsPerSecond, p50Ms, p99Ms } = await load.run(order);
  const cpuUs = ((cpuMs(server.pid) - before) * 1_000) / order.requests;
  return { perSecond: requestsPerSecond, p50Ms, p99Ms, cpuUs };
}

type Reply = LoadResult | { readonly error: string };

export function startLoad(): Load {
  const child = fork(fileURLToPath(import.meta.url), ["--generate"]);
  return {
    async run(order) {
      child.send(order);
      const [reply] = (await once(child, "message")) as [Reply];
      if ("error" in reply) throw new Error(reply.error);
      return reply;
    },
    async stop() {
      child.disconnect();
      await once(child, "exit");
    },
  };
}

/** What is used of autocannon, which has no types. */
interface Running extends Promise<{ latency: { p50: number; p99: number }; non2xx: number; errors: number }> {
  on(event: "response", listener: () => void): void;
}
type Autocannon = (
  options: Omit<LoadOrder, "requests"> & { readonly amount: number; readonly sampleInt: number },
) => Running;

/** It looks whether all is answered once in a sample: too coarse to be the end of the round. */
const sampleMs = 50;

async function generate({ requests, ...order }: LoadOrder): Promise<Reply> {
  const name: string = "autocannon";
  const { default: autocannon } = (await import(name)) as { default: Autocannon };
  const start = performance.now();
  let end = start;
  const running = autocannon({ ...order, amount: requests, sampleInt: sampleMs });
  running.on("response", () => {
    end = performance.now();
  });
  const { latency, non2xx, errors } = await running;
  if (non2xx + errors > 0)
    return { error: `"${order.url}" gave ${non2xx} answers that are not 2xx and ${errors} errors` };
  return { requestsPerSecond: (requests * 1_000) / (end - start), p50Ms: latency.p50, p99Ms: latency.p99 };
}

if (process.argv.includes("--generate")) {
  process.on("message", (order: LoadOrder) => {
    generate(order)
      .catch((error: unknown): Reply => ({ error: String(error) }))
      .then((reply) => process.send?.(reply));
  });
}
