/** The `grpc-timeout` header: up to eight digits and a unit. */
const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/** Milliseconds; undefined when it cannot be read. */
export function grpcTimeoutMs(header: string | string[]): number | undefined {
  const match = /^(\d{1,8})([HMSmun])$/.exec(String(header));
  return match === null ? undefined : Number(match[1]) * (unitMs[match[2] ?? ""] ?? 0);
}
