/**
 * Holds a recorded request against the OpenAPI document it was made from. Written against the raw document, sharing nothing
 * with the adapter, so that both would have to be wrong in the same way.
 */
import type { Recorded } from "./recording-server.ts";

type Tree = Readonly<Record<string, unknown>>;

export interface CheckedOperation {
  readonly template: string;
  readonly operationId: string | undefined;
  /** What is wrong with the request; empty when it fits. */
  readonly problems: readonly string[];
}

/**
 * The operation of `document` that the request is for, and how it departs from it: method, path template, required query
 * parameters and headers, media type of the body. `basePath` is what the configured server adds before the paths.
 * Several operations may share a path (fragments, overlapping templates): the best fitting one is reported.
 */
export function checkRequestAgainstDocument(
  document: Tree,
  recorded: Pick<Recorded, "method" | "path" | "query" | "headers" | "body">,
  basePath = "",
): CheckedOperation {
  const checked = candidates(document, recorded, basePath).map(({ template, item, operation }) => ({
    template,
    operationId: typeof operation.operationId === "string" ? operation.operationId : undefined,
    problems: problemsOf(document, item, operation, recorded),
  }));
  const best = checked.toSorted((left, right) => left.problems.length - right.problems.length)[0];
  return (
    best ?? { template: "", operationId: undefined, problems: [`No operation for ${recorded.method} ${recorded.path}`] }
  );
}

/** All operation ids whose method and path fit, for documents where several do. */
export function operationsAt(
  document: Tree,
  recorded: Pick<Recorded, "method" | "path">,
  basePath = "",
): (string | undefined)[] {
  return candidates(document, recorded, basePath).map(({ operation }) => operation.operationId as string | undefined);
}

function candidates(document: Tree, recorded: Pick<Recorded, "method" | "path">, basePath: string) {
  return Object.entries(tree(document.paths)).flatMap(([template, value]) => {
    const item = follow(document, value);
    const operation = follow(document, item[recorded.method.toLowerCase()]);
    const isFit = recorded.method.toLowerCase() in item && templatePattern(basePath, template).test(recorded.path);
    return isFit ? [{ template, item, operation }] : [];
  });
}

function templatePattern(basePath: string, template: string): RegExp {
  const path = template.split(/[?#]/, 1)[0] ?? "";
  const parts = `${basePath}${path}`
    .split(/\{[^{}]+\}/)
    .map((part) => encodeURI(part).replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join("[^/?]+")}$`);
}

function problemsOf(
  document: Tree,
  item: Tree,
  operation: Tree,
  { query, headers, body }: Pick<Recorded, "query" | "headers" | "body">,
): string[] {
  const names = new Set(query.split("&").map((pair) => decodeURIComponent(pair.split("=", 1)[0] ?? "")));
  const problems: string[] = [];
  for (const parameter of parametersOf(document, item, operation)) {
    const name = String(parameter.name);
    if (parameter.required !== true) continue;
    if (parameter.in === "query" && !isInQuery(document, parameter, names))
      problems.push(`Query parameter "${name}" is missing`);
    if (parameter.in === "header" && !isManaged(name) && headers[name.toLowerCase()] === undefined)
      problems.push(`Header "${name}" is missing`);
  }
  return [...problems, ...bodyProblems(document, operation, headers["content-type"], body)];
}

function parametersOf(document: Tree, item: Tree, operation: Tree): Tree[] {
  const found = new Map<string, Tree>();
  for (const list of [item.parameters, operation.parameters]) {
    for (const each of Array.isArray(list) ? list : []) {
      const parameter = follow(document, each);
      found.set(`${parameter.in} ${parameter.name}`, parameter);
    }
  }
  return [...found.values()];
}

/** Objects are spread over keys of their own, so their own name need not appear. */
function isInQuery(document: Tree, parameter: Tree, names: ReadonlySet<string>): boolean {
  const name = String(parameter.name);
  if (names.has(name) || [...names].some((each) => each.startsWith(`${name}[`))) return true;
  return follow(document, parameter.schema).type === "object";
}

/** OpenAPI leaves these to the client, and so does the adapter. */
function isManaged(name: string): boolean {
  return /^(accept|content-type|authorization|host|content-length|cookie|connection|transfer-encoding)$/i.test(name);
}

function bodyProblems(document: Tree, operation: Tree, contentType: string | undefined, body: Uint8Array): string[] {
  const requestBody = follow(document, operation.requestBody);
  const declared = Object.keys(tree(requestBody.content)).map(
    (mediaType) => mediaType.split(";", 1)[0]?.trim().toLowerCase() ?? "",
  );
  if (contentType === undefined) return requestBody.required === true && declared.length > 0 ? ["Body is missing"] : [];
  const sent = contentType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (!declared.some((mediaType) => matches(mediaType, sent)))
    return [`Body of type "${sent}" is none of "${declared.join('", "')}"`];
  return sent.endsWith("json") && !isJson(body) ? ["Body is not JSON"] : [];
}

function matches(declared: string, sent: string): boolean {
  return declared === sent || new RegExp(`^${declared.replaceAll(/[.+]/g, "\\$&").replaceAll("*", ".*")}$`).test(sent);
}

function isJson(body: Uint8Array): boolean {
  try {
    JSON.parse(Buffer.from(body).toString("utf8"));
    return true;
  } catch {
    return false;
  }
}

function follow(document: Tree, value: unknown): Tree {
  let current = tree(value);
  for (let hop = 0; hop < 10 && typeof current.$ref === "string"; hop += 1) {
    const tokens = decodeURIComponent(current.$ref).replace(/^#\//, "").split("/");
    current = tree(
      tokens.reduce<unknown>((at, token) => tree(at)[token.replaceAll("~1", "/").replaceAll("~0", "~")], document),
    );
  }
  return current;
}

function tree(value: unknown): Tree {
  return typeof value === "object" && value !== null ? (value as Tree) : {};
}
