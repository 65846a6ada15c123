/**
 * A third-party adapter as the server sees it. The module process only makes definitions, hydrates and invokes; describing tools and
 * checking parameters is done here, from the plan. A service is made ready again by itself in a process that does not know it yet.
 */
import { Failure } from "../errors/failure.ts";
import { documentParseMs } from "../limits.ts";
import type {
  Adapter,
  Definition,
  HydratedService,
  Hydration,
  Invocation,
  PlanReference,
  ToolSchemas,
} from "../ports/adapter.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { ParameterChecks } from "../ports/parameter-checks.ts";
import { checkedDefinition } from "./definition-check.ts";
import type { ModuleProcess } from "./module-process.ts";
import { PlanCache } from "./plan-cache.ts";
import type { DehydrateInput, HydrateInput, InvokeInput } from "./runner/adapter-calls.ts";
import type { SupervisedModule } from "./supervised-module.ts";

export interface AdapterOptions {
  readonly module: SupervisedModule;
  readonly parameterChecks: ParameterChecks;
  readonly toolTimeoutMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

export class HostedAdapter implements Adapter {
  readonly id: string;
  readonly #options: AdapterOptions;
  readonly #plans = new PlanCache();
  readonly #faults: DehydrationFaults;
  #lastHydration = 0;

  constructor(options: AdapterOptions) {
    this.#options = options;
    this.id = options.module.id;
    this.#faults = new DehydrationFaults(options);
  }

  async define({ text, url }: { readonly text: string; readonly url?: string | undefined }): Promise<Definition> {
    const subject = `Definition document, read by adapter "${this.id}"`;
    const use = { timeoutMs: documentParseMs, subject };
    const input = { document: text, ...(url !== undefined && { url }) };
    const answer = await this.#options.module.use(use, (process, leftMs) =>
      process.call({ method: "generateDefinition", input, timeoutMs: leftMs(), subject }),
    );
    return checkedDefinition(this.id, answer);
  }

