/**
 * Answers go out together: first everything is read that has arrived, then everything is answered. A write to a client that sleeps wakes it,
 * which costs the server several times what a write to a busy one does; answered one by one between reads, 32 clients are woken 32 times.
 * Measured by rest.bench.ts: 0.54 of bare fastify without, 0.85 with.
 */
let turn: Promise<void> | undefined;

/** Resolves once all that arrived in this turn of the event loop was read; later it has resolved already, and costs nothing. */
export function endOfTurn(): Promise<void> {
  turn ??= new Promise((resolve) => {
    setImmediate(() => {
      turn = undefined;
      resolve();
    });
  });
  return turn;
}
