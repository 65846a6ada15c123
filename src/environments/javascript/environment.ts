/** The built-in environment `javascript`, as agents read about it. */
import type { Environment } from "../../ports/environment.ts";
import { environmentDocs } from "./environment-docs.ts";
import { toolDocs } from "./tool-docs.ts";

export const javascriptEnvironment: Environment = {
  id: "javascript",
  docs: () => environmentDocs(),
  toolDocs,
};
