/** Ranks tools by how well they match a query: every word counts where it is found, whole words and names most. Pure. */
import type { ToolSummary } from "../ports/adapter.ts";

const weights = { name: 8, id: 8, summary: 4, parameterNames: 3, description: 1 } as const;

/** Words looked for in one query; the rest is ignored. */
const wordsMax = 16;

export function queryWords(query: string): readonly string[] {
  return [...new Set(wordsOf(query))].slice(0, wordsMax);
}

/** 0: no word was found. A whole word scores twice a part of one. */
export function score(tool: ToolSummary, words: readonly string[]): number {
  let total = 0;
  for (const [field, weight] of Object.entries(weights) as [keyof typeof weights, number][]) {
    const value = tool[field];
    const text = (typeof value === "string" ? value : value.join(" ")).toLowerCase();
    if (text === "") continue;
    const whole = new Set(wordsOf(text));
    for (const word of words) {
      if (whole.has(word)) total += 2 * weight;
      else if (text.includes(word)) total += weight;
    }
  }
  return total;
}

/** camelCase and snake_case names count by their parts. */
function wordsOf(text: string): string[] {
  return text
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "");
}
