/** What a service asks of the world: its secrets sealed, its tools made ready. Expected failures come back as messages. */
import { Failure, isFailure } from "../errors/failure.ts";
import type { HydrationRequest, Hydrations } from "../ports/hydrations.ts";
import type { SealContext, Vault } from "../ports/vault.ts";
import type { Self } from "../runtime/kind.ts";
import { type OpenSettings, openSettings, sealedIn } from "./configured.ts";
import { reseal, type Sealed } from "./reseal.ts";
import type { SecretSeals } from "./secret-seals.ts";
import type { HydrationPurpose, ServiceEffect, ServiceMessage, ServiceState } from "./service.ts";

export interface ServicePorts {
  readonly vault: Vault;
  readonly seals: SecretSeals;
  readonly hydrations: Hydrations;
}

export async function performServiceEffect(
  effect: ServiceEffect,
  self: Self<ServiceMessage>,
  ports: ServicePorts,
): Promise<ServiceMessage | undefined> {
  switch (effect.type) {
    case "sealSecrets":
      return ports.seals.seal(effect.state, effect.requests, secretsContext(effect.state));
    case "reseal":
      return reseal(sealedInService(effect.state), ports.vault);
    case "hydrate":
      return hydrate(
        effect.state,
        effect.purpose,
        { type: "hydrated", generation: effect.state.generation, purpose: effect.purpose },
        () => self.blob("plan"),
        ports,
      );
    case "tryContent": {
      const { candidate, basis, content } = effect;
      const purpose = { kind: "replace", tickets: ["replace"] } as const;
      const ready: ServiceMessage = { type: "replacementReady", basis, content };
      return hydrate(candidate, purpose, ready, async () => content.definition.plan, ports);
    }
    case "drop":
      ports.hydrations.drop(self.key);
      return undefined;
  }
}

async function hydrate(
  state: ServiceState,
  purpose: HydrationPurpose,
  ready: ServiceMessage,
  plan: () => Promise<string | undefined>,
  { vault, hydrations }: ServicePorts,
): Promise<ServiceMessage> {
  try {
    await hydrations.hydrate(hydrationRequest(state, vault, plan));
    return ready;
  } catch (error) {
    return { type: "hydrationFailed", purpose, failure: hydrationFailure(state, purpose, error) };
  }
}

/** Also for a service that is enabled but not in memory yet. Throws Failure when secrets are incomplete or unreadable. */
export function hydrationRequest(
  state: ServiceState,
  vault: Vault,
  plan: () => Promise<string | undefined>,
): HydrationRequest {
  return {
    ...openSettings(state, vault, secretsContext(state)),
    serviceId: state.id,
    generation: state.generation,
    adapter: state.adapter,
    plan: {
      hash: state.planHash,
      load: async () => {
        const text = await plan();
        // Deleted since its record was read; others may wait for the same plan, so it is no crash of theirs.
        if (text === undefined) throw new Failure("not_found", `There is no service "${state.id}" any more`);
        return text;
      },
    },
  };
}

export function sealedInService(state: ServiceState): readonly Sealed[] {
  return sealedIn(state, secretsContext(state));
}

/** Whatever settings there are, complete or not: for asking a target what it offers. */
export function partialSettings(state: ServiceState, vault: Vault): OpenSettings {
  return openSettings(state, vault, secretsContext(state), { partial: true });
}

function secretsContext(state: ServiceState): SealContext {
  return { kind: "service", id: state.id, field: "secrets" };
}

/** Wrong settings are the caller's to mend; whatever else stops a hydration is the target's or the adapter's doing. */
function hydrationFailure(state: ServiceState, purpose: HydrationPurpose, error: unknown): Failure {
  const stored = {
    enable: "",
    reconfigure: ". The change is stored; the former settings keep serving",
    replace: ". The former version stays active",
  }[purpose.kind];
  if (!isFailure(error)) {
    return new Failure("upstream_failed", `Cannot make service "${state.id}" ready on its adapter${stored}`, {
      cause: error,
    });
  }
  if (purpose.kind !== "reconfigure" && (error.kind === "invalid_request" || error.kind === "conflict")) return error;
  if (error.kind === "internal") return error;
  return new Failure("upstream_failed", `Cannot make service "${state.id}" ready: ${error.message}${stored}`, {
    cause: error,
  });
}
