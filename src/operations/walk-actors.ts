/** Everything of a kind, read in pages, and worked on a few at a time: memory does not grow with how many there are. */
import type { Actors } from "../runtime/actors.ts";

const readAtOnce = 100;

/** In the order of the index `all`. */
export async function* eachActor<State, Message>(actors: Actors<State, Message>): AsyncGenerator<State> {
  let after: string | undefined;
  do {
    const { items, next } = await actors.list("all", after, readAtOnce);
    for (const { state } of items) yield state;
    after = next;
  } while (after !== undefined);
}

/** `work` must not reject: what one item fails with is its own business. */
export async function atMost<Item>(
  concurrency: number,
  items: AsyncIterable<Item> | Iterable<Item>,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const running = new Set<Promise<void>>();
  for await (const item of items) {
    const one: Promise<void> = work(item).finally(() => running.delete(one));
    running.add(one);
    if (running.size >= concurrency) await Promise.race(running);
  }
  await Promise.all(running);
}