  async describe(plan: PlanReference, toolId: string): Promise<ToolSchemas> {
    return schemasOf(await this.#plans.read(plan), toolId);
  }

  async hydrate(hydration: Hydration): Promise<HydratedService> {
    this.#lastHydration += 1;
    const service = new HostedService(hydration, this.#lastHydration, this.#plans, this.#faults, this.#options);
    try {
      await service.makeReady();
    } catch (error) {
      service.close();
      throw error;
    }
    return service;
  }

  close(): Promise<void> {
    return this.#options.module.close();
  }
}

class HostedService implements HydratedService {
  readonly #hydration: Hydration;
  /** Its number in every process of the module. */
  readonly #number: number;
  readonly #plans: PlanCache;
  readonly #faults: DehydrationFaults;
  readonly #options: AdapterOptions;
  readonly #mask: { remove(): void };
  /** The process that knows the service, or is being told. */
  #ready: { readonly process: ModuleProcess; readonly promise: Promise<void> } | undefined;
  #closed = false;

  constructor(
    hydration: Hydration,
    number: number,
    plans: PlanCache,
    faults: DehydrationFaults,
    options: AdapterOptions,
  ) {
    this.#hydration = hydration;
    this.#number = number;
    this.#plans = plans;
    this.#faults = faults;
    this.#options = options;
    this.#mask = options.module.masks.add(hydration.secrets);
  }

  async makeReady(): Promise<void> {
    const { module, toolTimeoutMs } = this.#options;
    await module.use({ timeoutMs: toolTimeoutMs, subject: this.#subject }, (process) => this.#readyIn(process));
  }

  async invoke({ toolId, parameters, timeoutMs, signal }: Invocation): Promise<unknown> {
    const { module, parameterChecks } = this.#options;
    const { plan } = this.#hydration;
    const { inputSchema } = schemasOf(await this.#plans.read(plan), toolId);
    await parameterChecks.check({
      key: `${plan.hash} ${toolId}`,
      schema: inputSchema,
      parameters,
      subject: `Parameters of tool "${toolId}"`,
      signal,
    });
    const subject = `Tool "${toolId}" of service "${this.#hydration.serviceId}"`;
    const value = await module.use({ timeoutMs, signal, subject }, async (process, leftMs) => {
      await this.#readyWithin(process, leftMs(), signal, subject);
      const input: InvokeInput = {
        hydration: this.#number,
        toolId,
        parameters: parameters as InvokeInput["parameters"],
      };
      return process.call({ method: "invoke", input, timeoutMs: leftMs(), signal, subject });
    });
    return value ?? null;
  }

  close(): void {
    this.#closed = true;
    this.#mask.remove();
    const process = this.#ready?.process;
    if (process !== undefined) this.#dehydrate(process);
  }

  get #subject(): string {
    return `Service "${this.#hydration.serviceId}"`;
  }

  /** One hydration for each process: callers that come meanwhile wait for it. One that failed is tried again by the next call. */
  #readyIn(process: ModuleProcess): Promise<void> {
    if (this.#ready?.process === process) return this.#ready.promise;
    const ready = { process, promise: this.#hydrateIn(process) };
    this.#ready = ready;
    const forget = () => {
      if (this.#ready === ready) this.#ready = undefined;
    };
    ready.promise.catch(forget);
    // A process that is gone is not kept in memory until the next one.
    void process.gone.then(forget);
    return ready.promise;
  }

  /** The hydration is shared and goes on; only this caller leaves. */
  #readyWithin(process: ModuleProcess, leftMs: number, signal: AbortSignal, subject: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = () => reject(new Failure("cancelled", `${subject}: the caller went away`));
    const stopTimer = this.#options.clock.after(leftMs, () =>
      reject(new Failure("timeout", `${subject}: the service was not ready in time`)),
    );
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort);
    this.#readyIn(process).then(resolve, reject);
    return promise.finally(() => {
      stopTimer();
      signal.removeEventListener("abort", onAbort);
    });
  }

  async #hydrateIn(process: ModuleProcess): Promise<void> {
    const { serviceId, config, secrets, plan } = this.#hydration;
    const input: HydrateInput = {
      hydration: this.#number,
      serviceId,
      plan: (await this.#plans.read(plan)).plan,
      config: config as HydrateInput["config"],
      secrets: secrets as HydrateInput["secrets"],
    };
    await process.call({
      method: "hydrate",
      input,
      timeoutMs: this.#options.toolTimeoutMs,
      subject: this.#subject,
    });
    // Closed while it was under way: nobody else will let go of it.
    if (this.#closed) this.#dehydrate(process);
  }

  #dehydrate(process: ModuleProcess): void {
    const input: DehydrateInput = { hydration: this.#number };
    process
      .call({ method: "dehydrate", input, timeoutMs: this.#options.toolTimeoutMs, subject: this.#subject })
      // A process that ends lets go of everything.
      .catch((error: unknown) => process.isEnding || this.#faults.add(this.#hydration.serviceId, error));
  }
}

/** A module that does not let go of services is told of once: a thousand services may leave in one moment. */
class DehydrationFaults {
  readonly #options: AdapterOptions;
  #told = false;

  constructor(options: AdapterOptions) {
    this.#options = options;
  }

  add(serviceId: string, error: unknown): void {
    if (this.#told) return;
    this.#told = true;
    const { log, module } = this.#options;
    log.warn(
      "service-not-let-go",
      `Module "${module.id}" did not let go of a service cleanly; the next are not told of`,
      {
        moduleId: module.id,
        serviceId,
        error,
      },
    );
  }
}

function schemasOf(plan: { schemasOf(toolId: string): ToolSchemas | undefined }, toolId: string): ToolSchemas {
  const schemas = plan.schemasOf(toolId);
  if (schemas === undefined) throw new Failure("not_found", `The service has no tool "${toolId}"`);
  return schemas;
}
