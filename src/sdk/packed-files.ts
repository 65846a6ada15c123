/**
 * Which files of a module's folder a package holds, as `npm pack` chooses them: package.json, its `main`, README and LICENSE always, and
 * what `files` names; without `files` everything. Ignore files (.npmignore) are not read: name what belongs to the package.
 */
import { globSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

interface PackageJson {
  readonly main?: unknown;
  readonly files?: unknown;
  readonly dependencies?: unknown;
  readonly bundleDependencies?: unknown;
  readonly bundledDependencies?: unknown;
}

/** Relative paths with forward slashes, sorted. @throws Error when package.json cannot be read. */
export function packedFiles(folder: string): readonly string[] {
  const packageJson = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as PackageJson;
  const named = Array.isArray(packageJson.files) ? packageJson.files.map(String) : ["**"];
  const [left, taken] = [named.filter((one) => one.startsWith("!")), named.filter((one) => !one.startsWith("!"))];
  const chosen = new Set([
    ...alwaysPacked(folder, packageJson),
    ...taken.flatMap((pattern) => filesBehind(folder, pattern)),
  ]);
  for (const pattern of left) for (const path of filesBehind(folder, pattern.slice(1))) chosen.delete(path);
  const own = [...chosen].filter((path) => !isNeverPacked(path));
  const bundled = bundledPackages(folder, packageJson).flatMap((name) => filesBelow(folder, `node_modules/${name}`));
  return [...own, ...bundled].sort();
}

/** Names of `dependencies` that are not in the package: a server installs none of them. */
export function missingDependencies(packageJson: unknown): readonly string[] {
  const { dependencies } = packageJson as PackageJson;
  const bundled = bundledNames(packageJson as PackageJson);
  return namesOf(dependencies).filter((name) => !bundled.includes(name));
}

function alwaysPacked(folder: string, { main }: PackageJson): readonly string[] {
  const named = readdirSync(folder).filter(
    (name) => name === "package.json" || /^(readme|licen[cs]e)(\.|$)/i.test(name),
  );
  return [...named, ...(typeof main === "string" ? [main.replace(/^\.\//, "")] : [])].flatMap((path) =>
    filesBelow(folder, path),
  );
}

function isNeverPacked(path: string): boolean {
  const names = path.split("/");
  return (
    names[0] === ".." ||
    names[0] === "node_modules" ||
    names.some((name) => [".git", ".DS_Store"].includes(name)) ||
    ["package-lock.json", ".npmrc", ".gitignore", ".npmignore"].includes(path)
  );
}

function filesBehind(folder: string, pattern: string): readonly string[] {
  const relative = pattern.replace(/^\.?\//, "").replace(/\/$/, "");
  const exclude = (name: string) => name === "node_modules" || name === ".git";
  return globSync(relative, { cwd: folder, exclude }).flatMap((path) => filesBelow(folder, path.replaceAll("\\", "/")));
}

/** The path itself when it is a file, else every file below it; links are never packed. */
function filesBelow(folder: string, path: string): readonly string[] {
  const entry = lstatSync(join(folder, path), { throwIfNoEntry: false });
  if (entry === undefined || entry.isSymbolicLink()) return [];
  if (!entry.isDirectory()) return entry.isFile() ? [path] : [];
  return readdirSync(join(folder, path)).flatMap((name) => filesBelow(folder, path === "." ? name : `${path}/${name}`));
}

/** With what they depend on themselves. */
function bundledPackages(folder: string, packageJson: PackageJson): readonly string[] {
  const found = new Set<string>();
  const pending = [...bundledNames(packageJson)];
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    const file = join(folder, "node_modules", name, "package.json");
    if (found.has(name) || lstatSync(file, { throwIfNoEntry: false }) === undefined) continue;
    found.add(name);
    pending.push(...namesOf((JSON.parse(readFileSync(file, "utf8")) as PackageJson).dependencies));
  }
  return [...found];
}

function bundledNames(packageJson: PackageJson): readonly string[] {
  const bundled = packageJson.bundleDependencies ?? packageJson.bundledDependencies;
  return Array.isArray(bundled) ? bundled.map(String) : bundled === true ? namesOf(packageJson.dependencies) : [];
}

function namesOf(dependencies: unknown): readonly string[] {
  return typeof dependencies === "object" && dependencies !== null ? Object.keys(dependencies) : [];
}
