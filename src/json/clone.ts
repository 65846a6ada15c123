/**
 * A deep copy of a JSON value: several times quicker than `structuredClone`, which keeps what JSON does not have (cycles,
 * shared references, class instances). For values whose depth is already bounded.
 */
export function cloneJson<Value>(value: Value): Value {
  return copy(value) as Value;
}

function copy(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copy);
  const members: Record<string, unknown> = {};
  for (const key of Object.keys(value))
    setMember(members, key, copy((value as Readonly<Record<string, unknown>>)[key]));
  return members;
}

/** An own property whatever its name: plain assignment to `__proto__` would set a prototype instead. */
export function setMember(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__")
    Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
  else object[key] = value;
}
