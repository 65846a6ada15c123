/** `troupe logs`: the server's log, the latest lines and what comes. A follower whose connection breaks goes on where it was. */
import { Option } from "commander";
import type { CommandGroup } from "../command-action.ts";
import { follow as followed } from "../follow.ts";
import { harmlessLine } from "../harmless.ts";
import { readCount, readDuration, readId } from "../input.ts";
import type { Item } from "../item.ts";
import { pagesOf } from "../pages.ts";
import type { Run, Streaming } from "../run.ts";
import { textOf } from "../table.ts";

const levels = ["debug", "info", "warn", "error"] as const;
const linesDefault = 100;
const linesBeforeFollowing = 10;

interface LogOptions {
  readonly follow?: boolean;
  readonly level?: (typeof levels)[number];
  readonly lines?: string;
  readonly since?: string;
  readonly event?: string;
  readonly query?: string;
  readonly process?: string;
  readonly service?: string;
  readonly module?: string;
  readonly registry?: string;
  readonly request?: string;
}

export const logCommands: CommandGroup = (program, action) => {
  program
    .command("logs")
    .description("the server's log, oldest line first")
    .option("-f, --follow", "and what comes, until Ctrl-C")
    .addOption(new Option("--level <level>", "lines of this level and above").choices(levels))
    .option("--lines <count>", "so many of the latest (default: 100; with --follow: 10)")
    .option("--since <duration>", "only of the last 10m, 2h, 1d")
    .option("--event <event>", "only of this event")
    .option("--query <words>", "only with these words")
    .option("--process <id>", "only about this process")
    .option("--service <id>", "only about this service")
    .option("--module <id>", "only about this module")
    .option("--registry <id>", "only about this registry")
    .option("--request <id>", "only of the request with this id")
    .action(action(logs));
};

async function logs(run: Run): Promise<void> {
  const { follow, lines } = run.options as LogOptions;
  const filter = await readFilter(run);
  const linesMax =
    lines === undefined ? (follow ? linesBeforeFollowing : linesDefault) : readCount(lines, "Option --lines");
  const records: Item[] = [];
  const page = (request: object) => run.ask(({ logs }, calling) => logs.listLogs({ ...filter, ...request }, calling));
  for await (const items of pagesOf(page, linesMax)) records.push(...items);
  records.reverse();
  if (run.out.isJson && follow !== true)
    return run.out.list(
      [],
      (async function* () {
        yield records;
      })(),
    );
  for (const record of records) await print(run, record);
  if (follow === true) await followLogs(run, filter, records.at(-1)?.seq as number | undefined);
}

async function followLogs(run: Run, filter: object, lastSeq: number | undefined): Promise<void> {
  const { client, plain } = await run.session();
  const watch = (fromSequence: bigint | undefined, streaming: Streaming) =>
    client.logs.watchLogs({ ...filter, ...(fromSequence === undefined ? {} : { fromSequence }) }, streaming);
  const after = lastSeq === undefined ? undefined : BigInt(lastSeq);
  for await (const message of followed(run, watch, ({ record }) => record?.seq, { after })) {
    await print(run, plain(message).record as Item);
  }
}

async function print(run: Run, record: Item): Promise<void> {
  await (run.out.isJson ? run.out.jsonLine(record) : run.out.line(logLine(run, record)));
}

const styles = { debug: "dim", info: "green", warn: "yellow", error: "red" } as const;
const namedApart: ReadonlySet<string> = new Set(["timestamp", "seq", "level", "event", "message", "fields"]);

function logLine(run: Run, record: Item): string {
  const level = record.level as keyof typeof styles;
  const more = Object.entries({ ...record, ...(record.fields as object | undefined) })
    .filter(([name]) => !namedApart.has(name))
    .map(([name, value]) => ` ${harmlessLine(name)}=${textOf(value)}`);
  const shown = run.out.style(styles[level] ?? "bold", level.toUpperCase().padEnd(5));
  const details = run.out.style("dim", more.join(""));
  return `${record.timestamp as string} ${shown} ${textOf(record.event)}  ${textOf(record.message)}${details}`;
}

async function readFilter(run: Run): Promise<object> {
  const { level, since, event, query, process, service, module, registry, request } = run.options as LogOptions;
  const { LogLevel } = await import("../../gen/troupe/v1/log_pb.ts");
  const { timestamp } = await run.session();
  return {
    ...(level === undefined ? {} : { levelMin: LogLevel[level.toUpperCase() as keyof typeof LogLevel] }),
    ...(since === undefined ? {} : { from: timestamp(new Date(Date.now() - readDuration(since, "Option --since"))) }),
    ...(event === undefined ? {} : { event }),
    ...(query === undefined ? {} : { query }),
    ...(process === undefined ? {} : { processId: readId(process) }),
    ...(service === undefined ? {} : { serviceId: service }),
    ...(module === undefined ? {} : { moduleId: module }),
    ...(registry === undefined ? {} : { registryId: registry }),
    ...(request === undefined ? {} : { requestId: request }),
  };
}
