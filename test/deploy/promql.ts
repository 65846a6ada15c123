/** What an expression of PromQL asks for, read by Prometheus' own grammar. */
import { parser } from "@prometheus-io/lezer-promql";

export interface Selector {
  readonly metric: string;
  readonly matchers: readonly { readonly label: string; readonly operator: string; readonly value: string }[];
}

export interface Query {
  readonly selectors: readonly Selector[];
  /** Of `by`, `on`, `without` and the like. */
  readonly groupedBy: readonly string[];
}

/** Variables of Grafana are given a value first. Throws where the grammar does not hold. */
export function readQuery(expression: string): Query {
  const text = expression.replaceAll("$__rate_interval", "5m");
  const selectors: { metric: string; matchers: { label: string; operator: string; value: string }[] }[] = [];
  const groupedBy: string[] = [];
  let isGrouping = false;
  parser.parse(text).iterate({
    enter(node) {
      const word = text.slice(node.from, node.to);
      if (node.type.isError) throw new Error(`Not PromQL at ${node.from}: ${text}`);
      const matcher = selectors.at(-1)?.matchers.at(-1);
      if (node.name === "GroupingLabels") isGrouping = true;
      if (node.name === "Identifier") selectors.push({ metric: word, matchers: [] });
      if (node.name === "LabelName" && isGrouping) groupedBy.push(word);
      else if (node.name === "LabelName") selectors.at(-1)?.matchers.push({ label: word, operator: "", value: "" });
      if (node.name === "MatchOp" && matcher !== undefined) matcher.operator = word;
      if (node.name === "StringLiteral" && matcher?.value === "") matcher.value = word.slice(1, -1);
    },
    leave(node) {
      if (node.name === "GroupingLabels") isGrouping = false;
    },
  });
  return { selectors, groupedBy };
}
