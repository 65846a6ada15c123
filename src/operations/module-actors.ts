/** Modules as operations reach them: found or refused, walked, and asked within the caller's deadline. */
import type { ModuleMessage, ModuleState } from "../actors/module.ts";
import { Failure } from "../errors/failure.ts";
import type { Actors } from "../runtime/actors.ts";
import type { CallContext } from "./operation.ts";

export type ModuleActors = Actors<ModuleState, ModuleMessage>;

export async function findModule(modules: ModuleActors, id: string): Promise<ModuleState> {
  const { state } = await modules.query(id);
  if (state === null) throw new Failure("not_found", `There is no module "${id}"`);
  return state;
}

export async function askModule(
  modules: ModuleActors,
  id: string,
  message: ModuleMessage,
  { deadline }: Pick<CallContext, "deadline">,
): Promise<ModuleState> {
  return (await modules.ask(id, message, { deadline })) as ModuleState;
}
