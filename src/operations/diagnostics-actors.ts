/** The supervision tree for operators: who is in memory and how they are, one actor with its state, and bringing a parked one back. */
import { z } from "zod";
import { Failure, isFailure } from "../errors/failure.ts";
import { actorRestartPollMs, actorRestartWaitMs, mailboxMessagesMax } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import { type Address, addressText } from "../runtime/kind.ts";
import type { ActorInspection, System } from "../runtime/system.ts";
import { deadLetterOf, deadLetterShape } from "./diagnostics-dead-letters.ts";
import { actorCount } from "./diagnostics-node.ts";
import type { CallContext, RpcOperation } from "./operation.ts";
import { decodeCursor, encodeCursor } from "./page.ts";
import { cursor, flag, instant, isoTime, jsonObject, pageLimit, text } from "./shapes.ts";

export interface Masking {
  /** JSON of a state, without secrets. */
  state(state: unknown): unknown;
  sentence(text: string): string;
}

export interface ActorDiagnosticsParts {
  readonly system: Pick<System, "census" | "inspect" | "inspectOne" | "query" | "restart" | "deadLetters">;
  readonly mask: Masking;
  readonly clock: Clock;
  readonly log: Log;
}

const phases = ["loading", "ready", "turning", "restarting", "parked", "stored"] as const;

const actorShape = z.object({
  kind: z.string(),
  id: z.string(),
  pid: z.int().optional(),
  phase: z.enum(phases),
  mailboxDepth: z.int(),
  restarts: z.int(),
  lastError: z.string().optional(),
  lastErrorAt: instant.optional(),
});
type Actor = z.infer<typeof actorShape>;

const listInput = z.object({
  kind: text().optional(),
  onlyParked: flag.default(false),
  onlyTroubled: flag.default(false),
  cursor,
  limit: pageLimit,
});

const listOutput = z.object({
  node: z.object({ kinds: z.array(z.object({ count: actorCount, actors: z.array(actorShape) })) }),
  nextCursor: z.string().nullable(),
  hasMore: z.boolean(),
});

const addressInput = z.object({
  kind: text().min(1, "must not be blank"),
  id: text().min(1, "must not be blank").max(1_024, "must have at most 1024 characters"),
});

const getOutput = z.object({
  actor: z.object({
    actor: actorShape,
    state: jsonObject.optional(),
    stateProblem: z.string().optional(),
    deadLetters: z.array(deadLetterShape),
  }),
});

const restartOutput = z.object({
  outcome: z.enum(["restarted", "notParked", "restarting"]),
  message: z.string(),
  actor: actorShape,
});

/** Newest dead letters told with one actor. */
const deadLettersToldMax = 10;

export function actorDiagnostics(parts: ActorDiagnosticsParts): readonly RpcOperation[] {
  const { system, mask } = parts;
  const list: RpcOperation<z.infer<typeof listInput>, z.infer<typeof listOutput>> = {
    name: "listActors",
    summary: "The supervision tree: actors in memory, by kind",
    rpcService: "DiagnosticsService",
    role: "operator",
    input: listInput,
    output: listOutput,
    run: async (asked) => {
      if (asked.kind !== undefined) requireKind(system, asked.kind);
      const after = asked.cursor === undefined ? undefined : placeOf(asked.cursor);
      const found = nextActors(system.inspect(), (actor) => isAsked(actor, asked), after, asked.limit + 1);
      const shown = found.slice(0, asked.limit);
      const last = found.length > asked.limit ? shown.at(-1) : undefined;
      const kinds = [...system.census()].sort((a, b) => compare(a.kind, b.kind));
      return {
        node: {
          kinds: kinds.map((count) => ({
            count,
            actors: shown.filter(({ address }) => address.kind === count.kind).map((one) => toActor(one, mask)),
          })),
        },
        nextCursor: last === undefined ? null : encodeCursor([last.address.kind, last.pid]),
        hasMore: last !== undefined,
      };
    },
  };
  const get: RpcOperation<Asked, z.infer<typeof getOutput>> = {
    name: "getActor",
    summary: "One actor with its state, secrets masked",
    rpcService: "DiagnosticsService",
    role: "operator",
    input: addressInput,
    output: getOutput,
    failures: ["not_found"],
    run: async (asked) => ({ actor: await actorDetail(parts, addressOf(system, asked)) }),
  };
  const restart: RpcOperation<Asked, z.infer<typeof restartOutput>> = {
    name: "restartActor",
    summary: "Bring a parked actor back from its record",
    rpcService: "DiagnosticsService",
    role: "operator",
    input: addressInput,
    output: restartOutput,
    failures: ["not_found", "conflict"],
    run: (asked, context) => restartActor(parts, addressOf(system, asked), context),
  };
  return [list, get, restart];
}

type Asked = z.infer<typeof addressInput>;

async function actorDetail({ system, mask }: ActorDiagnosticsParts, address: Address) {
  const inspection = system.inspectOne(address);
  const { state, stateProblem } = await stateOf(system, address, mask);
  if (state === undefined && stateProblem === undefined && inspection?.phase !== "parked") throw absent(address);
  const deadLetters = system.deadLetters
    .list()
    .filter(({ address: { kind, key } }) => kind === address.kind && key === address.key);
  return {
    actor: inspection === undefined ? storedActor(address) : toActor(inspection, mask),
    ...(state === undefined ? {} : { state }),
    ...(stateProblem === undefined ? {} : { stateProblem }),
    deadLetters: deadLetters.slice(-deadLettersToldMax).reverse().map(deadLetterOf),
  };
}

