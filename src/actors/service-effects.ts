/** What a service asks of the world: its secrets sealed, its tools made ready. Expected failures come back as messages. */
import { Failure, isFailure } from "../errors/failure.ts";
import {
  declaredPart,
  patchSettings,
  presentPointers,
  requireValid,
  settingsProblems,
  withDefaults,
} from "../json/settings.ts";
import type { HydrationRequest, Hydrations } from "../ports/hydrations.ts";
import type { SealContext, Vault } from "../ports/vault.ts";
import type { Self } from "../runtime/kind.ts";
import { reseal, type Sealed } from "./reseal.ts";
import type { HydrationPurpose, SecretsRequest, ServiceEffect, ServiceMessage, ServiceState } from "./service.ts";

export interface ServicePorts {
  readonly vault: Vault;
  readonly hydrations: Hydrations;
}

export async function performServiceEffect(
  effect: ServiceEffect,
  self: Self<ServiceMessage>,
  ports: ServicePorts,
): Promise<ServiceMessage | undefined> {
  switch (effect.type) {
    case "sealSecrets":
      return sealSecrets(effect.state, effect.request, ports.vault);
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
      const purpose = { kind: "replace", ticket: "replace" } as const;
      const ready: ServiceMessage = { type: "replacementReady", basis, content };
      return hydrate(candidate, purpose, ready, async () => content.definition.plan, ports);
    }
    case "drop":
      ports.hydrations.drop(self.key);
      return undefined;
  }
}

function sealSecrets(state: ServiceState, request: SecretsRequest, vault: Vault): ServiceMessage {
  try {
    const { next: secrets, outdated } = patchSettings({
      kind: "secrets",
      schema: state.secretsSchema,
      stored: openSecrets(state, vault),
      operations: request.patch,
      enforceRequired: state.enabled,
    });
    const sealed = {
      envelope: vault.seal(JSON.stringify(secrets), secretsContext(state)),
      present: presentPointers(secrets),
      outdated,
    };
    return { type: "secretsSealed", sealed, basis: state.secrets, request };
  } catch (error) {
    if (!isFailure(error)) throw error;
    return { type: "secretsRefused", ticket: request.ticket, failure: error };
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
  const secrets = openSecrets(state, vault);
  requireValid("secrets", settingsProblems(state.secretsSchema, secrets));
  return {
    serviceId: state.id,
    generation: state.generation,
    adapter: state.adapter,
    plan: {
      hash: state.planHash,
      load: async () => {
        const text = await plan();
        if (text === undefined) throw new Error(`Service "${state.id}" has lost its plan`);
        return text;
      },
    },
    config: withDefaults(state.configSchema, state.config),
    secrets: declaredPart(state.secretsSchema, secrets),
  };
}

function openSecrets(state: ServiceState, vault: Vault): Record<string, unknown> {
  if (state.secrets === null) return {};
  return JSON.parse(vault.open(state.secrets, secretsContext(state))) as Record<string, unknown>;
}

export function sealedInService(state: ServiceState): readonly Sealed[] {
  return state.secrets === null ? [] : [{ envelope: state.secrets, context: secretsContext(state) }];
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
