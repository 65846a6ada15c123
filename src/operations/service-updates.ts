/** Newer content for installed services: from their registry, or from their stored document. */
import semver from "semver";
import { z } from "zod";
import type { ServiceMessage, ServiceState } from "../actors/service.ts";
import { Failure } from "../errors/failure.ts";
import { documentFetchMs, documentParseMs } from "../limits.ts";
import { constraint } from "./constraint.ts";
import type { CallContext, Operation } from "./operation.ts";
import { askService, findService, type ServiceActors } from "./service-actors.ts";
import type { ServiceContents } from "./service-contents.ts";

export interface ServiceUpdateOptions {
  readonly services: ServiceActors;
  readonly contents: ServiceContents;
}

const byService = z.object({ serviceId: z.string().min(1) });
const updatedShape = z.object({ id: z.string(), updated: z.boolean(), version: z.string() });
const autoUpdateInput = byService.extend({ autoUpdate: z.boolean(), constraint: constraint.nullable().default(null) });
const autoUpdateShape = z.object({ id: z.string(), autoUpdate: z.boolean(), constraint: z.string().nullable() });

export function serviceUpdateOperations({ services, contents }: ServiceUpdateOptions): readonly Operation[] {
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
    extraDeadlineMs: () => 3 * documentFetchMs + documentParseMs,
    run: async ({ serviceId }, context) => {
      const state = await find(serviceId);
      if (state.registry === null) {
        throw new Failure(
          "conflict",
          `Service "${serviceId}" was not installed from a registry: it has nothing to update from`,
        );
      }
      const content = await contents.newer(
        state,
        state.registry,
        (version) => isNewer(version, state.version),
        context,
      );
      if (content === undefined) return { id: serviceId, updated: false, version: state.version };
      const after = await ask(serviceId, { type: "replace", content }, context);
      return { id: serviceId, updated: true, version: after.version };
    },
  };

  const sync: Operation<z.infer<typeof byService>, z.infer<typeof updatedShape>> = {
    name: "syncService",
    summary: "Make the tools again from the stored definition document",
    rpcService,
    route: { method: "POST", path: "/services/{serviceId}/sync", body: "fields", status: 200 },
    role: "operator",
    input: byService,
    output: updatedShape,
    extraDeadlineMs: () => documentParseMs,
    run: async ({ serviceId }, context) => {
      const state = await find(serviceId);
      const document = (await services.blob(serviceId, "document")) ?? "";
      try {
        const content = await contents.again(state, document);
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
    run: async ({ serviceId, autoUpdate, constraint }, context) => {
      const state = await ask(serviceId, { type: "setAutoUpdate", autoUpdate, constraint }, context);
      return { id: serviceId, autoUpdate: state.autoUpdate, constraint: state.autoUpdateConstraint };
    },
  };

  return [update, sync, setAutoUpdate];
}

/** A version that is no semver, as documents may have, is older than any that is. */
function isNewer(version: string, than: string): boolean {
  return semver.valid(than) === null || semver.gt(version, than);
}