async function stateOf(
  system: ActorDiagnosticsParts["system"],
  address: Address,
  mask: Masking,
): Promise<{ state?: Record<string, unknown>; stateProblem?: string }> {
  try {
    const { state } = await system.query(address);
    return state === null ? {} : { state: mask.state(state) as Record<string, unknown> };
  } catch (error) {
    if (!isFailure(error)) throw error;
    const { cause } = error;
    return {
      stateProblem: mask.sentence(cause instanceof Error ? `${error.message}: ${cause.message}` : error.message),
    };
  }
}

async function restartActor(parts: ActorDiagnosticsParts, address: Address, { caller, requestId }: CallContext) {
  const { system, mask, log } = parts;
  const name = addressText(address);
  const before = system.inspectOne(address);
  if (before?.phase !== "parked") {
    const { actor } = await actorDetail(parts, address);
    return { outcome: "notParked" as const, message: `Actor "${name}" is not parked: nothing was done`, actor };
  }
  log.warn("actor-restarted", `A parked actor was restarted by "${caller.name}"`, { actor: name, requestId });
  system.restart(address);
  const after = await settled(parts, address);
  const why = after?.lastError === undefined ? "" : `: ${mask.sentence(after.lastError)}`;
  if (after?.phase === "parked")
    throw new Failure("conflict", `Actor "${name}" was restarted and is parked again${why}`);
  const actor = after === undefined ? storedActor(address) : toActor(after, mask);
  if (after?.phase === "loading" || after?.phase === "restarting") {
    return { outcome: "restarting" as const, message: `Actor "${name}" is still restarting${why}`, actor };
  }
  return { outcome: "restarted" as const, message: `Actor "${name}" takes messages again`, actor };
}

/** How it is once its record was read; undefined when it has left memory. */
async function settled(
  { system, clock }: ActorDiagnosticsParts,
  address: Address,
): Promise<ActorInspection | undefined> {
  const end = clock.monotonic() + actorRestartWaitMs;
  for (;;) {
    const seen = system.inspectOne(address);
    const isOnItsWay = seen?.phase === "loading" || seen?.phase === "restarting";
    if (!isOnItsWay || clock.monotonic() >= end) return seen;
    await new Promise<void>((resolve) => clock.after(actorRestartPollMs, resolve));
  }
}

/** Of an actor in the tree. */
type Place = Pick<ActorInspection, "pid"> & { readonly address: Pick<Address, "kind"> };

/** The next of those asked for, by kind and then as they came into memory. Of fifty thousand only a few are held at once. */
function nextActors(
  actors: Iterable<ActorInspection>,
  isWanted: (actor: ActorInspection) => boolean,
  after: Place | undefined,
  count: number,
): readonly ActorInspection[] {
  const found: ActorInspection[] = [];
  /** Whoever comes after it is not among the first. */
  let last: ActorInspection | undefined;
  const keepFirst = (): void => {
    found.sort(inOrder);
    found.splice(count);
    last = found[count - 1];
  };
  for (const actor of actors) {
    if (after !== undefined && inOrder(actor, after) <= 0) continue;
    if ((last !== undefined && inOrder(actor, last) >= 0) || !isWanted(actor)) continue;
    found.push(actor);
    if (found.length >= count * 8) keepFirst();
  }
  keepFirst();
  return found;
}

function inOrder(a: Place, b: Place): number {
  return compare(a.address.kind, b.address.kind) || a.pid - b.pid;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function placeOf(cursorText: string): Place {
  const [kind, pid] = decodeCursor(cursorText, ["string", "number"]);
  return { address: { kind: kind as string }, pid: pid as number };
}

function isAsked(actor: ActorInspection, asked: z.infer<typeof listInput>): boolean {
  if (asked.kind !== undefined && actor.address.kind !== asked.kind) return false;
  if (asked.onlyParked && actor.phase !== "parked") return false;
  return !asked.onlyTroubled || isTroubled(actor);
}

function isTroubled({ phase, lastError, mailboxDepth }: ActorInspection): boolean {
  return (
    phase === "parked" || phase === "restarting" || lastError !== undefined || mailboxDepth > mailboxMessagesMax / 2
  );
}

function toActor(
  { address, pid, phase, mailboxDepth, restarts, lastError, lastErrorAt }: ActorInspection,
  mask: Masking,
): Actor {
  return {
    kind: address.kind,
    id: address.key,
    pid,
    // One that is leaving this very moment.
    phase: phase === "gone" ? "stored" : phase,
    mailboxDepth,
    restarts,
    ...(lastError === undefined ? {} : { lastError: mask.sentence(lastError) }),
    ...(lastErrorAt === undefined ? {} : { lastErrorAt: isoTime(Math.round(lastErrorAt)) }),
  };
}

function storedActor({ kind, key }: Address): Actor {
  return { kind, id: key, phase: "stored", mailboxDepth: 0, restarts: 0 };
}

function addressOf(system: ActorDiagnosticsParts["system"], { kind, id }: Asked): Address {
  requireKind(system, kind);
  return { kind, key: id };
}

function requireKind(system: ActorDiagnosticsParts["system"], kind: string): void {
  const kinds = system.census().map((known) => known.kind);
  if (kinds.includes(kind)) return;
  const description = `must be one of ${kinds.join(", ")}`;
  throw new Failure("invalid_request", `No kind of actor is called "${kind}": kind ${description}`, {
    fields: [{ field: "kind", description }],
  });
}

function absent(address: Address): Failure {
  return new Failure("not_found", `There is no actor "${addressText(address)}"`);
}
