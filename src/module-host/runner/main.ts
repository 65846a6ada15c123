/**
 * The program of a module process: loads one module, sets it up, and passes calls to it. It speaks with its host on descriptor 3 and
 * ends when the host closes that. Arguments: `restricted` where the module must not get at the network by itself.
 *
 * Nothing here protects the host: module code runs beside this and can say anything on the socket. The host checks.
 */
import { Socket } from "node:net";
import { pathToFileURL } from "node:url";
import type { AdapterModule, EnvironmentModule, ModuleAdapter, ModuleEnvironment } from "../../sdk/sdk.ts";
import type { HostMessage } from "../protocol.ts";
import { AdapterCalls } from "./adapter-calls.ts";
import { contextOf, Fetches } from "./context.ts";
import { EnvironmentCalls } from "./environment-calls.ts";
import { FrameReader, noBounds } from "./frames.ts";
import { describeThrown, Outbox } from "./outbox.ts";
import { restrict } from "./restrict.ts";

type CallMessage = Extract<HostMessage, { type: "call" }>;

const protocolVersion = 1;
const socket: Socket = new Socket({ fd: 3 });
const outbox = new Outbox(socket);
const fetches = new Fetches(outbox);
/** The host is believed; its largest frame is a definition document. */
const frames = new FrameReader(noBounds);
const leave = process.exit.bind(process, 0);
const calls = new Map<number, AbortController>();

let module: AdapterModule | EnvironmentModule | undefined;
let adapter: AdapterCalls | undefined;
let environment: EnvironmentCalls | undefined;

// The shell that started us sets variables of its own.
for (const variable of Object.keys(process.env)) delete process.env[variable];
if (process.argv.includes("restricted")) restrict();

socket.on("error", leave);
socket.on("close", leave);
socket.on("data", (chunk: Buffer) => {
  frames.push(chunk);
  for (let message = frames.next(); message !== undefined; message = frames.next()) take(message as HostMessage);
});

function take(message: HostMessage): void {
  switch (message.type) {
    case "load":
      outbox.bounds = message.bounds;
      void refusing(() => load(message.main));
      return;
    case "setup":
      void refusing(() => setUp(message));
      return;
    case "call":
      void call(message);
      return;
    case "cancel":
      calls.get(message.id)?.abort(new Error("Nobody waits for this call any more"));
      return;
    case "kill":
      killRun(message.run);
      return;
    case "tool-answered":
      environment?.answered(message);
      return;
    case "fetched":
    case "fetch-failed":
      fetches.settle(message);
      return;
    case "ping":
      outbox.send({ type: "pong", id: message.id });
  }
}

/** A module that cannot kill its run leaves that to the host, which ends the process. */
function killRun(run: number): void {
  try {
    environment?.kill(run);
  } catch (error) {
    outbox.send({ type: "log", level: "warn", message: `kill failed: ${describeThrown(error).message}` });
  }
}

async function refusing(step: () => Promise<void>): Promise<void> {
  try {
    await step();
  } catch (error) {
    outbox.send({ type: "refused", ...describeThrown(error) });
  }
}

async function load(main: string): Promise<void> {
  const loaded = (await import(pathToFileURL(main).href)) as { readonly default?: unknown };
  const exported = loaded.default;
  if (typeof exported !== "object" || exported === null) throw new Error("it has no default export that is an object");
  module = exported as AdapterModule | EnvironmentModule;
  if (typeof module.setup !== "function") throw new Error("its default export has no function setup");
  outbox.send({
    type: "hello",
    protocol: protocolVersion,
    moduleType: String(module.type),
    configSchema: module.configSchema,
    secretsSchema: module.secretsSchema,
  });
}

async function setUp({ config, secrets, fetchesMax }: Extract<HostMessage, { type: "setup" }>): Promise<void> {
  fetches.inFlightMax = fetchesMax;
  const context = contextOf(config, secrets, fetches, outbox);
  const made = await (module as AdapterModule | EnvironmentModule).setup(context);
  const methods =
    module?.type === "adapter" ? ["generateDefinition", "hydrate", "invoke"] : ["execute", "kill", "docs", "toolDocs"];
  for (const method of methods) {
    if (typeof (made as unknown as Record<string, unknown> | undefined)?.[method] !== "function") {
      throw new Error(`what setup returned has no function ${method}`);
    }
  }
  if (module?.type === "adapter") adapter = new AdapterCalls(made as ModuleAdapter);
  else environment = new EnvironmentCalls(made as ModuleEnvironment, outbox);
  outbox.send({ type: "ready" });
}

async function call({ id, method, input }: CallMessage): Promise<void> {
  const controller = new AbortController();
  calls.set(id, controller);
  try {
    const value = adapter
      ? await adapter.call(method, input, controller.signal)
      : await environment?.call(method, input, id);
    outbox.send({ type: "answer", id, value });
  } catch (error) {
    outbox.send({ type: "failed", id, ...describeThrown(error) });
  } finally {
    calls.delete(id);
  }
}
