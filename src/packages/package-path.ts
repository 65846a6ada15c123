/**
 * Paths inside a package, as archives and manifests spell them. One rule for both: relative, forward slashes, nothing that a file
 * system, a terminal or another system could read differently.
 */
import { packageNameBytesMax, packagePathBytesMax, packagePathDepthMax } from "../limits.ts";
import { isPlain } from "./refusal.ts";

/** Without what says nothing: `./` in front, as `tar` writes it for a folder packed from inside. "" is the package itself. */
export function withoutDot(path: string): string {
  const bare = path.replace(/^(?:\.\/)+/, "");
  return bare === "." ? "" : bare;
}

/** What is wrong with a path, as the end of a sentence that starts with it; undefined: nothing. */
export function pathProblem(path: string): string | undefined {
  if (path === "") return "is empty";
  if (!isPlain(path)) return "has a control character";
  // A decoder puts U+FFFD in place of bytes that are not UTF-8, and two such names could become one.
  if (!path.isWellFormed() || path.includes("\uFFFD")) return "is not valid UTF-8";
  if (path.includes("\\")) return "has a backslash";
  if (path.startsWith("/") || /^[A-Za-z]:/.test(path)) return "is absolute";
  const bytes = Buffer.byteLength(path);
  if (bytes > packagePathBytesMax) return `has ${bytes} bytes, more than the ${packagePathBytesMax} allowed`;
  return partsProblem(path.split("/"));
}

function partsProblem(parts: readonly string[]): string | undefined {
  if (parts.includes("..")) return 'leads outside through ".."';
  if (parts.some((part) => part === "" || part === ".")) return "has an empty part";
  if (parts.length > packagePathDepthMax) return `is deeper than the ${packagePathDepthMax} levels allowed`;
  const isLong = parts.some((part) => Buffer.byteLength(part) > packageNameBytesMax);
  return isLong ? `has a part of more than the ${packageNameBytesMax} bytes allowed` : undefined;
}
