/** Milliseconds this process computed during `action`: unlike time on the wall, not a measure of what else the machine does. */
export function processorMs(action: () => unknown): number {
  const started = process.cpuUsage();
  action();
  const { user, system } = process.cpuUsage(started);
  return (user + system) / 1_000;
}

/** The best of five runs, for figures where the first ones warm up. */
export function bestProcessorMs(action: () => unknown): number {
  return Math.min(...[1, 2, 3, 4, 5].map(() => processorMs(action)));
}
