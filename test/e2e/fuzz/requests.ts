/**
 * Requests made from an OpenAPI document: right ones, nearly right ones, and wrong ones of every kind. What they are about is drawn from
 * `known`, the ids of records that are there.
 */
import type { Document } from "../answers/contract.ts";
import { awkwardStrings } from "./awkward-strings.ts";
import type { Random } from "./random.ts";

export interface FuzzRequest {
  readonly kind: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

export type Known = Readonly<Record<string, readonly unknown[]>>;

interface Listed {
  readonly path: string;
  readonly method: string;
  readonly operation: Document;
}

const kinds = [
  ...Array<string>(6).fill("valid"),
  ...Array<string>(5).fill("nearly valid"),
  "awkward",
  "awkward",
  "wrong types",
  "wrong types",
  "wrong method",
  "wrong media type",
  "not JSON",
  "huge",
] as const;

const wrongMediaTypes = [
  "text/plain",
  "application/xml",
  "application/json; charset=utf-16",
  "",
  "multipart/form-data",
];
const notJson = ["{", "[1,]", '{"a":1,}', "'a'", "\u0000", '{"a":1}x', "nul", '"\\ud800', "﻿{}", "[".repeat(5_000)];
const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"];

export class Requests {
  readonly #random: Random;
  readonly #document: Document;
  readonly #listed: readonly Listed[];
  readonly #known: Known;

  constructor(document: Document, known: Known, random: Random) {
    this.#random = random;
    this.#document = document;
    this.#known = known;
    this.#listed = Object.entries(document.paths as Record<string, Record<string, Document>>).flatMap(
      ([path, operations]) =>
        Object.entries(operations).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
    );
  }

  next(): FuzzRequest {
    const random = this.#random;
    const { path, method, operation } = random.of(this.#listed);
    const kind = random.of(kinds);
    const parameters = operation.parameters.map((one: Document) => this.#deref(one));
    const headers: Record<string, string> = { ...this.#headers(parameters, kind) };
    const body = this.#body(operation, kind);
    if (body !== undefined) headers["content-type"] = this.#mediaType(operation, kind);
    return {
      kind,
      method: kind === "wrong method" ? random.of(methods) : method,
      path: this.#path(path, parameters, kind) + this.#query(parameters, kind),
      headers,
      body,
    };
  }

  #path(path: string, parameters: readonly Document[], kind: string): string {
    return path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const key = `${path.split("/")[1]}.${name}`;
      const schema = parameters.find((one) => one.name === name)?.schema ?? {};
      const value = this.#isSpoilt(kind, 0.2) ? this.#wrong() : this.#knownOr(key, name, schema);
      return encoded(typeof value === "object" ? JSON.stringify(value) : String(value));
    });
  }

