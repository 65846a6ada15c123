/**
 * Documents that others wrote: bytes to a checked object, or a sentence that says what is wrong. The sentence names fields we
 * know and at most a few printable characters of theirs: whatever a hostile sender puts in must not travel on in an error.
 */
import { Failure, isFailure } from "../errors/failure.ts";
import { parseJson } from "../json/parse.ts";
import { foreignQuoteCharactersMax, registrySlugCharactersMax } from "../limits.ts";

export type Members = Readonly<Record<string, unknown>>;

/** Throws a Failure whose sentence ends in `fault`. */
export type Refuse = (fault: string) => never;

/** @param what names the document, such as `The well-known document of "host"`. */
export function refuseFor(what: string): Refuse {
  return (fault) => {
    throw new Failure("upstream_failed", `${what} is malformed: ${fault}`);
  };
}

/** @throws Failure upstream_failed. */
export function readObject(bytes: Uint8Array, what: string): Members {
  const value = read(bytes, what);
  if (!isMembers(value)) return refuseFor(what)("it is not a JSON object");
  return value;
}

function read(bytes: Uint8Array, what: string): unknown {
  try {
    return parseJson(bytes, what);
  } catch (error) {
    if (!isFailure(error)) throw error;
    // The place of a fault is a path of foreign keys, so it stays here.
    const [fault = ""] = error.message.split(' in "');
    throw new Failure("upstream_failed", fault, { cause: error });
  }
}

export function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The field as a trimmed text that is not blank. */
export function textOf(members: Members, name: string, refuse: Refuse): string {
  const value = members[name];
  if (typeof value !== "string") return refuse(`"${name}" ${value === undefined ? "is missing" : "is not a string"}`);
  const text = value.trim();
  return text === "" ? refuse(`"${name}" is blank`) : text;
}

/** Ids of registries and their entries. */
export function slugOf(members: Members, name: string, refuse: Refuse): string {
  const text = textOf(members, name, refuse);
  if (text.length > registrySlugCharactersMax)
    refuse(`"${name}" is longer than ${registrySlugCharactersMax} characters`);
  return isSlug(text) ? text : refuse(`"${name}" may hold only letters, digits, "_" and "-"`);
}

export function isSlug(text: string): boolean {
  return /^[A-Za-z0-9_-]+$/.test(text);
}

/** An http or https URL, absolute and without fragment. */
export function urlOf(members: Members, name: string, refuse: Refuse, base?: URL): URL {
  const url = URL.parse(textOf(members, name, refuse), base?.href);
  if (url === null) return refuse(`"${name}" is not ${base === undefined ? "an absolute" : "a"} URL`);
  if (url.protocol !== "http:" && url.protocol !== "https:") refuse(`"${name}" is neither an http nor an https URL`);
  if (url.username !== "" || url.password !== "") refuse(`"${name}" holds a user name or password`);
  url.hash = "";
  return url;
}

/** A URL, absolute or relative to `base`, that stays on its origin. */
export function urlOnOrigin(members: Members, name: string, refuse: Refuse, base: URL): URL {
  const url = urlOf(members, name, refuse, base);
  return url.origin === base.origin ? url : refuse(`"${name}" leaves the origin "${base.origin}"`);
}

/** Foreign text fit to stand between quotes in a sentence. */
export function quotable(text: string): string {
  const printable = text.replace(/[^\x20-\x7e]|"/g, "?");
  return printable.length > foreignQuoteCharactersMax ? `${printable.slice(0, foreignQuoteCharactersMax)}…` : printable;
}
