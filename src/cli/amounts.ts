/** Amounts as people read them. */

const binaryUnits = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytesText(bytes: number): string {
  let amount = bytes;
  let unit = 0;
  while (amount >= 1_024 && unit < binaryUnits.length - 1) {
    amount /= 1_024;
    unit += 1;
  }
  return `${unit === 0 ? amount : amount.toFixed(1)} ${binaryUnits[unit]}`;
}

/** The two largest parts: `3d 4h`, `12m 5s`. */
export function secondsText(seconds: number): string {
  const parts = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3_600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "m"],
    [Math.floor(seconds) % 60, "s"],
  ] as const;
  const first = parts.findIndex(([amount]) => amount > 0);
  if (first === -1) return "0s";
  return parts
    .slice(first, first + 2)
    .map(([amount, unit]) => `${amount}${unit}`)
    .join(" ");
}

/** `12 processes`, `1 process`. */
export function countText(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}
