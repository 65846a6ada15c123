/** TypeScript type expressions as text that know how tightly they bind, so that parentheses appear only where needed. */

export interface TypeExpression {
  readonly text: string;
  /** The operator at the top: none, `&` or `|`. */
  readonly operator: "none" | "and" | "or";
}

export function atom(text: string): TypeExpression {
  return { text, operator: "none" };
}

export const unknownType = atom("unknown");
export const leftOutType = atom("unknown /* left out */");

export function union(types: readonly TypeExpression[]): TypeExpression {
  const members = distinct(types);
  if (members.length < 2) return members[0] ?? unknownType;
  return { text: members.map(({ text }) => text).join(" | "), operator: "or" };
}

/** `unknown` adds nothing to an intersection and is dropped. */
export function intersection(types: readonly TypeExpression[]): TypeExpression {
  const members = distinct(types).filter(({ text }) => text !== unknownType.text);
  if (members.length < 2) return members[0] ?? unknownType;
  const texts = members.map((type) => (type.operator === "or" ? `(${type.text})` : type.text));
  return { text: texts.join(" & "), operator: "and" };
}

export function arrayOf(item: TypeExpression): TypeExpression {
  return atom(/^[\w$]+$/.test(item.text) ? `${item.text}[]` : `Array<${item.text}>`);
}

export function recordOf(value: TypeExpression): TypeExpression {
  return atom(`{ [name: string]: ${value.text} }`);
}

export function optionalItem(item: TypeExpression): string {
  return /^[\w$]+$/.test(item.text) ? `${item.text}?` : `(${item.text})?`;
}

function distinct(types: readonly TypeExpression[]): TypeExpression[] {
  return [...new Map(types.map((type) => [type.text, type])).values()];
}
