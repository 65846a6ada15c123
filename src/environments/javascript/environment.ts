/** The built-in environment `javascript`, as agents read about it. */
import type { Environment } from "../../ports/environment.ts";
import { type EnvironmentBounds, environmentDocs } from "./environment-docs.ts";
import { toolDocs } from "./tool-docs.ts";

export function javascriptEnvironment(bounds: EnvironmentBounds): Environment {
  const docs = environmentDocs(bounds);
  return { id: "javascript", docs: () => docs, toolDocs };
}
