/** The OpenAPI document as one page of HTML: no scripts, nothing from elsewhere, readable with any browser. */
import type { JsonObject } from "./openapi/json-object.ts";
import type { SchemaObject } from "./openapi/schema.ts";

interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: SchemaObject;
}

interface MediaType {
  readonly schema?: SchemaObject;
  readonly example?: unknown;
}

interface Response {
  readonly $ref?: string;
  readonly description?: string;
  readonly content?: Readonly<Record<string, MediaType>>;
}

interface DocumentedOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, MediaType>> };
  readonly responses: Readonly<Record<string, Response>>;
}

interface Described {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, SchemaObject>>;
    readonly responses: Readonly<Record<string, Response>>;
  };
}

interface Listed {
  readonly method: string;
  readonly path: string;
  readonly operation: DocumentedOperation;
}

export function docsPage(document: JsonObject): string {
  const { info, tags, paths, components } = document as unknown as Described;
  const listed = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Listed => ({ method: method.toUpperCase(), path, operation })),
  );
  const groups = tags.map(({ name, description }) => ({
    name,
    description,
    operations: listed.filter(({ operation }) => operation.tags.includes(name)),
  }));
  const title = escaped(`${info.title} ${info.version}`);
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${title}</title><link rel="stylesheet" href="/docs/style.css"></head><body>`,
    `<nav aria-label="Operations"><h1>${title}</h1>${groups.map(navigation).join("")}`,
    '<h2><a href="#errors">Errors</a></h2><h2><a href="#schemas">Schemas</a></h2></nav><main>',
    ...info.description.split("\n\n").map((paragraph) => `<p>${marked(paragraph)}</p>`),
    '<p><a href="/openapi.json">OpenAPI document</a> · <a href="/llms.txt">Guide for agents</a></p>',
    ...groups.map(
      ({ name, description, operations }) =>
        `<h2 id="tag-${name}">${escaped(name)}</h2><p>${escaped(description)}</p>${operations.map(section).join("")}`,
    ),
    `<h2 id="errors">Errors</h2>${Object.entries(components.responses).map(errorSection).join("")}`,
    `<h2 id="schemas">Schemas</h2>${Object.entries(components.schemas).map(schemaSection).join("")}`,
    "</main></body></html>\n",
  ].join("\n");
}

function navigation({ name, operations }: { readonly name: string; readonly operations: readonly Listed[] }): string {
  const items = operations.map(
    ({ method, operation }) =>
      `<li><a href="#${operation.operationId}"><b>${method}</b> ${escaped(operation.operationId)}</a></li>`,
  );
  return `<h2><a href="#tag-${name}">${escaped(name)}</a></h2><ul>${items.join("")}</ul>`;
}

function section({ method, path, operation }: Listed): string {
  const { operationId, summary, description, parameters, requestBody, responses } = operation;
  const told = parameters.filter(({ $ref }) => $ref === undefined);
  const headers = parameters.flatMap(({ $ref }) => ($ref === undefined ? [] : [`<code>${nameOf($ref)}</code>`]));
  const successes = Object.entries(responses).filter(([, { $ref }]) => $ref === undefined);
  const errors = Object.entries(responses).filter(([, { $ref }]) => $ref !== undefined);
  return [
    `<section id="${operationId}"><h3><b>${method}</b> <code>${escaped(path)}</code></h3>`,
    `<p>${escaped(summary)}. ${escaped(description)}</p>`,
    told.length === 0 ? "" : fieldTable("Parameters", told.map(parameterRow)),
    headers.length === 0 ? "" : `<p>Headers: ${headers.join(", ")}</p>`,
    requestBody === undefined
      ? ""
      : `<h4>Body${requestBody.required ? "" : " (optional)"}</h4>${content(requestBody.content)}`,
    ...successes.map(
      ([status, { description: what = "", content: types }]) =>
        `<h4>${status} ${escaped(what)}</h4>${types === undefined ? "" : content(types)}`,
    ),
    `<p>Errors: ${errors.map(([status, { $ref = "" }]) => `<a href="#error-${nameOf($ref)}">${status}</a>`).join(", ")}</p>`,
    "</section>",
  ].join("");
}

function errorSection([name, { description = "", content: types = {} }]: [string, Response]): string {
  const { examples = {} } = (types["application/json"] ?? {}) as {
    readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
  };
  const bodies = Object.values(examples).map(({ value }) => json(value));
  return `<section id="error-${name}"><h3>${escaped(name)}</h3><p>${escaped(description)}</p>${bodies.join("")}</section>`;
}

function schemaSection([name, schema]: [string, SchemaObject]): string {
  const about = schema.description === undefined ? "" : `<p>${escaped(schema.description)}</p>`;
  return `<section id="schema-${name}"><h3>${escaped(name)}</h3>${about}${schemaText(schema)}</section>`;
}

/** Media types that say the same are shown once. */
function content(types: Readonly<Record<string, MediaType>>): string {
  const byShape = new Map<string, string[]>();
  for (const [type, shown] of Object.entries(types)) {
    const key = JSON.stringify(shown);
    byShape.set(key, [...(byShape.get(key) ?? []), type]);
  }
  return [...byShape]
    .map(([key, names]) => {
      const { schema = {}, example } = JSON.parse(key) as MediaType;
      const shown =
        example === undefined
          ? ""
          : `<details><summary>Example</summary>${typeof example === "string" ? `<pre>${escaped(example)}</pre>` : json(example)}</details>`;
      return `<p><code>${names.map(escaped).join("</code>, <code>")}</code></p>${schemaText(schema)}${shown}`;
    })
    .join("");
}

function schemaText(schema: SchemaObject): string {
  const alternatives = schema.oneOf ?? schema.anyOf;
  if (alternatives !== undefined)
    return `<p>One of</p><ul>${alternatives.map((one) => `<li>${schemaText(one)}</li>`).join("")}</ul>`;
  if (schema.properties === undefined) return `<p>${typeName(schema)}</p>`;
  const rows = Object.entries(schema.properties).map(([name, one]) =>
    row(name, schema.required?.includes(name) === true, one, one.description),
  );
  return rows.length === 0 ? "<p>No fields</p>" : fieldTable("Fields", rows);
}

function parameterRow({ name, in: place, required = false, description, schema }: Parameter): string {
  return row(`${name} (${place})`, required, schema, description);
}

function row(name: string, isRequired: boolean, schema: SchemaObject, description = ""): string {
  const optional = isRequired ? "" : " <i>optional</i>";
  return `<tr><th scope="row"><code>${escaped(name)}</code>${optional}</th><td>${typeName(schema)}</td><td>${escaped(description)}</td></tr>`;
}

function fieldTable(caption: string, rows: readonly string[]): string {
  return `<table><caption>${caption}</caption>${rows.join("")}</table>`;
}

function typeName(schema: SchemaObject): string {
  if (schema.$ref !== undefined) {
    const name = nameOf(schema.$ref);
    return `<a href="#schema-${name}">${escaped(name)}</a>`;
  }
  if (schema.enum !== undefined) {
    const values = schema.enum.map((value) => `<code>${escaped(JSON.stringify(value))}</code>`).join(" | ");
    return schema.default === undefined
      ? values
      : `${values}, default <code>${escaped(JSON.stringify(schema.default))}</code>`;
  }
  const alternatives = schema.oneOf ?? schema.anyOf ?? schema.allOf;
  if (alternatives !== undefined) return alternatives.map(typeName).join(" | ");
  const name = schema.type === "array" ? `array of ${typeName(schema.items ?? {})}` : escaped(schema.type ?? "any");
  return [name, schema.nullable === true ? " or null" : "", bounds(schema)].join("");
}

const boundNames = ["format", "minimum", "maximum", "minLength", "maxLength", "default"] as const;

function bounds(schema: SchemaObject): string {
  const told = boundNames.flatMap((name) =>
    schema[name] === undefined ? [] : [`${name} <code>${escaped(JSON.stringify(schema[name]))}</code>`],
  );
  return told.length === 0 ? "" : `, ${told.join(", ")}`;
}

function json(value: unknown): string {
  return `<pre>${escaped(JSON.stringify(value, null, 2))}</pre>`;
}

function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf("/") + 1);
}

/** `code` in backticks; everything else is text. */
function marked(text: string): string {
  return escaped(text).replace(/`([^`]+)`/g, "<code>$1</code>");
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);
}
