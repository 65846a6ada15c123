/** `troupe processes list --watch`: a table of what there is, then a line for each change. */
import { follow } from "./follow.ts";
import type { Item } from "./item.ts";
import type { Run, Streaming } from "./run.ts";
import { type Column, Table } from "./table.ts";

/** `filter` as of WatchProcessesRequest. */
export async function watchProcesses(run: Run, filter: object, columns: readonly Column[]): Promise<void> {
  const { client, plain } = await run.session();
  const watch = (fromSequence: bigint | undefined, streaming: Streaming) =>
    client.processes.watchProcesses({ ...filter, ...(fromSequence === undefined ? {} : { fromSequence }) }, streaming);
  // What changes is told below what there is, in the same columns.
  const table = new Table([{ title: "CHANGE", of: "kind" }, ...columns], run.out.columns);
  for await (const message of follow(run, watch, ({ sequence }) => sequence)) {
    const item = plain(message);
    if (run.out.isJson) {
      await run.out.jsonLine(item);
      continue;
    }
    for (const line of table.lines(rowsOf(item), (title) => run.out.style("bold", title))) await run.out.line(line);
  }
}

function rowsOf({ kind, snapshot, process }: Item): readonly Item[] {
  if (snapshot === undefined) return [{ ...(process as Item), kind }];
  // Newest first, as the server lists them; the latest change is the last line.
  return [...((snapshot as Item).items as readonly Item[])].reverse().map((item) => ({ ...item, kind: "" }));
}
