/** Time, so that tests can hold it still. */
export interface Clock {
  /** Wall clock, epoch milliseconds: dates records and wakes, nothing else. */
  now(): number;
  /** Milliseconds that never step backwards: deadlines and waits. */
  monotonic(): number;
  /** Runs `action` once after `delayMs` (any finite number ≥ 0, also above 2^31); the answer cancels it. */
  after(delayMs: number, action: () => void): () => void;
}
