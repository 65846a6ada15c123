/** Around a gRPC adapter under test: the real checks of parameters, approved addresses, and shorthands from document to call. */
import { openGrpcAdapter } from "../../src/adapters/grpc/grpc-adapter.ts";
import { openParameterChecks } from "../../src/adapters/parameter-checks/parameter-checks.ts";
import { Failure } from "../../src/errors/failure.ts";
import type { Adapter } from "../../src/ports/adapter.ts";
import { type CallSettings, defined, realClock, recordingLog } from "./adapter-bench.ts";
import { shopSet } from "./grpc-server.ts";

/** Approves loopback only, and remembers what it was asked. */
export function loopbackJudge() {
  const asked: string[] = [];
  return {
    asked,
    async approve(url: string): Promise<readonly string[]> {
      asked.push(url);
      const { hostname, host } = new URL(url);
      if (hostname === "127.0.0.1" || hostname === "localhost") return ["127.0.0.1"];
      throw new Failure("upstream_failed", `Cannot send a request to "${host}": it is a private address`);
    },
  };
}

/** Closing the adapter closes its parameter checks too. */
export async function openTestGrpc(
  addresses: { approve(url: string): Promise<readonly string[]> } = loopbackJudge(),
  log = recordingLog(),
): Promise<Adapter> {
  const parameterChecks = openParameterChecks({ clock: realClock, log });
  const adapter = await openGrpcAdapter({ addresses, parameterChecks, clock: realClock, log });
  const close = adapter.close.bind(adapter);
  return Object.assign(adapter, {
    close: async () => {
      await close();
      await parameterChecks.close();
    },
  });
}

export function documentOf(target: string, set: Uint8Array = shopSet, more: object = {}): string {
  return JSON.stringify({ target, descriptorSet: Buffer.from(set).toString("base64"), ...more });
}

export interface UnaryResult {
  readonly message: Record<string, unknown>;
  readonly headers: Record<string, string>;
  readonly trailers: Record<string, string>;
}

export interface StreamResult {
  readonly messages: Record<string, unknown>[];
  readonly complete: boolean;
  readonly headers: Record<string, string>;
  readonly trailers: Record<string, string>;
}

/** One hydrated service for many calls, as the server keeps it. */
export async function hydrated(
  adapter: Adapter,
  text: string,
  settings: Pick<CallSettings, "config" | "secrets"> = {},
) {
  const { definition, plan } = await defined(adapter, text);
  const { config = {}, secrets = {} } = settings;
  const service = await adapter.hydrate({ serviceId: "shop", plan, config, secrets });
  const invoke = (
    toolId: string,
    parameters: unknown,
    { timeoutMs = 30_000, signal = new AbortController().signal }: Pick<CallSettings, "timeoutMs" | "signal"> = {},
  ) => service.invoke({ toolId, parameters, timeoutMs, signal });
  return {
    definition,
    plan,
    service,
    call: async (toolId: string, parameters: unknown = {}, more: Pick<CallSettings, "timeoutMs" | "signal"> = {}) =>
      (await invoke(toolId, parameters, more)) as UnaryResult,
    stream: async (toolId: string, parameters: unknown = {}, more: Pick<CallSettings, "timeoutMs" | "signal"> = {}) =>
      (await invoke(toolId, parameters, more)) as StreamResult,
  };
}

export function discover(
  adapter: Adapter,
  target: { url?: string; document?: string; config?: object; secrets?: object; signal?: AbortSignal },
): Promise<string> {
  const { config = {}, secrets = {}, signal = new AbortController().signal, ...rest } = target;
  return adapter.discover!({
    ...rest,
    signal,
    config: config as Record<string, unknown>,
    secrets: secrets as Record<string, unknown>,
  });
}

/** The failure a promise rejects with, for tests that look at kind and message. */
export async function failureOf(promise: Promise<unknown>): Promise<Failure> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("It did not fail");
}
