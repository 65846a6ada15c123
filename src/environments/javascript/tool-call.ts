/** How process code calls one tool: the expression, and the example with its parameters. */
import { escapedJson, foreignJson, isIdentifier, propertyName, stringLiteral } from "../foreign-text.ts";

/** Parameters shown in one example, as text. */
const exampleCharactersMax = 4_000;

/** Members of `services.<id>` that are not tools: such tool ids are reached through `.tools[id].invoke`. */
function isPlainMember(toolId: string): boolean {
  return toolId !== "then" && toolId !== "tools" && !(toolId in Object.prototype);
}

/** `services.petstore.listPets`, `services.petstore["list-pets"]` or `services.petstore.tools["then"].invoke`. */
export function callee(serviceId: string, toolId: string): string {
  const service = `services${member(serviceId)}`;
  return isPlainMember(toolId) ? `${service}${member(toolId)}` : `${service}.tools[${stringLiteral(toolId)}].invoke`;
}

/** The call as a declaration that can be pasted above process code. */
export function signature(serviceId: string, toolId: string, parameters: string, result: string): string {
  const service = `declare const services: {\n  ${propertyName(serviceId)}: {\n`;
  const method = isPlainMember(toolId)
    ? `    ${propertyName(toolId)}(${parameters}): ${result};\n`
    : `    tools: { ${stringLiteral(toolId)}: { invoke(${parameters}): ${result} } };\n`;
  return `${service}${method}  };\n};\n`;
}

function member(name: string): string {
  return isIdentifier(name) ? `.${name}` : `[${stringLiteral(name)}]`;
}

/** A plain JSON value as a TypeScript expression, two spaces a level; `{}` when it would be too long to read. */
export function objectLiteral(value: unknown): string {
  const text = valueText(value, "");
  return text.length <= exampleCharactersMax ? text : "{}";
}

function valueText(value: unknown, indent: string): string {
  if (typeof value !== "object" || value === null) return escapedJson(foreignJson(value) ?? "null");
  const inner = `${indent}  `;
  const [open, close, parts] = Array.isArray(value)
    ? (["[", "]", value.map((item) => valueText(item, inner))] as const)
    : (["{", "}", Object.entries(value).map(([name, item]) => `${keyText(name)}: ${valueText(item, inner)}`)] as const);
  if (parts.length === 0) return `${open}${close}`;
  const flat = `${open} ${parts.join(", ")} ${close}`;
  if (flat.length + indent.length <= 80 && !flat.includes("\n"))
    return Array.isArray(value) ? `[${parts.join(", ")}]` : flat;
  return `${open}\n${parts.map((part) => `${inner}${part},\n`).join("")}${indent}${close}`;
}

/** Written plainly, `__proto__` in an object literal would set the prototype. */
function keyText(name: string): string {
  return name === "__proto__" ? '["__proto__"]' : propertyName(name);
}
