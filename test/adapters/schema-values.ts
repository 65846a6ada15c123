/**
 * Makes a value that a JSON Schema accepts: only what is required, the first branch of each choice. It is a guess that the
 * caller checks with a validator; patterns that no guess meets are the usual reason why it fails.
 */
type Schema = { readonly [keyword: string]: unknown };

const depthMax = 40;

export function valueFor(schema: unknown, root: unknown = schema, depth = 0): unknown {
  if (typeof schema !== "object" || schema === null || depth > depthMax) return schema === true ? "any" : null;
  const flat = flatten(schema as Schema, root, 0);
  if (flat.const !== undefined) return flat.const;
  if (Array.isArray(flat.enum)) return flat.enum.find((each) => each !== null) ?? null;
  const branch = firstBranch(flat);
  if (branch !== undefined) return valueFor({ ...without(flat, ["oneOf", "anyOf"]), allOf: [branch] }, root, depth + 1);
  switch (typeOf(flat)) {
    case "object":
      return objectFor(flat, root, depth);
    case "array":
      return Array.from({ length: Number(flat.minItems ?? 1) }, () => valueFor(flat.items ?? {}, root, depth + 1));
    case "integer":
    case "number":
      return numberFor(flat);
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return stringFor(flat);
  }
}

/** References followed and `allOf` merged, near enough for real documents. */
function flatten(schema: Schema, root: unknown, hops: number): Schema {
  if (hops > depthMax) return schema;
  const parts: Schema[] = [without(schema, ["$ref", "allOf"])];
  if (typeof schema.$ref === "string") parts.push(flatten(definition(schema.$ref, root), root, hops + 1));
  // Rules about the body's media type stand at the top only; they add nothing to a first guess.
  const all = Array.isArray(schema.allOf)
    ? schema.allOf.filter((part) => typeof part === "object" && part !== null && !("if" in part))
    : [];
  for (const part of all) parts.push(flatten(part as Schema, root, hops + 1));
  return parts.reduce(merge);
}

function definition(ref: string, root: unknown): Schema {
  const name = ref.replace("#/$defs/", "");
  return (root as { $defs?: Record<string, Schema> }).$defs?.[name] ?? {};
}

function merge(left: Schema, right: Schema): Schema {
  return {
    ...right,
    ...left,
    ...(left.properties || right.properties
      ? { properties: { ...(right.properties as object), ...(left.properties as object) } }
      : {}),
    ...(left.required || right.required
      ? { required: [...new Set([...list(left.required), ...list(right.required)])] }
      : {}),
  };
}

function firstBranch(schema: Schema): unknown {
  const branches = [schema.oneOf, schema.anyOf].find(Array.isArray);
  return branches?.find((branch) => (branch as Schema).type !== "null") ?? branches?.[0];
}

function objectFor(schema: Schema, root: unknown, depth: number): Record<string, unknown> {
  const properties = (schema.properties ?? {}) as Record<string, unknown>;
  const names = list(schema.required) as string[];
  const missing = Number(schema.minProperties ?? 0) - names.length;
  const more =
    missing > 0
      ? Object.keys(properties)
          .filter((name) => !names.includes(name))
          .slice(0, missing)
      : [];
  return Object.fromEntries(
    [...names, ...more].map((name) => [name, valueFor(properties[name] ?? {}, root, depth + 1)]),
  );
}

function numberFor(schema: Schema): number {
  const step = typeof schema.multipleOf === "number" ? schema.multipleOf : 1;
  const low =
    typeof schema.minimum === "number"
      ? schema.minimum
      : typeof schema.exclusiveMinimum === "number"
        ? schema.exclusiveMinimum + step
        : undefined;
  const high = typeof schema.maximum === "number" ? schema.maximum : undefined;
  return low ?? (high !== undefined && high < 1 ? high : step);
}

const byFormat: Readonly<Record<string, string>> = {
  "date-time": "2026-01-02T03:04:05Z",
  date: "2026-01-02",
  time: "03:04:05Z",
  uuid: "123e4567-e89b-42d3-a456-426614174000",
  email: "someone@example.com",
  uri: "https://example.com/a",
  url: "https://example.com/a",
  hostname: "example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  byte: "QUJD",
  duration: "P1D",
};

const guesses = [
  "abc",
  "1",
  "a1",
  "ABC",
  "12345",
  "2026-01-02",
  "EUR",
  "US",
  "https://example.com",
  "a@example.com",
  "/a",
  "#aabbcc",
  "1.0",
  "arn:aws:a:b:c",
];

function stringFor(schema: Schema): string {
  const given = [schema.default, ...list(schema.examples)].filter((each) => typeof each === "string") as string[];
  const plain = byFormat[String(schema.format)] ?? "abc";
  const sized = (text: string) =>
    text.padEnd(Number(schema.minLength ?? 0), "a").slice(0, Number(schema.maxLength ?? Number.POSITIVE_INFINITY));
  const candidates = [...given, sized(plain), ...guesses.map(sized)];
  if (typeof schema.pattern !== "string") return candidates[0] ?? plain;
  const pattern = new RegExp(schema.pattern, "u");
  return candidates.find((candidate) => pattern.test(candidate)) ?? plain;
}

function typeOf(schema: Schema): unknown {
  if (Array.isArray(schema.type)) return schema.type.find((each) => each !== "null");
  return schema.type ?? (schema.properties || schema.required ? "object" : schema.items ? "array" : "string");
}

function without(schema: Schema, keys: readonly string[]): Schema {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => !keys.includes(key)));
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
