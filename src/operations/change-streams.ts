/** The streams that tell of the changes of the node: both read the same ring. */
import { NodeChanges, type NodeChangesParts } from "./node-changes.ts";
import { type NodeEventsParts, nodeEventStreams } from "./node-events.ts";
import type { RpcStream } from "./operation.ts";
import { processChangeStreams } from "./process-changes.ts";

export type ChangeStreamsParts = NodeChangesParts & Omit<NodeEventsParts, "changes">;

export function changeStreams(parts: ChangeStreamsParts): readonly RpcStream[] {
  const changes = new NodeChanges(parts);
  return [...processChangeStreams({ ...parts, changes }), ...nodeEventStreams({ ...parts, changes })];
}
