/**
 * Rotation of the secrets key: a walk through everything sealed, in the background of a start that was given previous keys. The
 * actors do the work (`reseal.ts`); when `secrets-resealed` is logged, nothing readable needs a previous key any more.
 */
import { isFailure } from "../errors/failure.ts";
import { resealPageMax } from "../limits.ts";
import type { Log } from "../ports/log.ts";
import type { Vault } from "../ports/vault.ts";
import type { Actors } from "../runtime/actors.ts";
import type { ModuleMessage, ModuleState } from "./module.ts";
import { sealedInModule } from "./module-effects.ts";
import type { RegistryMessage, RegistryState } from "./registry.ts";
import { sealedInRegistry } from "./registry-effects.ts";
import type { ResealOutcome, Sealed } from "./reseal.ts";
import type { ServiceMessage, ServiceState } from "./service.ts";
import { sealedInService } from "./service-effects.ts";

export interface ResealPassOptions {
  readonly services: Actors<ServiceState, ServiceMessage>;
  readonly registries: Actors<RegistryState, RegistryMessage>;
  readonly modules: Actors<ModuleState, ModuleMessage>;
  readonly vault: Vault;
  readonly log: Log;
}

interface Counts {
  resealed: number;
  unreadable: number;
  /** Not known: the store or the actor did not answer. */
  failed: number;
}

/** Whether nothing readable is sealed with a previous key any more. Never rejects. */
export async function resealAll({ services, registries, modules, vault, log }: ResealPassOptions): Promise<boolean> {
  const counts: Counts = { resealed: 0, unreadable: 0, failed: 0 };
  const isOld = ({ envelope }: Sealed): boolean => !vault.isCurrent(envelope);

  async function count(
    key: string,
    idField: "serviceId" | "registryId" | "moduleId",
    asked: Promise<unknown>,
  ): Promise<void> {
    try {
      const { unreadable } = (await asked) as ResealOutcome;
      if (unreadable === null) counts.resealed++;
      else {
        counts.unreadable++;
        log.warn("secrets-unreadable", unreadable, { [idField]: key });
      }
    } catch (error) {
      // Deleted meanwhile: nothing is left to seal.
      if (isFailure(error) && error.kind === "not_found") return;
      counts.failed++;
      log.warn("secrets-reseal-failed", "Secrets could not be sealed again", { [idField]: key, error });
    }
  }

  try {
    await eachPage(services, (items) =>
      items
        .filter(({ state }) => sealedInService(state).some(isOld))
        .map(({ key }) => count(key, "serviceId", services.ask(key, { type: "reseal" }))),
    );
    await eachPage(registries, (items) =>
      items
        .filter(({ state }) => sealedInRegistry(state).some(isOld))
        .map(({ key }) => count(key, "registryId", registries.ask(key, { type: "reseal" }))),
    );
    await eachPage(modules, (items) =>
      items
        .filter(({ state }) => sealedInModule(state).some(isOld))
        .map(({ key }) => count(key, "moduleId", modules.ask(key, { type: "reseal" }))),
    );
  } catch (error) {
    counts.failed++;
    log.warn("secrets-reseal-failed", "The stored secrets could not be listed", { error });
  }
  if (counts.failed === 0) {
    log.info("secrets-resealed", "No readable secret is sealed with a previous secrets key any more", { ...counts });
  } else {
    log.warn("secrets-reseal-incomplete", "Keep the previous secrets keys: the next start goes on", { ...counts });
  }
  return counts.failed === 0;
}

/** One page at a time, each done before the next is read: never more messages under way than a page has items. */
async function eachPage<State, Message>(
  actors: Actors<State, Message>,
  take: (items: readonly { readonly key: string; readonly state: State }[]) => Promise<void>[],
): Promise<void> {
  let after: string | undefined;
  do {
    const { items, next } = await actors.list("all", after, resealPageMax);
    await Promise.all(take(items));
    after = next;
  } while (after !== undefined);
}
