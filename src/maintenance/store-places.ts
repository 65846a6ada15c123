/** What an entry of the store is for, read from its key (runtime/keys.ts and operations/idempotency.ts say how they are made). */
import { changesKey, parseWakeKey } from "../runtime/keys.ts";
import type { Address } from "../runtime/kind.ts";
import { canaryKey } from "./sealed-values.ts";

export type Place =
  | { readonly part: "record" | "blob" | "wake"; readonly address: Address }
  /** The key of its actor is its value. */
  | { readonly part: "index"; readonly address: Pick<Address, "kind"> }
  | { readonly part: "other" };

/** Undefined: no part of the server writes such a key. */
export function placeOfKey(key: string): Place | undefined {
  const parts = key.split("/");
  try {
    return placeOfParts(key, parts);
  } catch {
    // A part that is not percent-encoded.
    return undefined;
  }
}

function placeOfParts(key: string, parts: readonly string[]): Place | undefined {
  const [first, second = "", third = ""] = parts;
  if (parts.includes("") && first !== "x") return undefined;
  switch (first) {
    case "a":
    case "b": {
      if (parts.length !== (first === "a" ? 3 : 4)) return undefined;
      const address = { kind: decodeURIComponent(second), key: decodeURIComponent(third) };
      return { part: first === "a" ? "record" : "blob", address };
    }
    case "x":
      return parts.length < 4 ? undefined : { part: "index", address: { kind: decodeURIComponent(second) } };
    case "w":
      if (parts.length !== 5 || !/^\d{15}$/.test(second)) return undefined;
      return { part: "wake", address: parseWakeKey(key).address };
    case "m":
      return key === canaryKey || key === changesKey || (second === "sequence" && parts.length === 3)
        ? { part: "other" }
        : undefined;
    case "idempotency":
      return second === "note" || second === "age" ? { part: "other" } : undefined;
    default:
      return undefined;
  }
}
