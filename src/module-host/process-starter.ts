/**
 * Starts processes of modules: waits for its turn, loads the module, checks that it is what its manifest says, sets it up. A process that
 * does not come so far in time is ended.
 */

import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { Failure } from "../errors/failure.ts";
import { moduleStartMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Fetcher } from "../ports/fetcher.ts";
import type { Log } from "../ports/log.ts";
import type { ModulePackage } from "../ports/packages.ts";
import type { Isolation } from "./isolation.ts";
import { nodeFlags } from "./launch.ts";
import type { Mask } from "./masking.ts";
import { moduleFailure, shownMessage } from "./module-errors.ts";
import { ModuleProcess, StartRefused } from "./module-process.ts";
import type { Place } from "./process-places.ts";
import type { ChildMessageOf } from "./protocol.ts";
import type { RunnerSources } from "./runner-sources.ts";
import type { StartGate } from "./start-gate.ts";

export interface StarterOptions {
  readonly isolation: Isolation;
  readonly dataKbMax: number | undefined;
  readonly sources: RunnerSources | undefined;
  readonly gate: StartGate;
  readonly fetcher: Fetcher;
  readonly toolTimeoutMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly startMs?: number | undefined;
  readonly unresponsiveMs?: number | undefined;
}

export interface Settings {
  readonly config: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, unknown>>;
}

type Hello = ChildMessageOf<"hello">;

export class ProcessStarter {
  readonly #options: StarterOptions;
  readonly #alive = new Set<ModuleProcess>();
  #closed = false;

  constructor(options: StarterOptions) {
    this.#options = options;
  }

  /**
   * The process, loaded, and set up if there are settings. The place is its own from now on, and released when it is gone. Rejects with Failure: invalid_request (cannot be loaded, is not what it says),
   * what its setup threw, timeout; then the process is gone or going.
   * @param signal nobody needs it any more.
   */
  async start(
    modulePackage: ModulePackage,
    settings: Settings | undefined,
    mask: Mask,
    place: Place,
    signal: AbortSignal,
  ): Promise<{ readonly process: ModuleProcess; readonly hello: Hello }> {
    let started: ModuleProcess | undefined;
    const onStart = (process: ModuleProcess) => {
      started = process;
      void process.gone.then(() => place.release());
    };
    try {
      return await this.#start(modulePackage, settings, mask, onStart, signal);
    } finally {
      if (started === undefined) place.release();
    }
  }

  #start(
    { manifest, folder }: ModulePackage,
    settings: Settings | undefined,
    mask: Mask,
    onStart: (process: ModuleProcess) => void,
    signal: AbortSignal,
  ): Promise<{ readonly process: ModuleProcess; readonly hello: Hello }> {
    return this.#options.gate.through(async () => {
      const unwanted = new Failure("unavailable", `Module "${manifest.id}" is not in use any more`);
      if (this.#closed || signal.aborted) throw unwanted;
      const { isolation, sources, startMs = moduleStartMs, clock } = this.#options;
      const flags = sources === undefined ? nodeFlags : [...nodeFlags, sources.flag];
      const realFolder = await realFolderOf(folder, manifest.id);
      const plan = isolation.plan(realFolder, join(realFolder, manifest.main), flags);
      const process = new ModuleProcess({
        ...this.#options,
        plan,
        firstFrame: sources?.frame,
        moduleId: manifest.id,
        mask,
      });
      onStart(process);
      this.#alive.add(process);
      void process.gone.then(() => this.#alive.delete(process));
      let late = false;
      const onAbort = () => process.kill("was closed");
      signal.addEventListener("abort", onAbort);
      const stopTimer = clock.after(startMs, () => {
        late = true;
        process.kill(`was not ready within ${startMs} ms`);
      });
      try {
        return { process, hello: await begin(process, manifest, plan.main, settings) };
      } catch (error) {
        process.kill("could not be started");
        if (signal.aborted) throw unwanted;
        if (late) throw new Failure("timeout", `Module "${manifest.id}" was not ready within ${startMs} ms`);
        throw error;
      } finally {
        stopTimer();
        signal.removeEventListener("abort", onAbort);
      }
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const process of this.#alive) process.kill("was ended with the server");
    await Promise.all([...this.#alive].map(({ gone }) => gone));
  }
}

/** Links resolved: the module loader of the process resolves them too, and finds only what was opened to it. */
async function realFolderOf(folder: string, moduleId: string): Promise<string> {
  try {
    return await realpath(folder);
  } catch (error) {
    throw new Failure("invalid_request", `Module "${moduleId}" cannot be loaded: its folder is missing`, {
      cause: error,
    });
  }
}

async function begin(
  process: ModuleProcess,
  manifest: ModulePackage["manifest"],
  main: string,
  settings: Settings | undefined,
): Promise<Hello> {
  const hello = await process.load(main).catch((error: unknown) => {
    throw loadFailure(process, error);
  });
  if (hello.moduleType !== manifest.type) {
    const type = shownMessage(hello.moduleType, process.mask);
    throw new Failure(
      "invalid_request",
      `Module "${manifest.id}" is of type "${type}", but its manifest says "${manifest.type}"`,
    );
  }
  if (settings === undefined) return hello;
  await process.setUp(settings.config, settings.secrets).catch((error: unknown) => {
    if (!(error instanceof StartRefused)) throw error;
    throw moduleFailure(`Module "${manifest.id}" cannot be set up`, error.thrown, process.mask);
  });
  return hello;
}

function loadFailure(process: ModuleProcess, error: unknown): unknown {
  if (!(error instanceof StartRefused)) return error;
  const reason = shownMessage(error.thrown.message, process.mask);
  return new Failure("invalid_request", `Module "${process.moduleId}" cannot be loaded: ${reason}`);
}
