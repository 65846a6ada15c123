/** Work on many items, a few at a time, in order of starting. The first failure ends it, once what had begun has ended as well. */
export async function inLanes<Item>(
  items: Iterable<Item>,
  lanes: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const rest = items[Symbol.iterator]();
  let failed = false;
  const lane = async () => {
    for (let next = rest.next(); !next.done && !failed; next = rest.next()) {
      await work(next.value).catch((error: unknown) => {
        failed = true;
        throw error;
      });
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: lanes }, lane));
  const failure = ends.find((end) => end.status === "rejected");
  if (failure !== undefined) throw failure.reason;
}
