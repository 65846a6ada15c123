/** MCP servers as processes: never more than allowed, and none left behind, whoever ends first. */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mcpProcessesMax } from "../../src/limits.ts";
import { hurriedClock, type McpBench, openMcpBench, type Ready } from "./mcp-bench.ts";
import { command, stdioDocument, text } from "./mcp-stdio-bench.ts";

let bench: McpBench;
let folder: string;
/** What the honest server says of itself. */
let discovered: object;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "mcp-"));
  bench = await openMcpBench({ stdioCommands: [command] });
  discovered = JSON.parse(await bench.discover({ document: stdioDocument("honest") }));
});
afterAll(async () => {
  await bench.close();
  rmSync(folder, { recursive: true });
});

describe("no process is left behind", () => {
  const pidOf = async ({ call }: Ready) => JSON.parse(text(await call("place"))).pid as number;

  test("a closed service ends its process, and what that one started", async () => {
    const ready = await bench.ready(discovered);
    const pids = [await pidOf(ready), Number(text(await ready.call("child")))];
    expect(pids.map(isAlive)).toEqual([true, true]);
    ready.service.close?.();
    await expect.poll(() => pids.map(isAlive), { timeout: 10_000 }).toEqual([false, false]);
  });

  test("a process that dies takes what it started along", async () => {
    const ready = await bench.ready(discovered);
    const grandchild = Number(text(await ready.call("child")));
    await expect(ready.call("die")).rejects.toMatchObject({ kind: "upstream_failed" });
    await expect.poll(() => isAlive(grandchild), { timeout: 10_000 }).toBe(false);
    ready.service.close?.();
  });

  test("a closed adapter ends even one that does not want to leave", async () => {
    const own = await openMcpBench({ stdioCommands: [command] });
    const pid = await pidOf(await own.ready({ ...discovered, ...stdioDocument("stubborn") }));
    await own.close();
    expect(isAlive(pid)).toBe(false);
  });

  test("a killed server takes its processes along", async () => {
    const mark = join(folder, "pid");
    const host = join(folder, "host.ts");
    const module = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
    writeFileSync(
      host,
      `import { writeFileSync } from "node:fs";
       const { openMcpBench } = await import(${module("./mcp-bench.ts")});
       const bench = await openMcpBench({ stdioCommands: [${JSON.stringify(command)}] });
       const { call } = await bench.ready(${JSON.stringify({ ...discovered, ...stdioDocument("stubborn") })});
       const { content } = await call("place");
       writeFileSync(${JSON.stringify(mark)}, String(JSON.parse(content[0].text).pid));`,
    );
    const server = spawn(command, [host], { stdio: "ignore" });
    await expect.poll(() => existsSync(mark) && readFileSync(mark, "utf8") !== "", { timeout: 15_000 }).toBe(true);
    const pid = Number(readFileSync(mark, "utf8"));
    expect(isAlive(pid)).toBe(true);
    server.kill("SIGKILL");
    await expect.poll(() => isAlive(pid), { timeout: 10_000 }).toBe(false);
  });

  test("a closed adapter starts none, also for those who came before and still wait for a plan or a document", async () => {
    const own = await openMcpBench({ stdioCommands: [command] });
    const { plan } = await bench.adapter.define({ text: JSON.stringify(discovered) });
    const loaded = Promise.withResolvers<string>();
    const slow = { hash: "slow", load: () => loaded.promise };
    const hydrate = () => own.adapter.hydrate({ serviceId: "s", plan: slow, config: {}, secrets: {} });
    const discover = () => own.discover({ document: discovered });
    const waiting = [hydrate(), discover()];
    const outcomes = Promise.allSettled(waiting);
    await own.close();
    loaded.resolve(plan);
    const refused = { status: "rejected", reason: { kind: expect.stringMatching(/^(unavailable|cancelled)$/) } };
    expect(await outcomes).toMatchObject([refused, refused]);
    await expect(hydrate()).rejects.toMatchObject({ kind: "unavailable" });
    await expect(discover()).rejects.toMatchObject({ kind: "unavailable" });
  });

  test("more processes than allowed are refused", async () => {
    const hurried = await openMcpBench({ stdioCommands: ["sleep"], clock: hurriedClock });
    const outcomes = await Promise.allSettled(
      Array.from({ length: mcpProcessesMax + 1 }, () => hurried.ready({ command: "sleep", args: ["600"] })),
    );
    const kinds = outcomes.map((outcome) => (outcome.status === "rejected" ? outcome.reason.kind : "ready"));
    expect(kinds.filter((kind) => kind === "overloaded")).toHaveLength(1);
    expect(kinds.filter((kind) => kind === "timeout")).toHaveLength(mcpProcessesMax);
    await hurried.close();
  });
});

/** Alive and not a zombie that nobody has collected. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
