/** Where the token server keeps what it issued. Emptied by making a new one; clock and all else are the server's. */
import type { Adapter, AdapterFactory, AdapterPayload } from "oidc-provider";

export function openShelf(): AdapterFactory {
  const kept = new Map<string, AdapterPayload>();
  return (kind): Adapter => ({
    upsert: async (id, payload) => void kept.set(`${kind} ${id}`, payload),
    find: async (id) => kept.get(`${kind} ${id}`),
    destroy: async (id) => void kept.delete(`${kind} ${id}`),
    // Of flows with people in them, which do not happen here.
    findByUserCode: async () => undefined,
    findByUid: async () => undefined,
    consume: async () => undefined,
    revokeByGrantId: async () => undefined,
  });
}
