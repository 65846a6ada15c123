/** The MCP servers that run as processes of ours: never more than allowed, and none left when the adapter closes. */
import { Failure } from "../../errors/failure.ts";
import { mcpProcessesMax } from "../../limits.ts";
import { StdioTransport, type StdioTransportOptions } from "./stdio-transport.ts";

export class StdioProcesses {
  readonly #running = new Set<StdioTransport>();
  #isClosed = false;

  /** @throws Failure overloaded, unavailable. */
  open(options: StdioTransportOptions): StdioTransport {
    if (this.#isClosed) throw new Failure("unavailable", "The mcp adapter is closed");
    if (this.#running.size >= mcpProcessesMax) {
      throw new Failure("overloaded", `${mcpProcessesMax} MCP servers run as processes already`);
    }
    const transport = new StdioTransport(options);
    this.#running.add(transport);
    void transport.gone.then(() => this.#running.delete(transport));
    return transport;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#running].map((transport) => transport.leave()));
  }
}
