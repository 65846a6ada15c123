/**
 * package.json of a module: what it says of itself, and whether that is true of the files beside it. Everything wrong with it is named
 * at once, so that an author mends it in one go. Members not known are left alone: they may be meant for npm, or for later servers.
 */
import { satisfies, valid, validRange } from "semver";
import { z } from "zod";
import { Failure } from "../errors/failure.ts";
import { parseJson } from "../json/parse.ts";
import {
  constraintCharactersMax,
  iconBytesMax,
  moduleIdCharactersMax,
  moduleNameCharactersMax,
  moduleTextCharactersMax,
  packageManifestBytesMax,
} from "../limits.ts";
import type { PackageManifest } from "../ports/packages.ts";
import { pathProblem, withoutDot } from "./package-path.ts";
import { quoted, refuse } from "./refusal.ts";

export const manifestPath = "package.json";

export interface ReadManifest {
  readonly manifest: PackageManifest;
  /** Relative to the package; undefined: it has none. */
  readonly iconPath: string | undefined;
}

/** Regular files of the package, by path relative to it. */
export type PackageFiles = ReadonlyMap<string, { readonly bytes: number }>;

/** Throws Failure invalid_request: too long, not JSON, or not a manifest, with every problem. */
export function readManifest(source: Uint8Array, files: PackageFiles, serverVersion: string): ReadManifest {
  requireManifestBytes(source.length);
  const parsed = manifestSchema(files).safeParse(parseJson(source, "package.json"));
  if (!parsed.success) throw manifestFailure(parsed.error.issues);
  const { version, troupe } = parsed.data;
  requireEngines(troupe.engines, serverVersion);
  const { icon, ...told } = troupe;
  return { manifest: { ...told, version, hasIcon: icon !== undefined }, iconPath: icon };
}

/** Asked before the file is read. Throws Failure invalid_request. */
export function requireManifestBytes(bytes: number): void {
  if (bytes > packageManifestBytesMax) {
    refuse(`package.json has ${bytes} bytes, more than the ${packageManifestBytesMax} allowed`);
  }
}

/** Why an id cannot be used, as the end of a sentence that starts with it; undefined: it can. */
export function moduleIdProblem(id: string): string | undefined {
  if (id.length > moduleIdCharactersMax) return `must have at most ${moduleIdCharactersMax} characters`;
  // It becomes a folder, and a key of objects.
  if (!/^[A-Za-z_$][A-Za-z0-9_$-]*$/.test(id)) return "must be a letter, _ or $, then letters, digits, _, $ or -";
  return id in Object.prototype ? `must not be "${id}"` : undefined;
}

function manifestSchema(files: PackageFiles) {
  return z.object({
    version: z.string().refine(isVersion, "must be a semantic version such as 1.2.3"),
    troupe: z.object({
      id: z.string().superRefine((id, context) => report(context, moduleIdProblem(id))),
      name: z.string().max(moduleNameCharactersMax).refine(isNotBlank, "must not be blank"),
      type: z.enum(["adapter", "environment"]),
      description: z.string().max(moduleTextCharactersMax),
      engines: z
        .string()
        // A long range costs seconds, so nothing else looks at it.
        .max(constraintCharactersMax, { abort: true })
        .refine((range) => isNotBlank(range) && validRange(range) !== null, "must be a semver range such as >=0.1.0"),
      main: fileIn(files),
      icon: fileIn(files, iconBytesMax).optional(),
    }),
  });
}

/** Path of one of the package's files, without `./`. */
function fileIn(files: PackageFiles, bytesMax = Number.POSITIVE_INFINITY) {
  return z
    .string()
    .transform(withoutDot)
    .superRefine((path, context) => report(context, fileProblem(path, files, bytesMax)));
}

function fileProblem(path: string, files: PackageFiles, bytesMax: number): string | undefined {
  const problem = pathProblem(path);
  if (problem !== undefined) return `${quoted(path)} ${problem}`;
  const file = files.get(path);
  if (file === undefined) return `there is no file ${quoted(path)}`;
  return file.bytes > bytesMax
    ? `${quoted(path)} has ${file.bytes} bytes, more than the ${bytesMax} allowed`
    : undefined;
}

function report(context: z.RefinementCtx, problem: string | undefined): void {
  if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
}

/** As semver.org writes them: the library also takes "v1.2.3" and "= 1.2.3". */
function isVersion(text: string): boolean {
  return /^[0-9]\S*$/.test(text) && valid(text) !== null;
}

function isNotBlank(text: string): boolean {
  return text.trim() !== "";
}

function manifestFailure(issues: readonly z.core.$ZodIssue[]): Failure {
  const fields = issues.map(({ path, message }) => ({ field: path.map(String).join("."), description: message }));
  const problems = fields.map(({ field, description }) => (field === "" ? description : `${field}: ${description}`));
  return new Failure("invalid_request", `package.json is not that of a module: ${problems.join("; ")}`, { fields });
}

/**
 * Pre-releases of the server count: a range such as ">=0.1.0" names what a module needs, and 0.2.0-beta.1 has it. Without that, nobody
 * who tries a pre-release could use any module.
 */
function requireEngines(range: string, serverVersion: string): void {
  if (satisfies(serverVersion, range, { includePrerelease: true })) return;
  refuse(`The module runs in Troupe ${quoted(range)} (troupe.engines), and this is version "${serverVersion}"`);
}
