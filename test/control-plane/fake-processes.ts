/** Rows over the real troupe.v1 descriptors with a domain of a few lines: what the faces do is tested, not what processes do. */
import { z } from "zod";
import { Failure, failureKinds } from "../../src/errors/failure.ts";
import type { CallContext, Operation } from "../../src/operations/operation.ts";

const digits = z.union([
  z.number(),
  z
    .string()
    .regex(/^[0-9]+$/, "must be plain digits")
    .transform(Number),
]);
const processId = digits.pipe(z.number().int().positive("must be an integer above 0"));

const snapshot = z.object({
  id: z.int().positive(),
  pid: z.int().positive().nullable(),
  state: z.enum(["queued", "running", "idle", "terminating"]),
  exitState: z.enum(["failed", "success", "timeout", "canceled"]).nullable(),
  error: z.string().nullable(),
  createdAt: z.string(),
  completedAt: z.string().nullable(),
  ref: z.string().optional(),
});
type Snapshot = z.infer<typeof snapshot>;

export const createdAt = "2026-01-02T03:04:05.678Z";

/** `GET /processes/{failingId(kind)}` fails with that kind. */
export function failingId(kind: (typeof failureKinds)[number]): number {
  return 1_000 + failureKinds.indexOf(kind);
}
/** This id makes the row throw what is no Failure; the next hangs until the call is over; then one answers after 300 ms, and one at length. */
export const crashingId = 2_000;
export const hangingId = 2_001;
export const slowId = 2_002;
export const largeId = 2_003;
export const largeAnswerBytes = 8 * 1024 * 1024;
export const secretCause = "database password hunter2 at /srv/secret.ts:42";

export const exhaustion = { limit: 30, remaining: 0, resetAt: 1_800_000_000, retryAfterSeconds: 17 };

export interface FakeDomain {
  readonly operations: readonly Operation[];
  /** Inputs as the rows saw them, newest last. */
  readonly seen: { readonly name: string; readonly input: unknown; readonly context: CallContext }[];
  /** How calls that looked at their signal ended. */
  readonly aborted: unknown[];
}

