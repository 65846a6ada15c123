/** How a Python program calls one tool: the expression, and values as Python literals. */
import { toSnakeCase } from "../../json/snake-case.ts";
import { escapedJson, foreignJson } from "../foreign-text.ts";

/** Parameters shown in one example, as text. */
const exampleCharactersMax = 4_000;
const lineCharactersMax = 80;

const keywords = new Set(
  "False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield".split(
    " ",
  ),
);

/** `services.petstore.get_pet`; ids that have no plain spelling by key: `services["pet store"].tools["import"]`. */
export function callee(serviceId: string, toolId: string): string {
  const service = isPlainName(serviceId) ? `services.${serviceId}` : `services[${stringLiteral(serviceId)}]`;
  const spelled = toSnakeCase(toolId);
  // Only where nothing but letters, digits and hyphens was respelled: else the id itself is the safer thing to show.
  const isSpellable = /^[A-Za-z][A-Za-z0-9_-]*$/.test(toolId) && isPlainName(spelled) && spelled !== "tools";
  return isSpellable ? `${service}.${spelled}` : `${service}.tools[${stringLiteral(toolId)}]`;
}

/** An object's members as keyword arguments where all can be; else one dict. Nothing when it would be too long to read. */
export function argumentsText(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return valueText(value, "");
  const members = Object.entries(value);
  const text = members.every(([name]) => isPlainName(name)) ? keywordArguments(members) : valueText(value, "");
  return text.length <= exampleCharactersMax ? text : "{}";
}

function keywordArguments(members: readonly (readonly [string, unknown])[]): string {
  const flat = members.map(([name, held]) => `${name}=${valueText(held, "")}`).join(", ");
  if (flat.length <= lineCharactersMax && !flat.includes("\n")) return flat;
  return `\n${members.map(([name, held]) => `    ${name}=${valueText(held, "    ")},\n`).join("")}`;
}

function valueText(value: unknown, indent: string): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return stringLiteral(value);
  if (typeof value !== "object") return foreignJson(value) ?? "None";
  const inner = `${indent}    `;
  const [open, close, parts] = Array.isArray(value)
    ? (["[", "]", value.map((item) => valueText(item, inner))] as const)
    : ([
        "{",
        "}",
        Object.entries(value).map(([name, item]) => `${stringLiteral(name)}: ${valueText(item, inner)}`),
      ] as const);
  const flat = `${open}${parts.join(", ")}${close}`;
  if (flat.length + indent.length <= lineCharactersMax && !flat.includes("\n")) return flat;
  return `${open}\n${parts.map((part) => `${inner}${part},\n`).join("")}${indent}${close}`;
}

/** JSON's escapes are Python's too, but for characters that JSON writes as a pair. */
function stringLiteral(text: string): string {
  return escapedJson(JSON.stringify(text.toWellFormed())).replace(
    /\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|.)/gi,
    (written, high?: string, low?: string) => {
      if (high === undefined || low === undefined) return written;
      const point = 0x10000 + ((Number.parseInt(high, 16) - 0xd800) << 10) + (Number.parseInt(low, 16) - 0xdc00);
      return `\\U${point.toString(16).padStart(8, "0")}`;
    },
  );
}

/** Two underscores in front mean something to Python itself. */
function isPlainName(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !name.startsWith("__") && !keywords.has(name);
}
