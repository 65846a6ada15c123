/**
 * Which secrets key a stored value needs, read from its envelope without opening it. The store keeps one canary for each key that something
 * may be sealed with, and every start proves that they open: a value with another key id is one that nobody can open.
 */

import type { ModuleState } from "../actors/module.ts";
import { sealedInModule } from "../actors/module-effects.ts";
import type { RegistryState } from "../actors/registry.ts";
import { sealedInRegistry } from "../actors/registry-effects.ts";
import type { Sealed } from "../actors/reseal.ts";
import type { ServiceState } from "../actors/service.ts";
import { sealedInService } from "../actors/service-effects.ts";
import type { StoreSnapshot } from "../ports/snapshot.ts";
import { decodeRecord } from "../store/record-text.ts";

/** As `secrets/vault.ts` writes them: `t1.<key id>.<iv>.<tag>.<ciphertext>`. */
const envelopePattern = /^t1\.([0-9a-f]{16})\.[A-Za-z0-9_-]{16}\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]*$/;
export const canaryKey = "m/canary";

/** Undefined: it is no envelope. */
export function keyIdOf(envelope: string): string | undefined {
  return envelopePattern.exec(envelope)?.[1];
}

/** The state of a record that was decoded by its kind. */
export function sealedIn(kind: string, state: unknown): readonly Sealed[] {
  switch (kind) {
    case "service":
      return sealedInService(state as ServiceState);
    case "module":
      return sealedInModule(state as ModuleState);
    case "registry":
      return sealedInRegistry(state as RegistryState);
    default:
      return [];
  }
}

/** Of the keys the store was written with. */
export async function keyIdsOf(snapshot: StoreSnapshot): Promise<ReadonlySet<string>> {
  const [text] = await snapshot.read([canaryKey]);
  const canaries = decodeRecord(text ?? "")?.value.split("\n") ?? [];
  return new Set(canaries.flatMap((canary) => keyIdOf(canary) ?? []));
}
