/**
 * Parameter checks for every adapter that has JSON Schemas from elsewhere, in supervised workers, so that a schema or pattern which takes
 * for ever ends a worker and not the server. A worker keeps compiled checks by key and says when it lacks one. Invariants:
 *
 * 1. A call has its worker to itself until it is checked, schema supplied if need be: nobody else's doing can come between.
 * 2. There are three workers, because each does one thing at a time. All schemas start in the quick one; those that are large, or take long
 *    to compile, go on to the patient one; those whose check held a worker up, or cost its life, go to the suspect one and stay there. So a
 *    tool that hangs costs the others one restart of a worker, and a large schema costs them `schemaCompileQuickMs` at most.
 * 3. In each, keys take turns: those that share a worker with a tool that hangs wait for one call of it, whatever number it has.
 */
import { LRUCache } from "lru-cache";
import { Failure, isFailure } from "../../errors/failure.ts";
import { measure } from "../../json/safety.ts";
import {
  documentParseMs,
  parameterCheckMemoryMb,
  parameterChecksWaitingMax,
  parametersCheckMs,
  parameterWorkerIdleMs,
  quickSchemaWeightMax,
  schemaCompileQuickMs,
  schemaRefusalKeptMs,
  schemaRefusalsKeptMax,
  slowSchemasKnownMax,
  workerRequestWaitMs,
} from "../../limits.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Log } from "../../ports/log.ts";
import type { ParameterCheck, ParameterChecks } from "../../ports/parameter-checks.ts";
import { untilAborted } from "../until-aborted.ts";
import { openSupervisedWorker, type SupervisedWorker } from "../worker/supervised-worker.ts";
import type { Checked, CheckInput, CompileInput } from "./check-worker.ts";
import { FairTurns } from "./fair-turns.ts";

export interface ParameterChecksOptions {
  readonly clock: Clock;
  readonly log: Log;
}

/** The extension follows this file's own, so that the built package starts its built worker. */
const workerEntry = new URL(
  `./check-worker${import.meta.url.slice(import.meta.url.lastIndexOf("."))}`,
  import.meta.url,
);

export function openParameterChecks(options: ParameterChecksOptions): ParameterChecks {
  return new WorkerChecks(options);
}

/** In the order in which schemas pass through them. */
const laneNames = ["quick", "patient", "suspect"] as const;
type LaneName = (typeof laneNames)[number];

interface Lane {
  readonly worker: SupervisedWorker;
  readonly turns: FairTurns;
}

/** A schema that was refused, by itself or for its time, is not compiled again for each call of its tool. */
interface Refusal {
  readonly failure: Failure;
  /** By the clock's `monotonic`. */
  readonly until: number;
}

class WorkerChecks implements ParameterChecks {
  readonly #clock: Clock;
  readonly #lanes: Readonly<Record<LaneName, Lane>>;
  /** Keys that are no longer quick. */
  readonly #laneOf = new LRUCache<string, LaneName>({ max: slowSchemasKnownMax });
  readonly #refusals = new LRUCache<string, Refusal>({ max: schemaRefusalsKeptMax });

  constructor({ clock, log }: ParameterChecksOptions) {
    this.#clock = clock;
    const open = (name: string, idleMs?: number): Lane => ({
      worker: openSupervisedWorker({
        name,
        entry: workerEntry,
        memoryMb: parameterCheckMemoryMb,
        idleMs,
        clock,
        log,
      }),
      turns: new FairTurns({ name, waitingMax: parameterChecksWaitingMax, waitMs: workerRequestWaitMs, clock }),
    });
    this.#lanes = {
      quick: open("parameter worker"),
      patient: open("parameter worker for large schemas", parameterWorkerIdleMs),
      suspect: open("parameter worker for schemas that hung", parameterWorkerIdleMs),
    };
  }

  async check(check: ParameterCheck): Promise<void> {
    const { key, signal } = check;
    for (const name of laneNames) {
      if (this.#lane(key) !== name) continue;
      const turn = this.#lanes[name].turns.take({ key, signal }, () => this.#turn(name, check));
      if ((await untilAborted(turn, signal)) === "checked") return;
    }
    throw new Failure("overloaded", `${check.subject} could not be checked: too many tools have slow schemas`);
  }

  async close(): Promise<void> {
    const lanes = Object.values(this.#lanes);
    for (const { turns } of lanes) turns.close();
    await Promise.all(lanes.map(({ worker }) => worker.close()));
  }

  #lane(key: string): LaneName {
    return this.#laneOf.get(key) ?? "quick";
  }

  /** `moved`: it is to be checked in a later lane. Not ended when the caller leaves: who holds a worker up has to be found out. */
  async #turn(name: LaneName, check: ParameterCheck): Promise<"checked" | "moved"> {
    const { key } = check;
    this.#requireNotRefused(key);
    if (this.#lane(key) !== name) return "moved";
    if (await this.#ask(name, check)) return "checked";
    if (name === "quick" && measure(check.schema, quickSchemaWeightMax).weight > quickSchemaWeightMax)
      this.#laneOf.set(key, "patient");
    else await this.#compile(name, check);
    if (this.#lane(key) !== name) return "moved";
    if (await this.#ask(name, check)) return "checked";
    throw new Failure("internal", `The parameter worker lost the schema of ${check.subject}`);
  }

  /** Whether it was checked: the worker may lack the schema. */
  async #ask(name: LaneName, { key, parameters, subject }: ParameterCheck): Promise<boolean> {
    const { worker } = this.#lanes[name];
    const input: CheckInput = { key, parameters, subject };
    try {
      const request = { method: "check", input, timeoutMs: parametersCheckMs, subject };
      return ((await worker.call(request)) as Checked).lacks === null;
    } catch (error) {
      if (hasEnded(worker, error)) this.#laneOf.set(key, "suspect");
      throw error;
    }
  }

  async #compile(name: LaneName, { key, schema, subject }: ParameterCheck): Promise<void> {
    const { worker } = this.#lanes[name];
    const input: CompileInput = { key, schema };
    const about = `The schema of ${subject.slice(0, 1).toLowerCase()}${subject.slice(1)}`;
    const timeoutMs = name === "quick" ? schemaCompileQuickMs : documentParseMs;
    try {
      await worker.call({ method: "compile", input, timeoutMs, subject: about });
    } catch (error) {
      if (name === "quick" && hasEnded(worker, error)) this.#laneOf.set(key, "patient");
      else this.#refuse(key, error);
    }
  }

  #refuse(key: string, error: unknown): never {
    if (isFailure(error) && (error.kind === "invalid_request" || error.kind === "timeout")) {
      this.#refusals.set(key, { failure: error, until: this.#clock.monotonic() + schemaRefusalKeptMs });
    }
    throw error;
  }

  #requireNotRefused(key: string): void {
    const refusal = this.#refusals.get(key);
    if (refusal !== undefined && refusal.until > this.#clock.monotonic()) throw refusal.failure;
  }
}

/** Whether the request ended its worker, by its time or by its death: after any other answer the child is there. */
function hasEnded(worker: SupervisedWorker, error: unknown): boolean {
  const isItsDoing = isFailure(error) && (error.kind === "timeout" || error.kind === "invalid_request");
  return isItsDoing && worker.inspect().pid === null;
}
