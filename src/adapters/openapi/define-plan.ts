/** A document, read and safe to walk, becomes a plan and what the server lists of it. Runs in the definition worker. */
import { documentOperationsMax } from "../../limits.ts";
import type { Definition, ToolSummary } from "../../ports/adapter.ts";
import { noBody, type OperationBody, readAnswers, readBody } from "./bodies.ts";
import { type OperationParameters, type ParameterReader, readParameters } from "./parameters.ts";
import {
  type MutableSchema,
  type Plan,
  planVersion,
  type Requirement,
  type Schema,
  type Server,
  type ServicePlan,
  type ToolPlan,
} from "./plan.ts";
import { isTree, type OpenApiDocument, own, ownText, type Tree, unusable } from "./read-document.ts";
import { References } from "./references.ts";
import { SchemaConverter } from "./schema-conversion.ts";
import { keyPlaces, readRequirements, readSchemes } from "./security.ts";
import { readServers } from "./servers.ts";
import { configSchema, secretsSchema } from "./settings-schemas.ts";
import { toolIds } from "./tool-ids.ts";

const methods = ["get", "put", "post", "delete", "options", "head", "patch", "trace"] as const;

interface Operation {
  readonly operationId: string;
  readonly method: string;
  readonly path: string;
  readonly tree: Tree;
  readonly pathItem: Tree;
}

interface Reader extends ParameterReader {
  /** Used where an operation says nothing of its own. */
  readonly security: readonly Requirement[];
}

export function definePlan(document: OpenApiDocument, url: string | undefined): Definition {
  const { tree, dialect } = document;
  const references = new References(tree, url);
  const converter = new SchemaConverter(references, dialect);
  const operations = readOperations(tree, references);
  const service: ServicePlan = {
    documentUrl: url ?? null,
    servers: readServers(own(tree, "servers")) ?? [],
    serversUnused: operations.length > 0 && operations.every((operation) => ownServers(operation) !== undefined),
    schemes: readSchemes(own(own(tree, "components"), "securitySchemes"), references),
  };
  const keys = keyPlaces(service.schemes);
  const reader: Reader = { references, converter, keys, security: defaultSecurity(tree, operations, service) };
  const ids = toolIds(operations);
  const tools = operations.map((operation, index) => defineTool(operation, ids[index]!, reader));
  converter.finish();
  const plan: Plan = {
    version: planVersion,
    service,
    schemas: converter.definitions,
    tools: tools.map((tool) => tool.plan),
  };
  return { ...describeService(tree, plan), tools: tools.map((tool) => tool.summary), plan: JSON.stringify(plan) };
}

function describeService(tree: Tree, { service, tools }: Plan): Omit<Definition, "tools" | "plan"> {
  const info = own(tree, "info");
  const servers = [...service.servers, ...tools.flatMap((tool): readonly Server[] => tool.servers ?? [])];
  return {
    title: ownText(info, "title"),
    name: ownText(info, "title"),
    summary: ownText(info, "summary"),
    description: ownText(info, "description"),
    version: ownText(info, "version"),
    configSchema: configSchema(service, servers),
    secretsSchema: secretsSchema(service.schemes),
  };
}

function readOperations(tree: Tree, references: References): Operation[] {
  const paths = own(tree, "paths");
  const operations: Operation[] = [];
  const lost: string[] = [];
  for (const [key, value] of Object.entries(isTree(paths) ? paths : {})) {
    if (!key.startsWith("/")) continue;
    const pathItem = references.resolve(value);
    if (!pathItem) {
      if (typeof own(value, "$ref") === "string") lost.push(key);
      continue;
    }
    for (const method of methods) {
      const operation = own(pathItem, method);
      if (!isTree(operation)) continue;
      operations.push({
        operationId: ownText(operation, "operationId"),
        method: method.toUpperCase(),
        path: key,
        tree: operation,
        pathItem,
      });
      if (operations.length > documentOperationsMax)
        throw unusable(`it has more than ${documentOperationsMax} operations`);
    }
  }
  if (operations.length === 0 && lost.length > 0)
    throw unusable(`path "${lost[0]!.slice(0, 200)}" is described outside the document`);
  return operations;
}

/**
 * Of the document; where nothing in it ever says which schemes apply, each scheme it declares may be used alone, and none
 * has to be: such documents mean "send the key if you have one".
 */
function defaultSecurity(tree: Tree, operations: readonly Operation[], service: ServicePlan): readonly Requirement[] {
  const declared = readRequirements(own(tree, "security"));
  if (declared) return declared;
  if (operations.some((operation) => readRequirements(own(operation.tree, "security")) !== undefined)) return [];
  const usable = Object.entries(service.schemes).filter(([, scheme]) => scheme.kind !== "unsupported");
  return usable.length === 0 ? [] : [...usable.map(([id]) => [id]), []];
}

