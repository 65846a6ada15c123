/** Performs the steps of a tour against a server and prints each as the command a user would type, with its answer. */
import { curlCommand } from "./curl.ts";
import type { Answer, Step, Tour } from "./tour.ts";

/** Longest wait of a step is 30 s on the server's side. */
const stepMsMax = 60_000;
/** A tool list is worth reading, ten pages of JSON are not. */
const linesShownMax = 60;
const columnsShownMax = 160;

export interface Guide {
  /** Base address of the server. */
  readonly base: string;
  readonly signal: AbortSignal;
  print(text: string): void;
}

/** The answer to the last step. Rejects, saying what happened, at the first answer that is not the expected one. */
export async function takeTour(tour: Tour, guide: Guide): Promise<Answer> {
  let answer: Answer;
  let number = 0;
  for (let next = tour.next(undefined); !next.done; next = tour.next(answer)) {
    number += 1;
    answer = await perform(next.value, number, guide);
  }
  return answer;
}

async function perform(step: Step, number: number, { base, signal, print }: Guide): Promise<Answer> {
  print(`\n# ${number}. ${step.say}\n`);
  if (step.listing !== undefined) print(`${step.listing.trimEnd().replace(/^/gm, "    ")}\n`);
  print(`$ ${curlCommand(base, step)}`);
  const response = await fetch(`${base}${step.path}`, {
    method: step.method,
    signal: AbortSignal.any([signal, AbortSignal.timeout(stepMsMax)]),
    ...(step.body === undefined
      ? {}
      : { body: JSON.stringify(step.body), headers: { "Content-Type": "application/json" } }),
  });
  const text = await response.text();
  const isJson = /^application\/json\b/.test(response.headers.get("content-type") ?? "");
  const answer: Answer = isJson ? JSON.parse(text) : text;
  print(shown(isJson ? readableJson(answer) : text.trimEnd()));
  if (response.status === step.expect) return answer;
  throw new Error(`Step ${number} was answered with ${response.status} instead of ${step.expect}: ${shown(text)}`);
}

/** JSON with each part that fits on a line of its own: a list of tools is one line a tool. */
function readableJson(value: unknown, indent = ""): string {
  const flat = JSON.stringify(value);
  if (typeof value !== "object" || value === null || indent.length + flat.length <= columnsShownMax) return flat;
  const inner = `${indent}  `;
  const parts = Array.isArray(value)
    ? value.map((item) => readableJson(item, inner))
    : Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${readableJson(item, inner)}`);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  return `${open}\n${parts.map((part) => inner + part).join(",\n")}\n${indent}${close}`;
}

function shown(text: string): string {
  const lines = text
    .split("\n")
    .map((line) => (line.length > columnsShownMax ? `${line.slice(0, columnsShownMax)}…` : line));
  const hidden = lines.length - linesShownMax;
  return hidden > 0 ? [...lines.slice(0, linesShownMax), `… ${hidden} more lines`].join("\n") : lines.join("\n");
}
