/** Around a GraphQL adapter under test: checks of parameters, and a shorthand from document to call. */
import { openGraphqlAdapter } from "../../src/adapters/graphql/graphql-adapter.ts";
import { Failure } from "../../src/errors/failure.ts";
import { validate } from "../../src/json/schema.ts";
import type { Adapter, Definition, PlanReference } from "../../src/ports/adapter.ts";
import type { ParameterChecks } from "../../src/ports/parameter-checks.ts";
import { type Call, defined, realClock, recordingLog } from "./adapter-bench.ts";
import { loopbackFetcher } from "./loopback-fetcher.ts";

/** The rules of the real ones, in this process. */
const parameterChecks: ParameterChecks = {
  async check({ schema, parameters, subject }) {
    const problems = validate(schema, parameters);
    if (problems.length === 0) return;
    const text = problems.map(({ path, message }) => `${path || "the parameters"} ${message}`).join("; ");
    throw new Failure("invalid_request", `${subject} do not fit: ${text}`);
  },
  async close() {},
};

export function openTestGraphql(log = recordingLog()): Promise<Adapter> {
  return openGraphqlAdapter({ fetcher: loopbackFetcher, parameterChecks, clock: realClock, log });
}

export interface Discovered {
  readonly definition: Definition;
  readonly plan: PlanReference;
  readonly call: Call;
}

export async function discovered(adapter: Adapter, url: string): Promise<Discovered> {
  const target = { url, config: {}, secrets: {}, signal: new AbortController().signal };
  return defined(adapter, await adapter.discover!(target));
}

export function discover(
  adapter: Adapter,
  target: { url?: string; document?: string; config?: object; secrets?: object },
): Promise<string> {
  const { config = {}, secrets = {}, ...rest } = target;
  return adapter.discover!({
    ...rest,
    config: config as Record<string, unknown>,
    secrets: secrets as Record<string, unknown>,
    signal: new AbortController().signal,
  });
}
