/** The events of a stream over REST, as its reader gets them; comments that keep it alive are passed over. */
import { expect } from "vitest";

export interface ServerSentEvent {
  readonly id: number;
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: data has many shapes
  readonly data: any;
}

export function eventsOf(answer: Response): AsyncIterable<ServerSentEvent> {
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"]);
  return read(answer.body!);
}

async function* read(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerSentEvent, void, undefined> {
  let text = "";
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    const blocks = (text + chunk).split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const [, id, event, data] = /^id: (\d+)\nevent: ([a-z-]+)\ndata: (.*)$/.exec(block) ?? [];
      if (data !== undefined) yield { id: Number(id), event: event ?? "", data: JSON.parse(data) };
    }
  }
}
