/** What parts of the server know of themselves, read when somebody collects: nothing is counted twice, and nothing while nobody looks. */
import { Counter, Gauge, type Registry } from "prom-client";
import type { ActorCensus } from "../ports/metrics.ts";

export interface MetricSources {
  readonly runs: () => { readonly waiting: number; readonly executing: number; readonly slots: number };
  readonly actors: () => readonly ActorCensus[];
  readonly deadLetters: () => Readonly<Record<string, number>>;
  readonly store: () => {
    readonly commits: number;
    readonly queued: number;
    readonly reopens: number;
    readonly isFailing: boolean;
  };
  readonly moduleProcesses: () => number;
  /** In use; `untilMs`: epoch milliseconds. */
  readonly certificates: () => readonly { readonly name: string; readonly untilMs: number }[];
}

export function readOnCollect(registry: Registry, sources: MetricSources): void {
  const register = { registers: [registry] };
  new Gauge({
    ...register,
    name: "troupe_processes",
    help: "Runs waiting for a slot, and running",
    labelNames: ["state"],
    collect() {
      const { waiting, executing } = sources.runs();
      this.set({ state: "queued" }, waiting);
      this.set({ state: "running" }, executing);
    },
  });
  new Gauge({
    ...register,
    name: "troupe_run_slots",
    help: "Runs that may be alive at once",
    collect() {
      this.set(sources.runs().slots);
    },
  });
  addActors(registry, sources);
  new Counter({
    ...register,
    name: "troupe_dead_letters_total",
    help: "Messages that reached no actor",
    labelNames: ["reason"],
    collect() {
      this.reset();
      for (const [reason, count] of Object.entries(sources.deadLetters())) this.inc({ reason }, count);
    },
  });
  addStore(registry, sources);
  new Gauge({
    ...register,
    name: "troupe_module_processes",
    help: "Processes of modules that are alive",
    collect() {
      this.set(sources.moduleProcesses());
    },
  });
  new Gauge({
    ...register,
    name: "troupe_certificate_expires_timestamp_seconds",
    help: "When a certificate of the control plane's TLS ends, of several in one file the next to end",
    labelNames: ["certificate"],
    collect() {
      this.reset();
      for (const { name, untilMs } of sources.certificates()) this.set({ certificate: name }, untilMs / 1_000);
    },
  });
}

/** One walk over the cells for all of them: it is made for the first, and the others are collected in the same turn. */
function addActors(registry: Registry, sources: MetricSources): void {
  let census: readonly ActorCensus[] | undefined;
  const taken = (): readonly ActorCensus[] => {
    if (census === undefined) {
      census = sources.actors();
      queueMicrotask(() => {
        census = undefined;
      });
    }
    return census;
  };
  const gauge = (name: string, help: string, read: (kind: ActorCensus) => number): void => {
    new Gauge({
      name,
      help,
      labelNames: ["kind"],
      registers: [registry],
      collect() {
        for (const kind of taken()) this.set({ kind: kind.kind }, read(kind));
      },
    });
  };
  const counter = (name: string, help: string, read: (kind: ActorCensus) => number): void => {
    new Counter({
      name,
      help,
      labelNames: ["kind"],
      registers: [registry],
      collect() {
        this.reset();
        for (const kind of taken()) this.inc({ kind: kind.kind }, read(kind));
      },
    });
  };
  gauge("troupe_actors_resident", "Actors in memory", ({ resident }) => resident);
  gauge("troupe_actors_parked", "Actors given up until an operator restarts them", ({ parked }) => parked);
  gauge("troupe_actor_mailbox_depth_max", "Messages in the fullest mailbox", ({ mailboxDepthMax }) => mailboxDepthMax);
  counter("troupe_actor_turns_total", "Messages decided", ({ turns }) => turns);
  counter("troupe_actor_crashes_total", "Messages and effects that crashed", ({ crashes }) => crashes);
  counter("troupe_actor_restarts_total", "Actors restarted from their records", ({ restarts }) => restarts);
}

function addStore(registry: Registry, sources: MetricSources): void {
  const register = { registers: [registry] };
  new Counter({
    ...register,
    name: "troupe_store_commits_total",
    help: "Commits answered",
    collect() {
      this.reset();
      this.inc(sources.store().commits);
    },
  });
  new Counter({
    ...register,
    name: "troupe_store_reopens_total",
    help: "Times the store was opened again after a failure",
    collect() {
      this.reset();
      this.inc(sources.store().reopens);
    },
  });
  // A store that fails until the server ends is never opened again: its reopenings stay at nothing.
  new Gauge({
    ...register,
    name: "troupe_store_failing",
    help: "1 while the store takes neither reads nor writes",
    collect() {
      this.set(sources.store().isFailing ? 1 : 0);
    },
  });
  new Gauge({
    ...register,
    name: "troupe_store_commits_queued",
    help: "Commits waiting for their batch",
    collect() {
      this.set(sources.store().queued);
    },
  });
}
