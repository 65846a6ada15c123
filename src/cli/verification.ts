/** `troupe verify`: proves a running server, a data folder or a backup, and tells what is wrong with it. */
import { countText } from "./amounts.ts";
import { CliError, type ExitCode, exitCodes } from "./exit-codes.ts";
import type { Item } from "./item.ts";
import type { Run } from "./run.ts";

/** One of the fields is set; counts are a message of the control plane or the same offline. */
interface Message {
  readonly progress?: unknown;
  readonly finding?: unknown;
  readonly summary?: unknown;
}

export async function verify(run: Run): Promise<ExitCode> {
  const { dataDir, backup } = run.options as { dataDir?: string; backup?: string };
  if (dataDir !== undefined && backup !== undefined) {
    throw new CliError(exitCodes.usage, "One thing is verified at a time: --data-dir and --backup exclude each other");
  }
  if (backup !== undefined) return verifyBackup(run, backup);
  const messages = dataDir === undefined ? ofServer(run) : await ofFolder(run, dataDir);
  const findings: Item[] = [];
  const summary = await run.during("Verifying", async (progress) => {
    for await (const message of messages) {
      const counts = (message.progress ?? message.summary) as Item | undefined;
      if (counts !== undefined) progress.detail(`${counts.records} records`);
      if (message.summary !== undefined) return counts as Item;
      if (message.finding === undefined) continue;
      const finding = message.finding as Item;
      if (run.out.isJson) findings.push(finding);
      else await run.out.text(`${finding.subject} ${finding.address}: ${finding.problem}\n`);
    }
    throw new CliError(exitCodes.unreachable, "The server ended before everything was looked at");
  });
  return conclude(run, summary, findings);
}

async function conclude(run: Run, summary: Item, findings: readonly Item[]): Promise<ExitCode> {
  const { tables, records, blobs, secrets, packages } = summary;
  const count = summary.findings as number;
  const looked = `${tables} tables, ${records} records, ${blobs} large values, ${secrets} secrets, ${packages} packages`;
  await run.out.outcome(
    { ...summary, findings },
    count === 0 ? `Sound: ${looked}` : `Not sound: ${countText(count, "finding", "findings")} in ${looked}`,
  );
  return count === 0 ? exitCodes.done : exitCodes.refused;
}

async function* ofServer(run: Run): AsyncGenerator<Message> {
  const { client, plain } = await run.session();
  const messages = run.stream((streaming) => client.maintenance.verify({}, streaming));
  for await (const message of messages) yield plain(message);
}

async function ofFolder(run: Run, folder: string): Promise<AsyncIterable<Message>> {
  const { verifyFolder } = await import("../maintenance/verify-folder.ts");
  return verifyFolder(folder, { signal: run.signal });
}

async function verifyBackup(run: Run, file: string): Promise<ExitCode> {
  const { proveBackup } = await import("../maintenance/backup-file.ts");
  const { header, counts, sha256 } = await run.during("Verifying", () => proveBackup(file, file, run.signal));
  await run.out.outcome(
    { file, sha256, ...header, ...counts },
    `"${file}" is a whole backup of ${header.takenAt}: ${counts.entries} entries, ${countText(counts.packages, "package", "packages")}\nsha256 ${sha256}`,
  );
  return exitCodes.done;
}
