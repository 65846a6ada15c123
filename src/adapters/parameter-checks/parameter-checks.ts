/**
 * Parameter checks for every adapter that has JSON Schemas from elsewhere: one supervised worker, so that a schema or pattern which takes
 * for ever ends that worker and not the server. The worker keeps compiled checks by key and says when it lacks one.
 */
import { LRUCache } from "lru-cache";
import { type Failure, isFailure } from "../../errors/failure.ts";
import {
  documentParseMs,
  parameterCheckMemoryMb,
  parametersCheckMs,
  schemaRefusalKeptMs,
  schemaRefusalsKeptMax,
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

/** Compile, then check; an eviction or a fresh worker in between costs one more. */
const supplyRoundsMax = 5;

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
  readonly #worker: SupervisedWorker;
  readonly #clock: Clock;
  /** Shared by calls that wait for the same schema, so that a fresh worker gets it once. */
  readonly #supplies = new Map<string, Promise<unknown>>();
  readonly #refusals = new LRUCache<string, Refusal>({ max: schemaRefusalsKeptMax });

  constructor({ clock, log }: ParameterChecksOptions) {
    this.#clock = clock;
    this.#worker = openSupervisedWorker({
      name: "parameter worker",
      entry: workerEntry,
      memoryMb: parameterCheckMemoryMb,
      clock,
      log,
    });
  }

  async check(check: ParameterCheck): Promise<void> {
    const { key, parameters, subject, signal } = check;
    const refusal = this.#refusals.get(key);
    if (refusal !== undefined && refusal.until > this.#clock.monotonic()) throw refusal.failure;
    const input: CheckInput = { key, parameters, subject };
    for (let round = 0; round < supplyRoundsMax; round += 1) {
      const request = { method: "check", input, timeoutMs: parametersCheckMs, subject, signal };
      const { lacks } = (await this.#worker.call(request)) as Checked;
      if (lacks === null) return;
      await untilAborted(this.#supply(check), signal);
    }
    throw new Error(`The parameter worker keeps losing schema "${key}"`);
  }

  close(): Promise<void> {
    return this.#worker.close();
  }

  #supply(check: ParameterCheck): Promise<unknown> {
    const running = this.#supplies.get(check.key);
    if (running !== undefined) return running;
    const supply = this.#compile(check).finally(() => this.#supplies.delete(check.key));
    this.#supplies.set(check.key, supply);
    return supply;
  }

  async #compile({ key, schema, subject }: ParameterCheck): Promise<void> {
    const input: CompileInput = { key, schema };
    const about = `The schema of ${subject.slice(0, 1).toLowerCase()}${subject.slice(1)}`;
    try {
      await this.#worker.call({ method: "compile", input, timeoutMs: documentParseMs, subject: about });
    } catch (error) {
      if (isFailure(error) && (error.kind === "invalid_request" || error.kind === "timeout")) {
        this.#refusals.set(key, { failure: error, until: this.#clock.monotonic() + schemaRefusalKeptMs });
      }
      throw error;
    }
  }
}
