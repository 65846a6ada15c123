/**
 * The child process that reads GraphQL schemas and selections: the only place that knows the GraphQL library. It never sees a
 * secret, and has no business with the network.
 */
import { buildASTSchema, type GraphQLSchema, getIntrospectionQuery, Kind, parse } from "graphql";
import { LRUCache } from "lru-cache";
import { Failure } from "../../errors/failure.ts";
import { graphqlSchemasCachedCharactersMax } from "../../limits.ts";
import type { Definition, ToolSchemas } from "../../ports/adapter.ts";
import { serveWorker } from "../worker/serve-worker.ts";
import { callerSelection, selectionFaults } from "./caller-selection.ts";
import { defaultSelection, printSelection, type Selection } from "./default-selection.ts";
import { defineService } from "./define-service.ts";
import { inputSchema } from "./input-schema.ts";
import { type IntrospectionAnswer, readIntrospectionAnswer } from "./introspection-answer.ts";
import { outputSchema } from "./output-schema.ts";
import { type Plan, planVersion, type ReadyTool, type ServicePlan } from "./plan.ts";
import { readDocument, readDocumentEndpoint } from "./read-document.ts";
import { selectionDepthDefault } from "./settings.ts";
import { type Tool, toolsOf } from "./tools.ts";

/** What the worker lacks to answer; the server supplies it and asks again. */
export type Known<T> = { readonly value: T } | { readonly lacks: "plan" };

export interface DocumentInput {
  readonly text: string;
  readonly url: string | undefined;
}
export interface IntrospectedInput {
  readonly body: Uint8Array;
  readonly endpoint: string;
}
export interface LoadInput {
  readonly hash: string;
  readonly plan: string;
}
export interface PlanInput {
  readonly hash: string;
}
export interface ToolInput extends PlanInput {
  readonly toolId: string;
}
export interface ReadyInput extends ToolInput {
  /** Levels of the default selection. */
  readonly depth: number;
}
export interface SelectInput extends ToolInput {
  readonly text: string;
}

interface Loaded {
  readonly plan: Plan;
  readonly schema: GraphQLSchema | null;
  readonly tools: ReadonlyMap<string, Tool>;
}

const plans = new LRUCache<string, Loaded>({ maxSize: graphqlSchemasCachedCharactersMax });

function define({ text, url }: DocumentInput): Definition {
  return defineService(readDocument(text, url));
}

function endpoint({ text, url }: DocumentInput): string | null {
  return readDocumentEndpoint(text, url);
}

/** The second is for servers older than deprecated arguments, `@oneOf` and repeatable directives. */
function introspectionQueries(): readonly string[] {
  const newest = { specifiedByUrl: true, inputValueDeprecation: true, oneOf: true, schemaDescription: true };
  return [getIntrospectionQuery(newest), getIntrospectionQuery()];
}

function introspected({ body, endpoint }: IntrospectedInput): IntrospectionAnswer {
  return readIntrospectionAnswer(body, endpoint);
}

function load({ hash, plan: text }: LoadInput): null {
  const plan = JSON.parse(text) as Plan;
  if (plan.version !== planVersion) throw new Failure("internal", `A plan of version ${plan.version} cannot be read`);
  // Printed from a schema that was valid: judging it again would only cost time.
  const schema =
    plan.sdl === null
      ? null
      : buildASTSchema(parse(plan.sdl, { noLocation: true }), { assumeValid: true, assumeValidSDL: true });
  const loaded = { plan, schema, tools: schema === null ? new Map() : toolsOf(schema) };
  // One larger than the whole allowance is still kept while it is the only one: without it nothing could be called.
  plans.set(hash, loaded, { size: Math.max(1, Math.min(text.length, graphqlSchemasCachedCharactersMax)) });
  return null;
}

function service({ hash }: PlanInput): Known<ServicePlan> {
  const loaded = plans.get(hash);
  return loaded ? { value: loaded.plan.service } : { lacks: "plan" };
}

function describe(input: ToolInput): Known<ToolSchemas> {
  return withTool(input, (tool, schema) => {
    const selection = selectionOf(schema, tool, selectionDepthDefault);
    return {
      inputSchema: inputSchema(tool.field, selection && printSelection(selection)),
      outputSchema: outputSchema(tool.field.type, selection),
    };
  });
}

function ready(input: ReadyInput): Known<ReadyTool> {
  return withTool(input, (tool, schema) => {
    const tree = selectionOf(schema, tool, input.depth);
    const selection = tree && printSelection(tree);
    const { operation, field } = tool;
    return {
      operation,
      field: field.name,
      arguments: field.args.map(({ name, type }) => [name, String(type)] as const),
      selection,
      inputSchema: inputSchema(field, selection),
    };
  });
}

function select(input: SelectInput): Known<string> {
  return withTool(input, (tool, schema) => callerSelection(schema, tool, input.text));
}

function withTool<T>({ hash, toolId }: ToolInput, read: (tool: Tool, schema: GraphQLSchema) => T): Known<T> {
  const loaded = plans.get(hash);
  if (!loaded) return { lacks: "plan" };
  const tool = loaded.tools.get(toolId);
  if (!tool || !loaded.schema) throw new Failure("not_found", `No tool "${toolId}"`);
  return { value: read(tool, loaded.schema) };
}

/** The deepest one within `depth` that GraphQL can merge: two paths to one type may disagree about what is below it. */
function selectionOf(schema: GraphQLSchema, tool: Tool, depth: number): Selection | null {
  for (let tried = depth; tried > 0; tried -= 1) {
    const selection = defaultSelection(schema, tool.field.type, tried);
    if (selection === null || fits(schema, tool, selection)) return selection;
  }
  return { typename: true, fields: [], fragments: [] };
}

function fits(schema: GraphQLSchema, tool: Tool, selection: Selection): boolean {
  const [definition] = parse(printSelection(selection), { noLocation: true }).definitions;
  return (
    definition?.kind === Kind.OPERATION_DEFINITION &&
    selectionFaults(schema, tool, definition.selectionSet).length === 0
  );
}

serveWorker({ define, endpoint, introspectionQueries, introspected, load, service, describe, ready, select });
