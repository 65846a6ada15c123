/**
 * A story as text: each message, and what came of it. Kept in `transcripts/` and reviewed as text; regenerate with
 * `npm test -- -u`.
 */
import { isFailure } from "../../src/errors/failure.ts";
import type { Kind } from "../../src/runtime/kind.ts";

export function transcript<State, Message, Effect, Ports>(
  kind: Kind<State, Message, Effect, Ports>,
  key: string,
  messages: readonly Message[],
  startAt = 1_700_000_000_000,
): string {
  let state: State | null = null;
  const lines: string[] = [];
  messages.forEach((message, position) => {
    const now = startAt + position * 1_000;
    lines.push(`> ${JSON.stringify(message)}`);
    try {
      const step = kind.decide(state, message, now);
      lines.push(step.state === state ? "  unchanged" : `  state   ${JSON.stringify(step.state)}`);
      if (step.state !== null) {
        lines.push(...kind.index(step.state, key).map(({ name, sort }) => `  index   ${name} ${sort}`));
      }
      if (step.blobs !== undefined) lines.push(`  blobs   ${JSON.stringify(step.blobs)}`);
      if (step.defer !== undefined) lines.push(`  wait    ${step.defer}`);
      for (const settlement of step.settle ?? []) lines.push(`  settle  ${JSON.stringify(settlement)}`);
      for (const effect of step.effects ?? []) lines.push(`  effect  ${JSON.stringify(effect)}`);
      if (step.passivate === true) lines.push("  leaves memory");
      state = step.state;
    } catch (error) {
      if (!isFailure(error)) throw error;
      lines.push(`  refused ${error.kind}: ${error.message}`);
    }
  });
  return `${lines.join("\n")}\n`;
}