  #knownOr(key: string, name: string, schema: Document): unknown {
    const pool = this.#known[key] ?? this.#known[name];
    return pool === undefined || this.#random.chance(0.1) ? this.#value(schema, 0) : this.#random.of(pool);
  }

  #query(parameters: readonly Document[], kind: string): string {
    const random = this.#random;
    const parts = parameters
      .filter((one) => one.in === "query" && random.chance(0.4))
      .flatMap(({ name, schema }) => {
        const value = this.#isSpoilt(kind, 0.5) ? this.#wrong() : this.#value(schema, 0);
        const part = `${name}=${encoded(typeof value === "object" ? JSON.stringify(value) : String(value))}`;
        return random.chance(0.03) ? [part, part] : [part];
      });
    if (kind === "awkward") parts.push(`${encoded(random.of(awkwardStrings))}=${encoded(random.of(awkwardStrings))}`);
    if (kind === "awkward" && random.chance(0.2)) parts.push(random.of(["%", "%zz=1", "%ff=%fe", "&&&=", "a[b]=c"]));
    return parts.length === 0 ? "" : `?${parts.join("&")}`;
  }

  #headers(parameters: readonly Document[], kind: string): Record<string, string> {
    const random = this.#random;
    const chosen = parameters.filter((one) => one.in === "header" && random.chance(0.2));
    return Object.fromEntries(
      chosen.map(({ name, example }) => {
        const text = this.#isSpoilt(kind, 0.5) ? random.of(awkwardStrings) : `${example}`;
        return [name.toLowerCase(), text.replace(/[^\x20-\x7e\x80-\xff]/g, "?")];
      }),
    );
  }

  #mediaType(operation: Document, kind: string): string {
    const types = Object.keys(operation.requestBody?.content ?? { "application/json": {} });
    return this.#random.of(kind === "wrong media type" ? wrongMediaTypes : types);
  }

  #body(operation: Document, kind: string): string | undefined {
    const random = this.#random;
    const content = operation.requestBody?.content;
    if (content === undefined) return random.chance(0.03) ? "{}" : undefined;
    if (kind === "not JSON") return random.of(notJson);
    const [{ schema }] = Object.values(content) as [Document];
    const value = random.chance(0.02) ? undefined : this.#value(schema, 0);
    if (value === undefined) return undefined;
    switch (kind) {
      case "nearly valid":
        return JSON.stringify(this.#spoilt(value));
      case "wrong types":
        return JSON.stringify(random.chance(0.5) ? this.#wrong() : this.#everyLeaf(value, () => this.#wrong()));
      case "awkward":
        return JSON.stringify(
          this.#everyLeaf(value, (leaf) => (typeof leaf === "string" ? random.of(awkwardStrings) : leaf)),
        );
      case "huge":
        return JSON.stringify(this.#everyLeaf(value, () => "x".repeat(random.of([20_000, 102_401, 2_200_000]))));
      default:
        return JSON.stringify(value);
    }
  }

  #isSpoilt(kind: string, share: number): boolean {
    return (kind === "awkward" || kind === "wrong types" || kind === "nearly valid") && this.#random.chance(share);
  }

  /** One thing about it is wrong: a field is gone, too many, or of another kind. */
  #spoilt(value: unknown): unknown {
    const random = this.#random;
    if (typeof value !== "object" || value === null) return this.#wrong();
    if (Array.isArray(value)) return value.length === 0 ? this.#wrong() : value.map((one) => this.#spoilt(one));
    const entries = Object.entries(value);
    const at = random.below(entries.length + 1);
    if (at === entries.length) return { ...value, [random.of(awkwardStrings)]: this.#wrong() };
    const [name, member] = entries[at] as [string, unknown];
    if (random.chance(0.3)) return Object.fromEntries(entries.filter(([other]) => other !== name));
    return { ...value, [name]: random.chance(0.5) ? this.#spoilt(member) : this.#wrong() };
  }

  #everyLeaf(value: unknown, change: (leaf: unknown) => unknown): unknown {
    if (Array.isArray(value)) return value.map((one) => this.#everyLeaf(one, change));
    if (typeof value !== "object" || value === null) return change(value);
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, this.#everyLeaf(member, change)]));
  }

  #wrong(): unknown {
    const random = this.#random;
    if (random.chance(0.4)) return random.of(awkwardStrings);
    return random.of<unknown>([
      null,
      true,
      0,
      -1,
      1.5,
      1e308,
      2 ** 53,
      [],
      {},
      [null],
      [[[[[]]]]],
      { a: { b: { c: null } } },
      Object.fromEntries([
        ["__proto__x", 1],
        ["constructor", { prototype: 1 }],
      ]),
    ]);
  }

  /** As the schema says, with its bounds and its odd corners. */
  #value(given: Document, depth: number): unknown {
    const random = this.#random;
    const schema = this.#deref(given);
    if (schema.nullable === true && random.chance(0.2)) return null;
    if (schema.example !== undefined && random.chance(0.4)) return schema.example;
    const alternatives = schema.oneOf ?? schema.anyOf;
    if (alternatives !== undefined) return this.#value(random.of(alternatives), depth);
    if (schema.enum !== undefined) return random.of(schema.enum);
    switch (schema.type) {
      case "object":
        return this.#object(schema, depth);
      case "array":
        return Array.from({ length: random.below(4) }, () => this.#value(schema.items ?? {}, depth + 1));
      case "string":
        return this.#string(schema);
      case "integer":
        return random.of([schema.minimum ?? 0, 1, 2, 50, schema.maximum ?? 1_000]);
      case "number":
        return random.of([0.001, 1, 1.5, 1_000, 1e9]);
      case "boolean":
        return random.chance(0.5);
      default:
        return depth > 2 ? null : random.of<unknown>(["text", 1, null, [], { a: 1 }]);
    }
  }

  #object(schema: Document, depth: number): Record<string, unknown> {
    const random = this.#random;
    const properties = Object.entries((schema.properties ?? {}) as Record<string, Document>);
    const chosen = properties.filter(([name]) => schema.required?.includes(name) || random.chance(0.4));
    const known = chosen.map(([name, one]) => [name, this.#member(name, one, depth)]);
    const isOpen = schema.additionalProperties !== undefined && random.chance(0.5);
    const extra = isOpen ? [[random.of(awkwardStrings), this.#value({}, depth + 1)]] : [];
    return Object.fromEntries([...known, ...extra]);
  }

  #member(name: string, schema: Document, depth: number): unknown {
    const pool = this.#known[`body.${name}`];
    return pool !== undefined && this.#random.chance(0.8) ? this.#random.of(pool) : this.#value(schema, depth + 1);
  }

  #string(schema: Document): string {
    const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern } = schema;
    if (pattern !== undefined) return this.#random.of(["a", "community", "A_b-9"]);
    const fitting = awkwardStrings.filter((text) => [...text].length >= minLength && [...text].length <= maxLength);
    return this.#random.of(fitting);
  }

  #deref(value: Document): Document {
    if (value?.$ref === undefined) return value;
    return value.$ref
      .split("/")
      .slice(1)
      .reduce((part: Document, name: string) => part?.[name], this.#document);
  }
}

/** Also what is no text: lone surrogates go as the bytes that UTF-8 forbids. */
function encoded(text: string): string {
  return [...text]
    .map((character) => (character.isWellFormed() ? encodeURIComponent(character) : "%ED%A0%80"))
    .join("")
    .slice(0, 8_000);
}
