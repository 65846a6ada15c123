/**
 * The tools of an MCP server, over streamable HTTP or the standard input and output of a process. Documents are read in a worker and
 * parameters checked by the shared checks; the server keeps credentials, sessions and processes.
 */
import { Failure } from "../../errors/failure.ts";
import { documentParseMs, documentWorkerIdleMs, documentWorkerMemoryMb, mcpToolsChangedQuietMs } from "../../limits.ts";
import type {
  Adapter,
  Definition,
  DiscoveryTarget,
  HydratedService,
  Hydration,
  PlanReference,
  ToolSchemas,
} from "../../ports/adapter.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Fetcher } from "../../ports/fetcher.ts";
import type { Log } from "../../ports/log.ts";
import type { ParameterChecks } from "../../ports/parameter-checks.ts";
import { openSupervisedWorker, type SupervisedWorker } from "../worker/supervised-worker.ts";
import { Connection } from "./connection.ts";
import { discoverTools } from "./discovery.ts";
import type { DocumentInput } from "./document-worker.ts";
import { McpService } from "./mcp-service.ts";
import { PlanCache, toolOf } from "./plan.ts";
import { requireAllowed, type ServerAddress, shownServer } from "./server-address.ts";
import type { SessionParts } from "./session.ts";
import { type Target, targetOf } from "./settings.ts";
import { StdioProcesses } from "./stdio-processes.ts";

export interface McpAdapterOptions {
  readonly fetcher: Fetcher;
  /** Whoever opened them closes them. */
  readonly parameterChecks: ParameterChecks;
  /** Executables that may be started, spelled as definitions spell them: absolute paths, or names found on the PATH of this server. */
  readonly stdioCommands: readonly string[];
  /** Of this server, told to MCP servers. */
  readonly version?: string;
  readonly clock: Clock;
  readonly log: Log;
}

export async function openMcpAdapter(options: McpAdapterOptions): Promise<Adapter> {
  return new McpAdapter(options);
}

/** The extension follows this file's own, so that the built package starts its built worker. */
const workerEntry = new URL(
  `./document-worker${import.meta.url.slice(import.meta.url.lastIndexOf("."))}`,
  import.meta.url,
);

class McpAdapter implements Adapter {
  readonly id = "mcp";
  readonly #options: McpAdapterOptions;
  readonly #parts: SessionParts;
  readonly #documents: SupervisedWorker;
  readonly #plans = new PlanCache();
  readonly #processes = new StdioProcesses();
  readonly #connections = new Set<Connection>();
  /** Sessions that are on their way out. */
  readonly #endings = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(options: McpAdapterOptions) {
    const { fetcher, version = "0.0.0", clock, log } = options;
    this.#options = options;
    // Whoever asks for the tools need not be told that they have changed.
    this.#parts = { fetcher, processes: this.#processes, version, clock, log, toolsChanged: () => undefined };
    this.#documents = openSupervisedWorker({
      name: "MCP document worker",
      entry: workerEntry,
      memoryMb: documentWorkerMemoryMb,
      idleMs: documentWorkerIdleMs,
      clock,
      log,
    });
  }

  async define({ text }: { readonly text: string }): Promise<Definition> {
    return (await this.#read("define", text)) as Definition;
  }

  async discover(target: DiscoveryTarget): Promise<string> {
    this.#requireOpen();
    const address = async (document: string, signal: AbortSignal) =>
      (await this.#read("address", document, signal)) as ServerAddress;
    const { stdioCommands } = this.#options;
    const signal = AbortSignal.any([target.signal, this.#closing.signal]);
    const leaving = (ending: Promise<void>) => this.#ending(ending);
    return discoverTools({ ...this.#parts, stdioCommands, address, leaving }, { ...target, signal });
  }

  async describe(plan: PlanReference, toolId: string): Promise<ToolSchemas> {
    const { inputSchema, outputSchema } = toolOf(await this.#plans.read(plan), toolId);
    return { inputSchema, outputSchema };
  }

  /** Opens the session, so that a server which cannot be reached or will not have us is known at once. */
  async hydrate(hydration: Hydration): Promise<HydratedService> {
    const { parameterChecks, stdioCommands, clock } = this.#options;
    const { address } = await this.#plans.read(hydration.plan);
    this.#requireOpen();
    const target = targetOf(address, hydration.config, hydration.secrets);
    requireAllowed(target.address, stdioCommands);
    const log = logOf(this.#options.log, hydration.serviceId);
    const toolsChanged = toldOfChanges(target, clock, log);
    const connection = new Connection({ ...this.#parts, log, toolsChanged }, target);
    this.#connections.add(connection);
    const closed = (ending: Promise<void>) => {
      this.#connections.delete(connection);
      this.#ending(ending);
    };
    try {
      await connection.session();
      this.#requireOpen();
    } catch (error) {
      closed(connection.close());
      throw error;
    }
    return new McpService({ hydration, target, connection, plans: this.#plans, parameterChecks, clock, closed });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#connections].map((connection) => connection.close()));
    await Promise.all([...this.#endings, this.#processes.close(), this.#documents.close()]);
  }

  /** A plan or a handshake may take longer than it takes to close: whatever comes then is not made ready. */
  #requireOpen(): void {
    if (this.#closing.signal.aborted) throw new Failure("unavailable", "The mcp adapter is closed");
  }

  #ending(ending: Promise<void>): void {
    this.#endings.add(ending);
    void ending.finally(() => this.#endings.delete(ending));
  }

  #read(method: "define" | "address", text: string, signal?: AbortSignal): Promise<unknown> {
    const input: DocumentInput = { text };
    return this.#documents.call({ method, input, timeoutMs: documentParseMs, subject: "MCP definition", signal });
  }
}

/** A log line, now and then. */
function toldOfChanges({ address }: Target, clock: Clock, log: Log): () => void {
  let quietUntil = 0;
  return () => {
    if (clock.monotonic() < quietUntil) return;
    quietUntil = clock.monotonic() + mcpToolsChangedQuietMs;
    log.info("mcp-tools-changed", `${shownServer(address)} has changed its tools: sync the service to get them`);
  };
}

/** Whatever is logged of a session names its service. */
function logOf(log: Log, serviceId: string): Log {
  return {
    debug: (event, message, fields) => log.debug(event, message, { serviceId, ...fields }),
    info: (event, message, fields) => log.info(event, message, { serviceId, ...fields }),
    warn: (event, message, fields) => log.warn(event, message, { serviceId, ...fields }),
    error: (event, message, fields) => log.error(event, message, { serviceId, ...fields }),
  };
}