export function fakeDomain(): FakeDomain {
  const seen: FakeDomain["seen"] = [];
  const aborted: unknown[] = [];

  function snapshotOf(id: number): Snapshot {
    return {
      id,
      pid: null,
      state: "idle",
      exitState: id % 2 === 0 ? "success" : null,
      error: null,
      createdAt,
      completedAt: null,
    };
  }

  async function find(id: number, context: CallContext): Promise<Snapshot> {
    const kind = failureKinds[id - 1_000];
    if (kind !== undefined) throw failureOfKind(kind);
    if (id === crashingId) throw new TypeError(secretCause);
    if (id === slowId) await new Promise((resolve) => setTimeout(resolve, 300));
    if (id === hangingId) {
      await new Promise((resolve) => context.signal.addEventListener("abort", resolve, { once: true }));
      aborted.push(context.signal.reason);
    }
    if (id > 900 && id < 1_000) throw new Failure("not_found", `There is no process ${id}`);
    if (id === largeId) return { ...snapshotOf(id), ref: "r".repeat(largeAnswerBytes) };
    return snapshotOf(id);
  }

  function row<Input, Output>(operation: Operation<Input, Output>): Operation {
    const run = operation.run.bind(operation);
    const recorded: Operation<Input, Output> = {
      ...operation,
      run(input, context) {
        seen.push({ name: operation.name, input, context });
        return run(input, context);
      },
    };
    return recorded as unknown as Operation;
  }

  const service = { rpcService: "ProcessService", role: "agent" } as const;
  const answer = { field: "process", mediaType: "application/json" } as const;
  const operations = [
    row({
      ...service,
      name: "createProcess",
      summary: "Create",
      route: { method: "POST", path: "/processes", body: "fields", status: 201 },
      input: z.object({
        code: z.string().max(102_400),
        ref: z.string().trim().min(1).optional(),
        timeoutMs: z.number().positive().nullable().optional(),
        envConfig: z.record(z.string(), z.unknown()).optional(),
        autorun: z.boolean().default(true),
      }),
      output: z.object({ id: z.int() }),
      fromRpc: ({ noTimeout, ...rest }) => (noTimeout === true ? { ...rest, timeoutMs: null } : rest),
      run: async () => ({ id: 7 }),
    }),
    row({
      ...service,
      name: "getProcess",
      summary: "Get",
      route: { method: "GET", path: "/processes/{id}", query: ["wait"], body: "none", status: 200, answer },
      input: z.object({ id: processId, wait: digits.optional() }),
      output: z.object({ process: snapshot }),
      run: async ({ id }, context) => ({ process: await find(id, context) }),
    }),
    row({
      ...service,
      name: "listProcesses",
      summary: "List",
      route: {
        method: "GET",
        path: "/processes",
        query: ["ref", "state", "cursor", "limit"],
        body: "none",
        status: 200,
      },
      input: z.object({
        ref: z.string().optional(),
        state: z.string().optional(),
        cursor: z.string().optional(),
        limit: digits.default(20),
      }),
      output: z.object({ items: z.array(snapshot), nextCursor: z.string().nullable(), hasMore: z.boolean() }),
      run: async ({ limit, ref }) => ({
        items: [{ ...snapshotOf(limit), ...(ref === undefined ? {} : { ref }) }],
        nextCursor: null,
        hasMore: false,
      }),
    }),
    row({
      ...service,
      role: "operator",
      name: "deleteProcess",
      summary: "Delete",
      route: { method: "DELETE", path: "/processes/{id}", body: "none", status: 200, answer },
      input: z.object({ id: processId }),
      output: z.object({ process: snapshot }),
      run: async ({ id }, context) => ({ process: await find(id, context) }),
    }),
    row({
      ...service,
      name: "runProcess",
      summary: "Run",
      route: { method: "POST", path: "/processes/{id}/signals/run", body: "fields", status: 200, answer },
      input: z.object({ id: processId, force: z.boolean().default(false) }),
      output: z.object({ process: snapshot }),
      run: async ({ id }, context) => ({ process: await find(id, context) }),
    }),
    row({
      ...service,
      name: "getProcessOutput",
      summary: "Output",
      route: {
        method: "GET",
        path: "/processes/{id}/output",
        query: ["wait"],
        body: "none",
        status: 200,
        answer: { field: "output", mediaType: "application/json" },
      },
      input: z.object({ id: processId, wait: digits.optional() }),
      output: z.object({ output: z.record(z.string(), z.unknown()) }),
      run: async ({ id }) => ({ output: { id, nested: [null, true, { text: "ä😀" }] } }),
    }),
    row({
      ...service,
      name: "getProcessCode",
      summary: "Code",
      route: {
        method: "GET",
        path: "/processes/{id}/code",
        body: "none",
        status: 200,
        answer: { field: "code", mediaType: "text/plain" },
      },
      input: z.object({ id: processId }),
      output: z.object({ code: z.string() }),
      run: async ({ id }) => ({ code: `return ${id}; // ✓` }),
    }),
    row({
      rpcService: "ServiceService",
      role: "operator",
      name: "deleteService",
      summary: "Delete",
      route: { method: "DELETE", path: "/services/{serviceId}", body: "none", status: 204 },
      input: z.object({ serviceId: z.string().min(1) }),
      output: z.object({}),
      run: async () => ({}),
    }),
    row({
      rpcService: "ServiceService",
      role: "agent",
      name: "getServiceConfig",
      summary: "Config",
      route: { method: "GET", path: "/services/{serviceId}/config", body: "none", status: 200, etag: "etag" },
      input: z.object({ serviceId: z.string().min(1) }),
      output: z.object({ config: z.record(z.string(), z.unknown()), outdated: z.array(z.string()), etag: z.string() }),
      run: async () => ({ config: { a: 1 }, outdated: ["/b"], etag: "abc" }),
    }),
    row({
      rpcService: "ServiceService",
      role: "operator",
      name: "patchServiceConfig",
      summary: "Patch",
      route: {
        method: "PATCH",
        path: "/services/{serviceId}/config",
        body: { field: "patch", mediaTypes: ["application/json", "application/json-patch+json"] },
        status: 200,
        ifMatch: "ifMatch",
      },
      input: z.object({
        serviceId: z.string().min(1),
        patch: z.array(
          z.object({ op: z.enum(["add", "remove", "test"]), path: z.string(), value: z.unknown().optional() }),
        ),
        ifMatch: z.string().optional(),
      }),
      output: z.object({ config: z.record(z.string(), z.unknown()), outdated: z.array(z.string()) }),
      run: async ({ patch }) => ({ config: { patched: patch.length }, outdated: [] }),
    }),
    row({
      rpcService: "ToolService",
      role: "agent",
      name: "invokeTool",
      summary: "Invoke",
      route: {
        method: "POST",
        path: "/tools/{serviceId}/{toolId}/invoke",
        body: "fields",
        status: 200,
        answer: { field: "result", mediaType: "application/json" },
      },
      input: z.object({ serviceId: z.string(), toolId: z.string(), parameters: z.unknown().optional() }),
      output: z.object({ result: z.unknown() }),
      run: async ({ parameters }) => ({ result: parameters === undefined ? null : parameters }),
    }),
  ];
  return { operations, seen, aborted };
}

function failureOfKind(kind: (typeof failureKinds)[number]): Failure {
  const message = `Refused as ${kind}`;
  switch (kind) {
    case "rate_limit_exceeded":
      return new Failure(kind, message, { exhaustion });
    case "invalid_request":
      return new Failure(kind, message, { fields: [{ field: "timeoutMs", description: "must be above 0" }] });
    case "unavailable":
      return new Failure(kind, message, { retryAfterSeconds: 5, cause: new Error(secretCause) });
    default:
      return new Failure(kind, message, { cause: new Error(secretCause) });
  }
}
