/**
 * Definition documents: text to an endpoint and a schema that is safe to walk. Runs in the schema worker.
 *
 *   {"endpoint": "https://…", "introspection": {"__schema": …}}    what discovery makes
 *   {"endpoint": "https://…", "sdl": "type Query { … }"}
 *   {"endpoint": "https://…"}                                       no tools until the service is synced
 *   {"data": {"__schema": …}} or {"__schema": …}                    an introspection result as it is
 *   type Query { … }                                                schema definition language
 */
import {
  buildASTSchema,
  buildClientSchema,
  type DocumentNode,
  GraphQLSchema,
  isListType,
  isNonNullType,
  Kind,
  parse,
  specifiedDirectives,
  validateSchema,
  visit,
} from "graphql";
import { documentBytesMax, graphqlListDepthMax } from "../../limits.ts";
import { readEndpoint } from "./endpoint.ts";
import { cleanIntrospection, isTree } from "./introspection.ts";
import { refusing, shortened, unusable } from "./unusable.ts";

export interface GraphqlDocument {
  /** Absolute; null: the document does not say. */
  readonly endpoint: string | null;
  readonly schema: GraphQLSchema | null;
}

/** `url`: where the document came from, for an endpoint that is relative to it. @throws Failure invalid_request. */
export function readDocument(text: string, url: string | undefined): GraphqlDocument {
  const { endpoint, introspection, sdl } = readParts(text, url);
  if (introspection === undefined && sdl === undefined) {
    if (endpoint === null) {
      throw unusable('it has neither "endpoint", "introspection" nor "sdl", and is no introspection result either');
    }
    return { endpoint, schema: null };
  }
  const schema = refusing(() => (sdl === undefined ? fromIntrospection(introspection) : fromSdl(sdl)));
  requireValid(schema);
  return { endpoint, schema };
}

/** The endpoint alone, without the work of building the schema. */
export function readDocumentEndpoint(text: string, url: string | undefined): string | null {
  return readParts(text, url).endpoint;
}

interface Parts {
  readonly endpoint: string | null;
  readonly introspection?: unknown;
  readonly sdl?: string;
}

function readParts(text: string, url: string | undefined): Parts {
  if (Buffer.byteLength(text) > documentBytesMax) throw unusable(`it is larger than ${documentBytesMax} bytes`);
  const trimmed = text.replace(/^\uFEFF/, "").trimStart();
  if (trimmed === "") throw unusable("it is empty");
  if (trimmed.startsWith("<")) throw unusable("it is neither JSON nor schema definition language");
  if (!/^[{[]/.test(trimmed)) return { endpoint: null, sdl: trimmed };
  const tree = readJson(trimmed);
  if (!isTree(tree)) throw unusable("it is JSON, but not an object");
  const endpoint = tree.endpoint === undefined ? null : readEndpoint(tree.endpoint, url);
  if (tree.sdl !== undefined) {
    if (typeof tree.sdl !== "string") throw unusable('its "sdl" is not text');
    return { endpoint, sdl: tree.sdl };
  }
  const introspection =
    tree.introspection ?? (tree.data !== undefined || tree.__schema !== undefined ? tree : undefined);
  return introspection === undefined ? { endpoint } : { endpoint, introspection };
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw unusable("it begins like JSON and is not valid JSON");
  }
}

function fromIntrospection(value: unknown): GraphQLSchema {
  const holder = isTree(value) && isTree(value.data) ? value.data : value;
  const schema = isTree(holder) ? holder.__schema : undefined;
  if (!isTree(schema)) throw unusable('its introspection result has no object "__schema"');
  return buildClientSchema(cleanIntrospection(schema));
}

/** Directives of federation, gateways and code generators are left out: they mean something to the target only. */
const directivesKept = new Set(["deprecated", "specifiedBy", "oneOf"]);

function fromSdl(sdl: string): GraphQLSchema {
  const full = parse(sdl, { noLocation: true });
  const plain: DocumentNode = visit(full, {
    Directive: (node) => (directivesKept.has(node.name.value) ? undefined : null),
    DirectiveDefinition: () => null,
    [Kind.OPERATION_DEFINITION]: () => {
      throw unusable("it holds a query; what is needed is the schema");
    },
  });
  const schema = buildASTSchema(plain);
  return new GraphQLSchema({ ...schema.toConfig(), directives: specifiedDirectives });
}

/**
 * Faults that change nothing for a caller and that real servers have: defaults they would not accept themselves, deprecated parts that
 * are required, types that keep less than their interfaces promise.
 */
const tolerated = [
  / has invalid default value/,
  /^Invalid circular reference\. The default value/,
  /^Required (argument|input field) \S+ cannot be deprecated/,
  /^Interface field /,
];

function requireValid(schema: GraphQLSchema): void {
  const faults = refusing(() => validateSchema(schema)).filter(
    ({ message }) => !tolerated.some((pattern) => pattern.test(message)),
  );
  if (faults.length > 0) {
    const shown = faults.slice(0, 3).map(({ message }) => message);
    const more = faults.length > shown.length ? ` (and ${faults.length - shown.length} more)` : "";
    throw unusable(`${shortened(shown.join(" "))}${more}`);
  }
  for (const type of Object.values(schema.getTypeMap())) {
    if (!("getFields" in type)) continue;
    for (const field of Object.values(type.getFields())) {
      requireFlat(field.type, `${type.name}.${field.name}`);
      if ("args" in field) for (const arg of field.args) requireFlat(arg.type, `${type.name}.${field.name}`);
    }
  }
}

function requireFlat(type: unknown, where: string): void {
  let lists = 0;
  for (let inner = type; isListType(inner) || isNonNullType(inner); inner = inner.ofType) {
    if (isListType(inner)) lists += 1;
    if (lists > graphqlListDepthMax) throw unusable(`"${where}" has a type wrapped too deep`);
  }
}
