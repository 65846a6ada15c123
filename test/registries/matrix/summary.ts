/** The result of a matrix in a few lines: totals, and what went wrong by class with one example each. */
import type { Finding } from "./play.ts";

export interface Totals {
  readonly cells: number;
  readonly decisions: readonly string[];
  readonly findings: readonly Finding[];
  readonly leftOut: readonly string[];
}

export function summary({ cells, decisions, findings, leftOut }: Totals): string {
  const count = (fault: string): number => findings.filter((finding) => finding.fault === fault).length;
  const hops = [...Map.groupBy(decisions, (decision) => decision)].map(([name, of]) => `${of.length} ${name}`);
  const groups = Map.groupBy(findings, ({ plan, fault }) => `${fault} in ${plan.group}`);
  return [
    `${cells} cells, ${decisions.length} hops (${hops.join(", ")})`,
    `${count("leak")} leaks, ${count("false strip")} false strips, ${findings.length} findings in all`,
    ...leftOut.map((reason) => `left out: ${reason}`),
    ...[...groups].map(([name, of]) => `  ${of.length} × ${name}, e.g. ${of[0]?.plan.name}: ${of[0]?.detail}`),
  ].join("\n");
}
