/** What ended runs did, parsed once for all who follow them and for every stretch they take: as many runs as fit a bound, the last asked for. */
import { LRUCache } from "lru-cache";
import { endedRecordingsCharactersMax } from "../limits.ts";
import type { RunEvent, RunIdentity } from "../ports/launcher.ts";

export class EndedRecordings {
  readonly #kept = new LRUCache<string, readonly RunEvent[]>({ maxSize: endedRecordingsCharactersMax });

  get(run: RunIdentity): readonly RunEvent[] | undefined {
    return this.#kept.get(keyOf(run));
  }

  /** `text` is what stands beside the record of the run. Of many who read it at once, the first parses it. */
  parse(run: RunIdentity, text: string): readonly RunEvent[] {
    const kept = this.get(run);
    if (kept !== undefined) return kept;
    const events = JSON.parse(text) as readonly RunEvent[];
    this.#kept.set(keyOf(run), events, { size: text.length });
    return events;
  }
}

function keyOf({ processId, run }: RunIdentity): string {
  return `${processId}/${run}`;
}
