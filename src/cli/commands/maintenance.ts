/** `troupe backup`, `restore`, `verify`, `drain` and `certs`: what operators do to a whole server and its files. */
import type { CertsOptions } from "../../certs/run-certs.ts";
import type { BackupResponse } from "../../gen/troupe/v1/maintenance_service_pb.ts";
import { bytesText, countText } from "../amounts.ts";
import type { CommandGroup } from "../command-action.ts";
import { CliError, type ExitCode, exitCodes } from "../exit-codes.ts";
import { readCount } from "../input.ts";
import type { Item } from "../item.ts";
import type { Run } from "../run.ts";
import { verify } from "../verification.ts";

export const maintenanceCommands: CommandGroup = (program, action) => {
  program
    .command("backup <file>")
    .description("back up a running server into a file; the secrets key is not in it, keep that beside it")
    .action(action(backup));
  program
    .command("restore <file>")
    .description("make a backup the data folder of a server that does not run yet")
    .option("--data-dir <folder>", "the folder, empty or not there yet (SERVICE_DATA_DIR; default: ./data)")
    .action(action(restore));
  program
    .command("verify")
    .description("prove that everything a running server keeps is sound")
    .option("--data-dir <folder>", "the data folder of a server that does not run, instead")
    .option("--backup <file>", "a backup, instead")
    .action(action(verify));
  program
    .command("drain")
    .description("end the server as SIGTERM does: it finishes what was admitted")
    .action(action(drain));
  program
    .command("certs")
    .description("make certificates for development: an authority, a server's, and clients'")
    .option("--into <folder>", "where to put them (default: ./certs)")
    .option("--host <name...>", "names and addresses of the server besides this machine's own")
    .option("--client <name...>", "a certificate for each, named as the keys in SERVICE_API_KEYS")
    .option("--days <count>", "how long server's and clients' are valid")
    .option("--force", "replace what is there")
    .action(action(certs));
};

async function backup(run: Run, file: string): Promise<void> {
  if (file === "-") {
    throw new CliError(
      exitCodes.usage,
      "A backup is proved whole before it has its name, so it goes into a file and not to stdout; ./- is a file",
    );
  }
  const { client } = await run.session();
  const { writeBackup } = await import("../../maintenance/backup.ts");
  const summary = await run.during("Backing up", (progress) =>
    writeBackup(chunksOf(run.stream((streaming) => client.maintenance.backup({}, streaming))), file, {
      onProgress: (bytes) => progress.detail(bytesText(bytes)),
      signal: run.signal,
    }),
  );
  const { header, counts, sha256 } = summary;
  await run.out.outcome(
    { file, sha256, ...header, ...counts },
    `"${file}" has everything acknowledged before ${header.takenAt}: ${counts.entries} entries, ${countText(counts.packages, "package", "packages")}, ${bytesText(counts.bytes)}\nsha256 ${sha256}`,
  );
  if (run.out.isJson) return;
  for (const { id, reason } of header.packagesLeftOut) await run.out.note(`Module "${id}" is not in it: ${reason}`);
}

/** The server says with its trailer that it was everything. */
async function* chunksOf(
  messages: AsyncIterable<Pick<BackupResponse, "chunk" | "trailer">>,
): AsyncGenerator<Uint8Array> {
  let isWhole = false;
  for await (const { chunk, trailer } of messages) {
    if (chunk !== undefined) yield chunk;
    isWhole ||= trailer !== undefined;
  }
  if (!isWhole)
    throw new CliError(exitCodes.unreachable, "The server ended before the backup was whole, and no file was made");
}

async function restore(run: Run, file: string): Promise<void> {
  const { dataDir } = run.options as { dataDir?: string };
  const folder = dataDir ?? (run.io.environment.SERVICE_DATA_DIR || "./data");
  const maintenance = await import("../../maintenance/restore.ts");
  const { header, counts } = await run.during("Restoring", (progress) =>
    maintenance.restore({
      file,
      dataDir: folder,
      onProgress: ({ entries, of }) => progress.detail(`${entries} of ${of} entries`),
      signal: run.signal,
    }),
  );
  const keys = header.secretsKeyIds;
  await run.out.outcome(
    { dataDir: folder, ...header, ...counts },
    `"${folder}" is as it was at ${header.takenAt}: ${counts.entries} entries, ${countText(counts.packages, "package", "packages")}`,
  );
  if (keys.length > 0 && !run.out.isJson) {
    await run.out.note(
      `Its secrets need the ${keys.length === 1 ? "key" : "keys"} ${keys.join(", ")}: SERVICE_SECRETS_KEY, or secrets.key in the folder`,
    );
  }
}

async function drain(run: Run): Promise<void> {
  const { client, plain } = await run.session();
  let last: Item = {};
  await run.during("Draining", async (progress) => {
    for await (const message of run.stream((streaming) => client.maintenance.drain({}, streaming))) {
      last = plain(message);
      if (run.out.isJson) await run.out.jsonLine(last);
      progress.detail(
        `${countText(last.running as number, "program runs", "programs run")}, ${Math.ceil((last.leftMs as number) / 1_000)} s left`,
      );
    }
  });
  if (last.state === "draining")
    throw new CliError(exitCodes.unreachable, "The server went away before its drain was over");
  if (run.out.isJson) return;
  const queued =
    last.queued === 0
      ? ""
      : `; ${countText(last.queued as number, "program waits", "programs wait")} for the next start`;
  await run.out.line(
    last.state === "cut"
      ? `The server ends; time was over, and what still ran is canceled${queued}`
      : `The server ends; nothing was cut${queued}`,
  );
}

async function certs(run: Run): Promise<ExitCode> {
  const { runCerts } = await import("../../certs/run-certs.ts");
  const options = run.options as CertsOptions;
  if (options.days !== undefined) readCount(options.days, "Option --days");
  const { exitCode, text, certificates } = await runCerts(options);
  if (exitCode !== exitCodes.done) throw new CliError(exitCode, text);
  await (run.out.isJson ? run.out.json(certificates) : run.out.line(text));
  return exitCode;
}
