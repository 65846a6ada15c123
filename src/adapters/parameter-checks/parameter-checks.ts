/**
 * Parameter checks for every adapter that has JSON Schemas from elsewhere, in supervised workers, so that a schema or pattern which takes
 * for ever ends a worker and not the server. A worker keeps compiled checks by key and says when it lacks one.
 *
 * There are two, because a worker does one thing at a time: schemas that are large, and those that held their worker up once, go to the
 * slow one and wait for each other there. A tool whose pattern hangs costs the others one restart of the quick worker, ever.
 */
import { LRUCache } from "lru-cache";
import { Failure, isFailure } from "../../errors/failure.ts";
import { measure } from "../../json/safety.ts";
import {
  documentParseMs,
  parameterCheckMemoryMb,
  parametersCheckMs,
  quickSchemaWeightMax,
  schemaRefusalKeptMs,
  schemaRefusalsKeptMax,
  slowSchemasKnownMax,
} from "../../limits.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Log } from "../../ports/log.ts";
import type { ParameterCheck, ParameterChecks } from "../../ports/parameter-checks.ts";
import { untilAborted } from "../until-aborted.ts";
import { openSupervisedWorker, type SupervisedWorker } from "../worker/supervised-worker.ts";
import type { Checked, CheckInput, CompileInput } from "./check-worker.ts";

export interface ParameterChecksOptions {
  readonly clock: Clock;
  readonly log: Log;
}

/** The extension follows this file's own, so that the built package starts its built worker. */
const workerEntry = new URL(
  `./check-worker${import.meta.url.slice(import.meta.url.lastIndexOf("."))}`,
  import.meta.url,
);

/** Compile, then check; each time the worker was lost meanwhile, by another tool's doing, costs one more. */
const supplyRoundsMax = 20;

export function openParameterChecks(options: ParameterChecksOptions): ParameterChecks {
  return new WorkerChecks(options);
}

/** A schema that was refused, by itself or for its time, is not compiled again for each call of its tool. */
interface Refusal {
  readonly failure: Failure;
  /** By the clock's `monotonic`. */
  readonly until: number;
}

class WorkerChecks implements ParameterChecks {
  readonly #quick: SupervisedWorker;
  readonly #slow: SupervisedWorker;
  readonly #clock: Clock;
  /** Keys that go to the slow worker. */
  readonly #slowKeys = new LRUCache<string, true>({ max: slowSchemasKnownMax });
  /** Shared by calls that wait for the same schema, so that a fresh worker gets it once. */
  readonly #supplies = new Map<string, Promise<unknown>>();
  readonly #refusals = new LRUCache<string, Refusal>({ max: schemaRefusalsKeptMax });

  constructor({ clock, log }: ParameterChecksOptions) {
    this.#clock = clock;
    const open = (name: string): SupervisedWorker =>
      openSupervisedWorker({ name, entry: workerEntry, memoryMb: parameterCheckMemoryMb, clock, log });
    this.#quick = open("parameter worker");
    this.#slow = open("slow parameter worker");
  }

  async check(check: ParameterCheck): Promise<void> {
    const { key, parameters, subject, signal } = check;
    const refusal = this.#refusals.get(key);
    if (refusal !== undefined && refusal.until > this.#clock.monotonic()) throw refusal.failure;
    const input: CheckInput = { key, parameters, subject };
    for (let round = 0; round < supplyRoundsMax; round += 1) {
      const worker = this.#workerOf(key);
      const request = { method: "check", input, timeoutMs: parametersCheckMs, subject, signal };
      const { lacks } = (await worker.call(request).catch((error: unknown) => this.#blame(key, error))) as Checked;
      if (lacks === null) return;
      await untilAborted(this.#supply(check), signal);
    }
    throw new Failure("overloaded", `${subject} could not be checked: other tools keep ending the parameter worker`);
  }

  async close(): Promise<void> {
    await Promise.all([this.#quick.close(), this.#slow.close()]);
  }

  #workerOf(key: string): SupervisedWorker {
    return this.#slowKeys.has(key) ? this.#slow : this.#quick;
  }

  /** A check that took too long ended its worker: from now on it may end the slow one. */
  #blame(key: string, error: unknown): never {
    if (isFailure(error) && error.kind === "timeout") this.#slowKeys.set(key, true);
    throw error;
  }

  #supply(check: ParameterCheck): Promise<unknown> {
    const running = this.#supplies.get(check.key);
    if (running !== undefined) return running;
    const supply = this.#compile(check).finally(() => this.#supplies.delete(check.key));
    this.#supplies.set(check.key, supply);
    return supply;
  }

  async #compile({ key, schema, subject }: ParameterCheck): Promise<void> {
    if (measure(schema).weight > quickSchemaWeightMax) this.#slowKeys.set(key, true);
    const input: CompileInput = { key, schema };
    const about = `The schema of ${subject.slice(0, 1).toLowerCase()}${subject.slice(1)}`;
    try {
      await this.#workerOf(key).call({ method: "compile", input, timeoutMs: documentParseMs, subject: about });
    } catch (error) {
      if (isFailure(error) && (error.kind === "invalid_request" || error.kind === "timeout")) {
        this.#refusals.set(key, { failure: error, until: this.#clock.monotonic() + schemaRefusalKeptMs });
      }
      throw error;
    }
  }
}
