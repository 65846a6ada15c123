/** structuredClone: values, cycles, dates, maps, sets, buffers, errors. Runs inside QuickJS: see bridge.ts. */
export function installClone(): Record<string, unknown> {
  const refuse = (what: string): never => {
    const Refusal = (globalThis as unknown as { DOMException: new (message: string, name: string) => Error })
      .DOMException;
    throw new Refusal(`${what} could not be cloned`, "DataCloneError");
  };
  const errors = new Map<string, new (message: string) => Error>(
    [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map((kind) => [kind.name, kind]),
  );

  const cloneError = (value: Error): Error => {
    const Kind = errors.get(value.name) ?? Error;
    const copy = new Kind(String(value.message));
    Object.defineProperty(copy, "stack", { value: value.stack, configurable: true, writable: true });
    return copy;
  };

  const cloneView = (value: ArrayBufferView, seen: Map<unknown, unknown>): unknown => {
    const buffer = clone(value.buffer, seen) as ArrayBuffer;
    if (value instanceof DataView) return new DataView(buffer, value.byteOffset, value.byteLength);
    const Kind = value.constructor as new (buffer: ArrayBuffer, offset: number, length: number) => unknown;
    return new Kind(buffer, value.byteOffset, (value as Uint8Array).length);
  };

  /** Those without parts of their own, or undefined. */
  const cloneWhole = (value: object, seen: Map<unknown, unknown>): unknown => {
    if (value instanceof Date) return new Date(value.getTime());
    if (value instanceof RegExp) return new RegExp(value.source, value.flags);
    if (value instanceof ArrayBuffer) return value.slice(0);
    if (ArrayBuffer.isView(value)) return cloneView(value, seen);
    if (value instanceof Error) return cloneError(value);
    if (value instanceof Boolean || value instanceof Number || value instanceof String) return Object(value.valueOf());
    if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef) {
      return refuse(`A ${value.constructor.name}`);
    }
    return undefined;
  };

  const clone = (value: unknown, seen: Map<unknown, unknown>): unknown => {
    if (typeof value === "function") return refuse("A function");
    if (typeof value === "symbol") return refuse("A symbol");
    if (typeof value !== "object" || value === null) return value;
    if (seen.has(value)) return seen.get(value);
    const whole = cloneWhole(value, seen);
    if (whole !== undefined) {
      seen.set(value, whole);
      return whole;
    }
    if (value instanceof Map) {
      const copy = new Map<unknown, unknown>();
      seen.set(value, copy);
      for (const [key, held] of [...value]) copy.set(clone(key, seen), clone(held, seen));
      return copy;
    }
    if (value instanceof Set) {
      const copy = new Set<unknown>();
      seen.set(value, copy);
      for (const held of [...value]) copy.add(clone(held, seen));
      return copy;
    }
    const copy: object = Array.isArray(value) ? new Array(value.length) : {};
    seen.set(value, copy);
    for (const key of Object.keys(value)) {
      const held = clone((value as Record<string, unknown>)[key], seen);
      Object.defineProperty(copy, key, { value: held, writable: true, enumerable: true, configurable: true });
    }
    return copy;
  };

  const structuredClone = (value: unknown): unknown => clone(value, new Map());
  return { structuredClone };
}
