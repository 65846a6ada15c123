/** A descriptor worker that is given a service's plan when it says that it lacks it: it keeps as many as fit, and none after a death. */
import { documentParseMs } from "../../limits.ts";
import type { PlanReference } from "../../ports/adapter.ts";
import { untilAborted } from "../until-aborted.ts";
import type { SupervisedWorker, WorkerRequest } from "../worker/supervised-worker.ts";
import type { Known, LoadInput } from "./descriptor-worker.ts";

/** The first round may lack the plan; another that is loaded in between may push it out once more. */
const supplyRoundsMax = 4;

export class PlannedWorker {
  readonly worker: SupervisedWorker;
  readonly #loads = new Map<string, Promise<unknown>>();

  constructor(worker: SupervisedWorker) {
    this.worker = worker;
  }

  async ask<T>(plan: PlanReference, request: WorkerRequest): Promise<T> {
    for (let round = 0; round < supplyRoundsMax; round += 1) {
      const known = (await this.worker.call(request)) as Known<T>;
      if ("value" in known) return known.value;
      await untilAborted(this.#load(plan), request.signal);
    }
    throw new Error(`The gRPC worker keeps losing plan "${plan.hash}"`);
  }

  /** Shared by calls that wait for the same plan, so that a fresh worker gets a large one once. */
  #load(plan: PlanReference): Promise<unknown> {
    const running = this.#loads.get(plan.hash);
    if (running) return running;
    const started = this.#startLoad(plan).finally(() => this.#loads.delete(plan.hash));
    this.#loads.set(plan.hash, started);
    return started;
  }

  async #startLoad(plan: PlanReference): Promise<unknown> {
    const input: LoadInput = { hash: plan.hash, plan: await plan.load() };
    return this.worker.call({ method: "load", input, timeoutMs: documentParseMs, subject: "Plan of the service" });
  }
}