function defineTool(operation: Operation, id: string, reader: Reader): { plan: ToolPlan; summary: ToolSummary } {
  const { tree, pathItem, method } = operation;
  // A fragment only tells operations of one path apart in the document; it is never sent.
  const path = operation.path.split("#", 1)[0]!;
  const parameters = readParameters(path, own(pathItem, "parameters"), own(tree, "parameters"), reader);
  const takesBody = method !== "GET" && method !== "HEAD" && method !== "TRACE";
  const body = takesBody ? readBody(own(tree, "requestBody"), reader.references, reader.converter) : noBody;
  const answers = readAnswers(own(tree, "responses"), reader.references, reader.converter);
  const servers = ownServers(operation);
  const plan: ToolPlan = {
    id,
    method,
    path,
    ...(servers ? { servers } : {}),
    security: readRequirements(own(tree, "security")) ?? reader.security,
    keys: parameters.keys,
    parameters: parameters.plans,
    contents: body.contents,
    accept: answers.accept,
    inputSchema: inputSchema(parameters, body),
    outputSchema: answers.schema,
  };
  return { plan, summary: summarise(operation, plan, body, reader) };
}

function ownServers({ tree, pathItem }: Operation): readonly Server[] | undefined {
  return readServers(own(tree, "servers")) ?? readServers(own(pathItem, "servers"));
}

function summarise(
  { tree, pathItem }: Operation,
  plan: ToolPlan,
  body: OperationBody,
  { references }: Reader,
): ToolSummary {
  const summary = ownText(tree, "summary") || ownText(pathItem, "summary");
  const described = ownText(tree, "description") || ownText(pathItem, "description");
  return {
    id: plan.id,
    name: summary || plan.id,
    summary,
    description: [
      described,
      body.description === "" ? "" : `Body: ${body.description}`,
      ...lostParts(tree, pathItem, references),
    ]
      .filter((part) => part !== "")
      .join("\n\n"),
    parameterNames: [
      ...new Set([...plan.parameters.map((parameter) => parameter.name), ...bodyNames(tree, references)]),
    ],
  };
}

/** What a caller cannot know is missing, because a reference leads out of the document or nowhere. */
function lostParts(tree: Tree, pathItem: Tree, references: References): string[] {
  const lists = [own(pathItem, "parameters"), own(tree, "parameters")].filter(Array.isArray);
  const parts = [...lists.flat(), own(tree, "requestBody")].filter((part) => part !== undefined);
  const lost = parts
    .filter((part) => references.resolve(part) === undefined)
    .map((part) => ownText(part, "$ref").slice(0, 200));
  return lost.length === 0
    ? []
    : [`Left out, as it is outside the document or missing: ${lost.map((ref) => `"${ref}"`).join(", ")}`];
}

/** Top properties of the bodies, for search. */
function bodyNames(tree: Tree, references: References): string[] {
  const content = own(references.resolve(own(tree, "requestBody")), "content");
  if (!isTree(content)) return [];
  return Object.keys(content).flatMap((mediaType) =>
    propertyNames(own(own(content, mediaType), "schema"), references, 0),
  );
}

function propertyNames(schema: unknown, references: References, depth: number): string[] {
  const resolved = references.resolve(schema);
  if (!resolved || depth > 4) return [];
  const properties = own(resolved, "properties");
  const parts = own(resolved, "allOf");
  const inherited = Array.isArray(parts)
    ? parts.slice(0, 20).flatMap((part) => propertyNames(part, references, depth + 1))
    : [];
  return [...(isTree(properties) ? Object.keys(properties) : []), ...inherited];
}

function inputSchema({ slots }: OperationParameters, body: OperationBody): Schema {
  const properties: MutableSchema = {};
  const required: string[] = [];
  for (const [name, slot] of Object.entries(slots)) {
    properties[name] = slot.schema;
    if (slot.required) required.push(name);
  }
  if (body.contents.length > 0) {
    properties.body = bodySchema(body);
    if (body.required) required.push("body");
  }
  if (body.contents.length > 1) properties.contentType = contentTypeSchema(body);
  return {
    type: "object",
    properties,
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
    ...bodyByType(body),
  };
}

function bodySchema({ schemas }: OperationBody): Schema {
  const unique = new Set(schemas.map((schema) => JSON.stringify(schema)));
  return unique.size === 1 ? schemas[0]! : { description: 'Depends on "contentType"', anyOf: schemas };
}

function contentTypeSchema({ contents }: OperationBody): Schema {
  const mediaTypes = contents.map((content) => content.mediaType);
  return {
    description: `Media type the body is sent as; "${mediaTypes[0]}" when absent`,
    enum: mediaTypes,
    default: mediaTypes[0],
  };
}

/** Holds the body to the schema of the media type it is sent as, where they differ. */
function bodyByType({ contents, schemas }: OperationBody): MutableSchema {
  if (new Set(schemas.map((schema) => JSON.stringify(schema))).size < 2) return {};
  const rules = contents.map((content, index) => ({
    // The first also holds when no type is named: `const` says nothing of an absent property.
    if: {
      properties: { contentType: { const: content.mediaType } },
      ...(index > 0 ? { required: ["contentType"] } : {}),
    },
    // biome-ignore lint/suspicious/noThenProperty: the JSON Schema keyword
    then: { properties: { body: schemas[index] } },
  }));
  return { allOf: rules };
}
