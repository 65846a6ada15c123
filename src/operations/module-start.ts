/**
 * Modules at the start of a node. Built-ins are in service before anybody is let in: they start nothing that could hang. Packages
 * follow in the background, so that no module can keep the server from starting.
 */
import type { ModuleMessage } from "../actors/module.ts";
import { isFailure } from "../errors/failure.ts";
import { moduleInstallMs } from "../limits.ts";
import type { BuiltinModule } from "../ports/builtin-module.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { Packages } from "../ports/packages.ts";
import { askModule, type ModuleActors } from "./module-actors.ts";
import type { ModuleUpdates } from "./module-updates.ts";
import { ownContext } from "./operation.ts";
import { eachActor } from "./walk-actors.ts";

export interface ModuleStartOptions {
  readonly modules: ModuleActors;
  readonly builtins: readonly BuiltinModule[];
  readonly updates: ModuleUpdates;
  readonly packages: Packages;
  readonly clock: Clock;
  readonly log: Log;
}

/** Resolves when built-ins are in service; `packages` does when the others have been tried. Neither waits for a module that hangs. */
export async function startModules(options: ModuleStartOptions): Promise<{ readonly packages: Promise<void> }> {
  const { modules, builtins, clock, log } = options;
  for (const builtin of builtins) {
    const context = ownContext("start", clock);
    try {
      await askModule(modules, builtin.id, registration(builtin), context);
      await askModule(modules, builtin.id, { type: "start", missing: builtin.missing }, context);
    } catch (error) {
      if (!isFailure(error)) throw error;
      log.warn("module-start-failed", error.message, { moduleId: builtin.id });
    }
  }
  await removeLeftovers(modules, options.packages);
  return { packages: startPackages(options) };
}

async function startPackages({ updates, clock, log }: ModuleStartOptions): Promise<void> {
  try {
    const counts = await updates.startAll(ownContext("start", clock, moduleInstallMs), "installed");
    if (counts.modules > 0) log.info("modules-started", "Installed modules were looked at", { ...counts });
  } catch (error) {
    log.error("modules-not-started", "Installed modules could not be looked at; reload tries again", { error });
  }
}

/** Of installations and updates that a crash cut off. Before anybody is let in, so that nothing is being installed meanwhile. */
async function removeLeftovers(modules: ModuleActors, packages: Packages): Promise<void> {
  const kept: { id: string; hash: string }[] = [];
  for await (const { id, isBuiltin, hash, previous } of eachActor(modules)) {
    if (isBuiltin) continue;
    kept.push({ id, hash });
    if (previous !== null) kept.push({ id, hash: previous.hash });
  }
  await packages.keepOnly(kept);
}

function registration(builtin: BuiltinModule): ModuleMessage {
  const { id, type, enabledAtFirst, missing, name, description, version, configSchema, secretsSchema } = builtin;
  const content = { name, description, version, hash: "", hasIcon: false, configSchema, secretsSchema };
  return { type: "register", id, moduleType: type, enabled: enabledAtFirst, missing, content };
}
