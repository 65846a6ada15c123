/** The built-in environment `javascript`: its docs, and the executor that runs its programs. */
import type { Environment } from "../../ports/environment.ts";
import type { Executor } from "../../ports/executor.ts";
import { type EnvironmentBounds, environmentDocs } from "./environment-docs.ts";
import { toolDocs } from "./tool-docs.ts";

export function javascriptEnvironment(bounds: EnvironmentBounds, executor: Executor): Environment {
  const docs = environmentDocs(bounds);
  return {
    id: "javascript",
    docs: async () => docs,
    toolDocs: async (tool) => toolDocs(tool),
    executor,
    close: () => executor.close(),
  };
}
