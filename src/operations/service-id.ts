/** Service ids are names in process code (`services.petstore`), so they must be identifiers that mean nothing else there. */

const identifier = /^[A-Za-z_$][A-Za-z0-9_$]*$/;
const charactersMax = 128;

/** Why an id cannot be used, or undefined. */
export function serviceIdProblem(id: string): string | undefined {
  if (id.length > charactersMax) return `must have at most ${charactersMax} characters`;
  if (!identifier.test(id)) return "must be an identifier: a letter, _ or $, then letters, digits, _ or $";
  if (id === "then" || id === "tools" || id in Object.prototype) return `must not be "${id}"`;
  return undefined;
}

/** An id made from a title: other characters become `_`, a leading digit is prefixed. */
export function serviceIdFrom(title: string): string {
  const cleaned = title
    .trim()
    .replace(/[^A-Za-z0-9_$]+/g, "_")
    .replace(/^_+|_+$/g, "")
    .slice(0, charactersMax - 1);
  const named = cleaned === "" || /^[0-9]/.test(cleaned) ? `_${cleaned}` : cleaned;
  return serviceIdProblem(named) === undefined ? named : `_${named}`;
}
