/**
 * Loaded before a command (`node --import`): ends its process by SIGKILL right before its nth change below a folder. Each file that is
 * made, opened, removed or renamed there counts. KILL_BELOW the folder; KILL_AT the n, 0 never; KILL_COUNT a file that is told how many
 * there were.
 */
import fs, { writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const { KILL_BELOW = "", KILL_AT = "0", KILL_COUNT } = process.env;
let changes = 0;

for (const name of ["mkdir", "open", "writeFile", "chmod", "rm", "rmdir", "rename"] as const) {
  const original = fs.promises[name] as (...given: unknown[]) => Promise<unknown>;
  const counted = (...given: unknown[]): Promise<unknown> => {
    if (String(given[0]).startsWith(KILL_BELOW)) {
      changes += 1;
      if (changes === Number(KILL_AT)) process.kill(process.pid, "SIGKILL");
    }
    return original(...given);
  };
  Object.assign(fs.promises, { [name]: counted });
}
syncBuiltinESMExports();

process.on("exit", () => {
  if (KILL_COUNT !== undefined) writeFileSync(KILL_COUNT, String(changes));
});
