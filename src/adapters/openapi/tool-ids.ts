/** Ids of tools: JavaScript identifiers, the same for the same document, and the same for an operation when others come or go. */
import { createHash } from "node:crypto";

export interface Named {
  readonly operationId: string;
  readonly method: string;
  readonly path: string;
}

const charactersMax = 200;

/** One id for each, in order. The first to want an id gets it; the others get it with a suffix made from method and path. */
export function toolIds(operations: readonly Named[]): string[] {
  const taken = new Set<string>();
  return operations.map((operation) => {
    const wanted = cleanId(operation.operationId) || madeUpId(operation);
    const digest = createHash("sha256").update(`${operation.method} ${operation.path}`).digest("hex");
    let id = wanted.slice(0, charactersMax);
    for (let length = 6; taken.has(id); length += 2)
      id = `${wanted.slice(0, charactersMax)}_${digest.slice(0, length)}`;
    taken.add(id);
    return id;
  });
}

/** `gmail.users.messages.list` → `gmail_users_messages_list`; empty when nothing usable is left. */
function cleanId(text: string): string {
  const joined = text
    .replaceAll(/[^A-Za-z0-9_$]+/g, "_")
    .replaceAll(/_+/g, "_")
    .replace(/^_|_$/g, "");
  return /^[0-9]/.test(joined) ? `_${joined}` : joined;
}

/** `get /users/{id}` → `get_users_by_id`. */
function madeUpId({ method, path }: Named): string {
  return cleanId(`${method.toLowerCase()}_${path.replaceAll(/\{([^}]*)\}/g, "by_$1")}`);
}
