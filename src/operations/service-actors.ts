/** Services as operations reach them: found or refused, and asked within the caller's deadline. */
import type { ServiceMessage, ServiceState } from "../actors/service.ts";
import { Failure } from "../errors/failure.ts";
import type { Actors } from "../runtime/actors.ts";
import type { CallContext } from "./operation.ts";

export type ServiceActors = Actors<ServiceState, ServiceMessage>;

export async function findService(services: ServiceActors, id: string): Promise<ServiceState> {
  const { state } = await services.query(id);
  if (state === null) throw new Failure("not_found", `There is no service "${id}"`);
  return state;
}

export async function askService(
  services: ServiceActors,
  id: string,
  message: ServiceMessage,
  { deadline }: CallContext,
): Promise<ServiceState> {
  return (await services.ask(id, message, { deadline })) as ServiceState;
}
