/** What a module asks of the world: to be put in service, its secrets sealed, packages removed. Expected failures come back as messages. */
import { Failure, isFailure } from "../errors/failure.ts";
import type { Log } from "../ports/log.ts";
import type { ModuleActivation, ModuleRuntime } from "../ports/module-runtime.ts";
import type { Packages } from "../ports/packages.ts";
import type { SealContext, Vault } from "../ports/vault.ts";
import type { Self } from "../runtime/kind.ts";
import { openSettings, sealedIn } from "./configured.ts";
import type { ModuleEffect, ModuleMessage, ModuleState } from "./module.ts";
import { reseal, type Sealed } from "./reseal.ts";
import type { SecretSeals } from "./secret-seals.ts";

export interface ModulePorts {
  readonly vault: Vault;
  readonly seals: SecretSeals;
  readonly runtime: ModuleRuntime;
  readonly packages: Packages;
  readonly log: Log;
}

export async function performModuleEffect(
  effect: ModuleEffect,
  self: Self<ModuleMessage>,
  ports: ModulePorts,
): Promise<ModuleMessage | undefined> {
  const { vault, seals, runtime, packages, log } = ports;
  const moduleId = self.key;
  switch (effect.type) {
    case "sealSecrets":
      return seals.seal(effect.state, effect.requests, secretsContext(effect.state));
    case "reseal":
      return reseal(sealedInModule(effect.state), vault);
    case "activate": {
      const { state, purpose } = effect;
      try {
        // It was in service before, so hundreds of them cost a start nothing.
        const start = purpose.kind === "start" ? "when-used" : "now";
        await runtime.activate(activationOf(state, vault, start));
        return { type: "activated", generation: state.generation, purpose };
      } catch (error) {
        if (purpose.kind === "start" || purpose.kind === "recover") {
          log.warn("module-start-failed", `Module "${moduleId}" is not in service`, { moduleId, error });
        }
        const consequence =
          purpose.kind === "reconfigure" ? "The change is stored; the former settings keep serving" : "";
        const failure = activationFailure(state, error, consequence);
        return { type: "activationFailed", purpose, failure };
      }
    }
    case "takeOver": {
      const { candidate, basis, takeover } = effect;
      const byItself = takeover.direction === "back";
      try {
        await runtime.activate(activationOf(candidate, vault, "now"));
        const event = byItself ? "module-rolled-back" : "module-updated";
        log[byItself ? "warn" : "info"](event, `Module "${moduleId}" is at version ${candidate.version} now`, {
          moduleId,
        });
        return { type: "takenOver", basis, takeover };
      } catch (error) {
        const failure = activationFailure(candidate, error, "The former version stays active");
        return { type: "takeoverFailed", failure };
      }
    }
    case "deactivate":
      runtime.deactivate(moduleId);
      return undefined;
    case "removePackages":
      for (const hash of effect.hashes) {
        // What is left behind is found by the next start.
        await packages.remove(moduleId, hash).catch((error: unknown) => {
          log.warn("package-not-removed", "A package that is not needed any more could not be removed", {
            moduleId,
            error,
          });
        });
      }
      return undefined;
  }
}

/** Throws Failure when secrets are incomplete or unreadable. */
function activationOf(state: ModuleState, vault: Vault, start: ModuleActivation["start"]): ModuleActivation {
  const { id, type, isBuiltin, hash } = state;
  return {
    moduleId: id,
    type,
    hash: isBuiltin ? null : hash,
    start,
    ...openSettings(state, vault, secretsContext(state)),
  };
}

/** Wrong settings are the caller's to mend; whatever else keeps a module out of service is the module's doing. */
function activationFailure(state: ModuleState, error: unknown, consequence: string): Failure {
  const then = consequence === "" ? "" : `. ${consequence}`;
  if (!isFailure(error)) {
    return new Failure("upstream_failed", `Cannot put module "${state.id}" in service${then}`, { cause: error });
  }
  if (consequence === "" && (error.kind === "invalid_request" || error.kind === "conflict")) return error;
  if (error.kind === "internal") return error;
  const message = `Cannot put module "${state.id}" version ${state.version} in service: ${error.message}${then}`;
  return new Failure("upstream_failed", message, { cause: error });
}

export function sealedInModule(state: ModuleState): readonly Sealed[] {
  return sealedIn(state, secretsContext(state));
}

function secretsContext({ id }: ModuleState): SealContext {
  return { kind: "module", id, field: "secrets" };
}
