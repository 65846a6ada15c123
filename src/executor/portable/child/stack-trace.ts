/** Stack traces as the submitter should read them: own lines and columns, no frames of ours. */
import { type Locate, programFile } from "./compile.ts";

const frame = /^\s*at (.*) \(([^()]*?)(?::(\d+):(\d+))?\)$/;

export function readableStack(stack: string, locate: Locate): string {
  const [title = "", ...rest] = splitTitle(stack);
  const frames = rest.flatMap((line) => {
    const [, name = "", file = "", lineNumber, column] = frame.exec(line) ?? [];
    if (file === "native") return [`    at ${name} (native)`];
    if (file !== programFile || lineNumber === undefined) return [];
    const position = locate({ line: Number(lineNumber), column: Number(column) });
    return position === undefined ? [] : [`    at ${name} (${programFile}:${position.line}:${position.column})`];
  });
  return `${[title, ...frames].join("\n")}\n`;
}

/** The message may have lines of its own. */
function splitTitle(stack: string): string[] {
  const lines = stack.split("\n");
  let first = lines.findIndex((line, index) => index > 0 && frame.test(line));
  if (first < 0) first = lines.length;
  return [lines.slice(0, first).join("\n").trimEnd(), ...lines.slice(first)];
}
