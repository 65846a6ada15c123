/** Lines of a stream whose sender is not trusted to end them. */
import type { Readable } from "node:stream";

/** undefined stands for a line of more than `charactersMax`, which is read away. Rejects when the stream breaks off. */
export async function* boundedLines(input: Readable, charactersMax: number): AsyncGenerator<string | undefined> {
  input.setEncoding("utf8");
  let rest = "";
  let isTooLong = false;
  for await (const chunk of input as AsyncIterable<string>) {
    const pieces = chunk.split("\n");
    for (const [at, piece] of pieces.entries()) {
      isTooLong ||= rest.length + piece.length > charactersMax;
      rest = isTooLong ? "" : rest + piece;
      if (at === pieces.length - 1) break; // its end has not come yet
      yield isTooLong ? undefined : rest;
      rest = "";
      isTooLong = false;
    }
  }
  if (rest !== "") yield rest;
}
