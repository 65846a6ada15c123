/** Memory of a process and of what it has started. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { residentKb, residentTreeKb } from "../../src/executor/portable/memory-size.ts";

it.runIf(process.platform === "linux")(
  "of a process that only waits for another is that of both; of none it is not known",
  async () => {
    const program = "console.log(process.pid); setTimeout(() => undefined, 60_000)";
    const shell = spawn("sh", ["-c", '"$0" -e "$1" & wait', process.execPath, program], { detached: true });
    try {
      const [line] = (await once(createInterface({ input: shell.stdout }), "line")) as [string];
      const pid = shell.pid ?? expect.unreachable();
      const [own, inner, both] = await Promise.all([residentKb(pid), residentKb(Number(line)), residentTreeKb(pid)]);
      expect(own).toBeLessThan(20_000);
      expect(inner).toBeGreaterThan(20_000);
      expect(both).toBeGreaterThan(20_000);
    } finally {
      process.kill(-(shell.pid ?? 0), "SIGKILL");
      await once(shell, "close");
    }
    expect(await residentTreeKb(shell.pid ?? 0)).toBeUndefined();
  },
);
