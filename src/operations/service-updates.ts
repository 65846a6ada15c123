/** Newer content for installed services: from their registry, or from their stored document. */
import { z } from "zod";
import type { ServiceMessage, ServiceState } from "../actors/service.ts";
import { partialSettings } from "../actors/service-effects.ts";
import { Failure } from "../errors/failure.ts";
import { documentFetchMs, documentParseMs } from "../limits.ts";
import type { Vault } from "../ports/vault.ts";
import { constraint } from "./constraint.ts";
import type { CallContext, Operation } from "./operation.ts";
import { isNewer } from "./releases.ts";
import { askService, findService, type ServiceActors } from "./service-actors.ts";
import type { ServiceContents } from "./service-contents.ts";
import { serviceIdField } from "./shapes.ts";

export interface ServiceUpdateOptions {
  readonly services: ServiceActors;
  readonly contents: ServiceContents;
  readonly vault: Vault;
}

const byService = z.object({ serviceId: serviceIdField });
const updatedShape = z.object({
  id: serviceIdField,
  updated: z.boolean().describe("A newer definition was taken, or the tools were made again"),
  version: z.string().meta({ description: "Version of the definition", example: "1.2.0" }),
});
const autoUpdateInput = byService.extend({ autoUpdate: z.boolean(), constraint: constraint.nullable().default(null) });
const autoUpdateShape = z.object({
  id: serviceIdField,
  autoUpdate: z.boolean(),
  constraint: z.string().nullable().meta({ description: "As given; null: the newest", example: null }),
});

export function serviceUpdateOperations(options: ServiceUpdateOptions): readonly Operation[] {
  const { services, contents, vault } = options;
  const rpcService = "ServiceService";

  const find = (id: string): Promise<ServiceState> => findService(services, id);
  const ask = (id: string, message: ServiceMessage, context: CallContext): Promise<ServiceState> =>
    askService(services, id, message, context);

  const update: Operation<z.infer<typeof byService>, z.infer<typeof updatedShape>> = {
    name: "updateService",
    summary: "Take the newest version its registry offers within the constraint, never an older one",
    rpcService,
    route: { method: "POST", path: "/services/{serviceId}/update", body: "fields", status: 200 },
    role: "operator",
    input: byService,
    output: updatedShape,
    failures: ["conflict", "upstream_failed"],
    extraDeadlineMs: () => 3 * documentFetchMs + documentParseMs,
    run: async ({ serviceId }, context) => {
      const state = await find(serviceId);
      const after = await updateService(options, state, context);
      return { id: serviceId, updated: after !== undefined, version: after?.version ?? state.version };
    },
  };

  const sync: Operation<z.infer<typeof byService>, z.infer<typeof updatedShape>> = {
    name: "syncService",
    summary:
      "Make the tools again: asked of the target where it says itself what it offers, else from the stored document",
    rpcService,
    route: { method: "POST", path: "/services/{serviceId}/sync", body: "fields", status: 200 },
    role: "operator",
    input: byService,
    output: updatedShape,
    failures: ["conflict", "upstream_failed"],
    extraDeadlineMs: () => documentParseMs,
    run: async ({ serviceId }, context) => {
      const state = await find(serviceId);
      const document = (await services.blob(serviceId, "document")) ?? "";
      try {
        const content = await contents.again(state, document, partialSettings(state, vault), context);
        const after = await ask(serviceId, { type: "replace", content }, context);
        return { id: serviceId, updated: true, version: after.version };
      } catch (error) {
        // The adapter reads documents differently now: what it made before must not be called any more.
        if (error instanceof Failure && error.kind === "invalid_request" && state.stale === null && !state.enabled) {
          await ask(serviceId, { type: "markStale", reason: error.message }, context);
        }
        throw error;
      }
    },
  };

  const setAutoUpdate: Operation<z.infer<typeof autoUpdateInput>, z.infer<typeof autoUpdateShape>> = {
    name: "setServiceAutoUpdate",
    summary: "Set whether the service takes part in the background update sweep, and within which range",
    rpcService,
    route: { method: "POST", path: "/services/{serviceId}/auto-update", body: "fields", status: 200 },
    role: "operator",
    input: autoUpdateInput,
    output: autoUpdateShape,
    failures: ["conflict"],
    run: async ({ serviceId, autoUpdate, constraint }, context) => {
      const state = await ask(serviceId, { type: "setAutoUpdate", autoUpdate, constraint }, context);
      return { id: serviceId, autoUpdate: state.autoUpdate, constraint: state.autoUpdateConstraint };
    },
  };

  return [update, sync, setAutoUpdate];
}

/** The state after the update, or undefined when there is nothing newer. Also what the sweep does. */
export async function updateService(
  { services, contents }: Pick<ServiceUpdateOptions, "services" | "contents">,
  state: ServiceState,
  context: CallContext,
): Promise<ServiceState | undefined> {
  const { id, registry, version } = state;
  if (registry === null) {
    throw new Failure("conflict", `Service "${id}" was not installed from a registry: it has nothing to update from`);
  }
  const content = await contents.newer(state, registry, (offered) => isNewer(offered, version), context);
  return content === undefined ? undefined : askService(services, id, { type: "replace", content }, context);
}
