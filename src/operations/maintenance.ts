/** What operators do to the whole server (decisions, section 11): drain it, take a backup of it, have its store proved. */
import { z } from "zod";
import { type Draining, findingSubjects, type Maintenance } from "../ports/maintenance.ts";
import type { RpcStream } from "./operation.ts";
import { instant } from "./shapes.ts";

const nothing = z.object({});
const count = z.int().nonnegative();

const drainOutput = z.object({
  state: z.enum(["draining", "drained", "cut"]),
  running: count,
  queued: count,
  leftMs: count,
});

const backupOutput = z.object({
  header: z
    .object({
      serverVersion: z.string(),
      storeFormat: count,
      epoch: count,
      takenAt: instant,
      secretsKeyIds: z.array(z.string()),
      packages: count,
      packagesLeftOut: z.array(z.object({ id: z.string(), hash: z.string(), reason: z.string() })),
    })
    .optional(),
  chunk: z.instanceof(Uint8Array).optional(),
  trailer: z.object({ entries: count, packages: count, files: count, bytes: count }).optional(),
});

const counts = z.object({
  tables: count,
  records: count,
  indexEntries: count,
  wakes: count,
  blobs: count,
  secrets: count,
  packages: count,
  findings: count,
});

const verifyOutput = z.object({
  progress: counts.optional(),
  finding: z.object({ subject: z.enum(findingSubjects), address: z.string(), problem: z.string() }).optional(),
  summary: counts.optional(),
});

export interface MaintenanceParts {
  readonly maintenance: Maintenance;
  readonly draining: Draining;
}

export function maintenanceStreams({ maintenance, draining }: MaintenanceParts): readonly RpcStream[] {
  const drain: RpcStream<object, z.infer<typeof drainOutput>> = {
    name: "drain",
    summary: "Let what was admitted finish, then end the server",
    rpcService: "MaintenanceService",
    role: "operator",
    input: nothing,
    output: drainOutput,
    open: async (_, { caller }) => draining.begin(caller.name),
  };
  const backup: RpcStream<object, z.infer<typeof backupOutput>> = {
    name: "backup",
    summary: "Take a backup while the server runs",
    rpcService: "MaintenanceService",
    role: "operator",
    input: nothing,
    output: backupOutput,
    failures: ["overloaded", "timeout"],
    open: async (_, { signal }) => maintenance.backup(signal) as AsyncIterable<z.infer<typeof backupOutput>>,
  };
  const verify: RpcStream<object, z.infer<typeof verifyOutput>> = {
    name: "verify",
    summary: "Prove the whole store while the server runs",
    rpcService: "MaintenanceService",
    role: "operator",
    input: nothing,
    output: verifyOutput,
    failures: ["overloaded", "timeout"],
    open: async (_, { signal }) => maintenance.verify(signal),
  };
  return [drain, backup, verify];
}
