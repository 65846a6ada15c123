/**
 * The state of an actor as an operator may see it: sealed envelopes, values under names that secrets go by, and credentials inside texts
 * are masked. Nothing in a state is a plain secret; a sealed one is nobody's business either.
 */
import { mask, maskText, namesSecret } from "./masking.ts";

/** As the vault writes them; whatever comes after the key id. */
const envelope = /\bt1\.[0-9a-f]{16}\.[\w.-]*/g;
/** `https://name:password@host` */
const userInfo = /(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@?#]+@/gi;
/** Names that hold secrets in states of ours, besides those that are known anywhere. */
const ownNames: ReadonlySet<string> = new Set(["secrets", "envelope"]);
/** They say that a field has such a name, never what is in it. */
const schemaNames: ReadonlySet<string> = new Set(["configSchema", "secretsSchema"]);
/** Characters of one text, and members of one object or array, that are shown. */
const textCharactersMax = 4_096;
const membersMax = 1_000;

/** JSON in, JSON out. */
export function maskState(state: unknown, inSchema = false): unknown {
  if (typeof state === "string") return maskSentence(state);
  if (typeof state !== "object" || state === null) return state;
  if (Array.isArray(state)) {
    const items = state.slice(0, membersMax).map((item) => maskState(item, inSchema));
    return state.length > membersMax ? [...items, `… ${state.length - membersMax} more`] : items;
  }
  const members = Object.entries(state).filter(([, value]) => value !== undefined);
  const shown = members.slice(0, membersMax).map(([name, value]): [string, unknown] => {
    if (!inSchema && isMasked(name, value)) return [name, mask];
    return [name, maskState(value, inSchema || schemaNames.has(name))];
  });
  return Object.fromEntries(
    members.length > membersMax ? [...shown, ["…", `${members.length - membersMax} more`]] : shown,
  );
}

/** What is wrong with something, for an operator's eyes. */
export function maskSentence(text: string): string {
  const kept = text.length <= textCharactersMax ? text : `${text.slice(0, textCharactersMax)}…`;
  return maskText(kept.toWellFormed()).replace(envelope, mask).replace(userInfo, `$1${mask}@`);
}

function isMasked(name: string, value: unknown): boolean {
  return value !== null && (ownNames.has(name) || namesSecret(name));
}
