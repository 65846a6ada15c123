/**
 * What the parts of the server tell about their work, for whoever counts it. Labels come from closed sets (routes, rpcs, kinds of
 * failures, adapters that are built in): ids, tools, services and paths of callers are never among them. Times are milliseconds.
 */
import type { FailureKind } from "../errors/failure.ts";

/** One for each route, made when the route is added. `refused`: the kind of failure it was answered with. */
export type RouteMeter = (status: number, durationMs: number, refused: FailureKind | undefined) => void;

/** One for each rpc; `refused` is undefined when it was answered. */
export type RpcMeter = (refused: FailureKind | undefined, durationMs: number) => void;

export interface FaceMetrics {
  /** `path` as a template, such as `/processes/{id}`; undefined for all that no route matches. */
  route(method: string, path: string | undefined): RouteMeter;
  /** `troupe.v1.ProcessService/GetProcess` */
  rpc(name: string): RpcMeter;
}

export interface StoreMetrics {
  /** A batch is on disk. */
  synced(commits: number, durationMs: number): void;
}

export interface ModuleMetrics {
  /** A process of a module is up that had one before, which was lost or left because nobody needed it. */
  processRestarted(): void;
  /** A process of a module ended by itself. */
  processLost(): void;
}

/** What the machine has done since it started, and holds now, by kind of actor. */
export interface ActorCensus {
  readonly kind: string;
  readonly resident: number;
  readonly parked: number;
  /** Messages waiting in the fullest mailbox. */
  readonly mailboxDepthMax: number;
  readonly turns: number;
  readonly crashes: number;
  readonly restarts: number;
}

/** Around each call of a tool: `work` says which adapter it goes through as soon as it knows. */
export type ObserveToolCall = <Result>(
  call: { readonly serviceId: string; readonly toolId: string },
  work: (through: (adapterId: string) => void) => Promise<Result>,
) => Promise<Result>;
