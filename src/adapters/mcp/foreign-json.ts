/**
 * JSON of a server, judged by its text before anything is made of it: bytes alone bound nothing, since 10 MiB may be three million lists
 * or names, which hold the event loop for seconds. Depth is judged by whoever passes the value on.
 */
import { mcpNamesMax, mcpValuesMax } from "../../limits.ts";

/** What was read of one answer so far. */
export class JsonBudget {
  values = 0;
  readonly names = new Set<string>();

  /** Of text that is no JSON the count is wrong, and nothing else is. Throws Error. */
  take(text: string): void {
    let start = 0;
    let end = 0;
    for (let at = 0; at < text.length; at += 1) {
      const character = text.charCodeAt(at);
      if (character === quote) {
        start = at;
        end = stringEnd(text, at);
        at = end;
      } else if (character === colon) {
        this.names.add(text.slice(start, end));
      } else if (character === comma || character === bracket || character === brace) {
        this.values += 1;
      }
      if (this.values > mcpValuesMax) throw new Error(`More than ${mcpValuesMax} values in one answer`);
      if (this.names.size > mcpNamesMax) throw new Error(`More than ${mcpNamesMax} different names in one answer`);
    }
  }
}

/** Throws SyntaxError for what is not JSON, and Error for what is too much. */
export function readForeignJson(text: string, budget = new JsonBudget()): unknown {
  budget.take(text);
  return JSON.parse(text);
}

const [quote, colon, comma, bracket, brace, backslash] = [34, 58, 44, 91, 123, 92];

function stringEnd(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === quote) return at;
    if (character === backslash) at += 1;
  }
  return text.length;
}
