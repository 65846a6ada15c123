/**
 * The order of test files in a run that has no memory of earlier ones (a fresh checkout): those that are known to take long first, so that the
 * last minute of a run is not one long file beside an idle core. The rest as vitest orders them.
 */
import type { TestSpecification } from "vitest/node";
import { BaseSequencer } from "vitest/node";

/** Longest first; 20 s and more on two cores. */
const slow = [
  "e2e/kill9/kill9",
  "e2e/fuzz/fuzz",
  "e2e/restart",
  "e2e/demo",
  "e2e/sweep/sweep",
  "e2e/rotation",
  "executor/portable",
  "sdk/testkit-environments",
  "e2e/logs",
  "e2e/mcp",
  "client/client",
  "e2e/disk-full",
  "adapters/parameter-checks-lanes",
  "e2e/traces",
  "e2e/canaries",
  "e2e/modules",
  "e2e/metrics",
  "e2e/drain",
  "e2e/json-bodies",
  "e2e/grpc/hostile",
  "e2e/grpc/peers",
  "e2e/grpc/calls",
  "e2e/tls",
];

export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = slow.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return at === -1 ? slow.length : at;
    };
    return sorted.toSorted((one, other) => rank(one) - rank(other));
  }
}
