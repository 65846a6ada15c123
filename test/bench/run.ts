/**
 * All benchmarks, one after the other: `npm run bench`, or `node test/bench/run.ts NAME…` for some. What they print goes to the
 * terminal; their JSON lines go, with machine and date, to results-local.json, which git ignores. A missed target is no failure;
 * a benchmark that breaks is.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { machine } from "./measure.ts";

const suffix = ".bench.ts";
const here = fileURLToPath(new URL(".", import.meta.url));
const asked = process.argv.slice(2);
const names = readdirSync(here)
  .filter((file) => file.endsWith(suffix))
  .map((file) => file.slice(0, -suffix.length))
  .filter((name) => asked.length === 0 || asked.includes(name));

const unknown = asked.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  console.error(`There is no benchmark called "${unknown.join('", "')}"`);
  process.exit(64);
}

const results: unknown[] = [];
const broken: string[] = [];
for (const name of names) {
  console.log(`\n=== ${name}`);
  const child = spawn(process.execPath, [`${here}${name}${suffix}`], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith('{"bench":')) results.push(JSON.parse(line));
    else console.log(line);
  }
  const [status] = await ended;
  if (status !== 0) broken.push(name);
}
const file = `${here}results-local.json`;
writeFileSync(file, `${JSON.stringify({ date: new Date().toISOString(), machine: machine(), results }, null, 2)}\n`);
console.log(`\nWritten to ${file}`);
if (broken.length > 0) {
  console.error(`These benchmarks broke: ${broken.join(", ")}`);
  process.exitCode = 1;
}
