/** A document, read and judged, becomes a definition. Runs in the schema worker. */
import { printSchema } from "graphql";
import type { Definition } from "../../ports/adapter.ts";
import { type Plan, planVersion } from "./plan.ts";
import type { GraphqlDocument } from "./read-document.ts";
import { configSchema, secretsSchema } from "./settings.ts";
import { fieldsOf, summariseTool, toolsOf } from "./tools.ts";

export function defineService({ endpoint, schema }: GraphqlDocument): Definition {
  const plan: Plan = { version: planVersion, service: { endpoint }, sdl: schema === null ? null : printSchema(schema) };
  const tools = schema === null ? [] : [...toolsOf(schema).values()];
  const host = endpoint === null ? "" : new URL(endpoint).host;
  const subscriptions = fieldsOf(schema?.getSubscriptionType()).length;
  const parts = [
    schema?.description?.trim() ?? "",
    schema === null ? "Not read yet: sync the service to get its tools" : "",
    subscriptions === 0 ? "" : `Left out: ${subscriptions} subscription${subscriptions === 1 ? "" : "s"}`,
  ];
  return {
    title: host === "" ? "graphql" : host,
    name: host === "" ? "GraphQL" : host,
    summary: host === "" ? "GraphQL service" : `GraphQL service at ${host}`,
    description: parts.filter((part) => part !== "").join("\n\n"),
    version: "",
    configSchema: configSchema(endpoint),
    secretsSchema,
    tools: tools.map(summariseTool),
    plan: JSON.stringify(plan),
  };
}
