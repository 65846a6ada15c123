/**
 * Bytes of a google.protobuf.FileDescriptorSet to a registry of types that is safe to use. Runs in the descriptor worker.
 *
 * 1. A file comes after everything it imports, and no import leads back: the registry is built in one pass.
 * 2. Every field has its JSON name: some compilers and reflection services leave out the usual ones.
 * 3. An import nobody has is dropped: often it only held options. Where it held a type that is needed, the refusal names it.
 */
import { create, createFileRegistry, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { protoCamelCase } from "@bufbuild/protobuf/reflect";
import { type DescriptorProto, type FileDescriptorProto, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { grpcDescriptorBytesMax, grpcFilesMax } from "../../limits.ts";
import { keepOnlyComments } from "./comments.ts";
import { refusing, shortened, unusable } from "./unusable.ts";
import { wellKnownFile, withOwnWellKnown } from "./well-known.ts";

export interface FileSet {
  readonly files: readonly FileDescriptorProto[];
  readonly registry: FileRegistry;
}

/** Imports named in a refusal. */
const missingShown = 5;

/** @throws Failure invalid_request naming what is wrong. */
export function readFileSet(bytes: Uint8Array): FileSet {
  if (bytes.byteLength > grpcDescriptorBytesMax) {
    throw unusable(`its descriptor set is larger than ${grpcDescriptorBytesMax} bytes`);
  }
  const set = refusing(() => fromBinary(FileDescriptorSetSchema, bytes), "it holds no descriptor set: ");
  if (set.file.length === 0) throw unusable("its descriptor set holds no files");
  if (set.file.length > grpcFilesMax) throw unusable(`its descriptor set has more than ${grpcFilesMax} files`);
  const byName = new Map<string, FileDescriptorProto>();
  for (const file of set.file) if (!byName.has(file.name)) byName.set(file.name, withOwnWellKnown(file));
  const missing = completeImports(byName);
  for (const file of byName.values()) {
    keepOnlyComments(file);
    for (const message of file.messageType) nameFields(message);
  }
  return buildRegistry(inImportOrder(byName), missing);
}

/** What `readFileSet` made, read again. */
export function rereadFileSet(bytes: Uint8Array): FileSet {
  return buildRegistry(fromBinary(FileDescriptorSetSchema, bytes).file, []);
}

function buildRegistry(files: readonly FileDescriptorProto[], missing: readonly string[]): FileSet {
  const set = create(FileDescriptorSetSchema);
  set.file = [...files];
  const lacks = missing.length === 0 ? "" : `it lacks the imports ${listed(missing)}, and `;
  return { files, registry: refusing(() => createFileRegistry(set), lacks) };
}

/** Adds well-known files that are imported, drops imports nobody has, and answers with those. */
function completeImports(byName: Map<string, FileDescriptorProto>): string[] {
  const missing = new Set<string>();
  const pending = [...byName.values()];
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    const dropped: string[] = [];
    for (const name of file.dependency) {
      if (byName.has(name)) continue;
      const own = wellKnownFile(name);
      if (own === undefined) {
        dropped.push(name);
        continue;
      }
      byName.set(name, own);
      pending.push(own);
    }
    if (dropped.length === 0) continue;
    for (const name of dropped) missing.add(name);
    // Positions in this list are meaningless once some are gone.
    file.publicDependency = [];
    file.weakDependency = [];
    file.dependency = file.dependency.filter((name) => !dropped.includes(name));
  }
  return [...missing];
}

function nameFields(message: DescriptorProto): void {
  for (const field of message.field) if (field.jsonName === "") field.jsonName = protoCamelCase(field.name);
  for (const nested of message.nestedType) nameFields(nested);
}

/** Without recursion: chains of imports are as long as their author likes. */
function inImportOrder(byName: ReadonlyMap<string, FileDescriptorProto>): FileDescriptorProto[] {
  const waitsFor = new Map<string, number>();
  const importers = new Map<string, string[]>();
  for (const file of byName.values()) {
    const imports = new Set(file.dependency);
    waitsFor.set(file.name, imports.size);
    for (const name of imports) {
      const known = importers.get(name);
      if (known === undefined) importers.set(name, [file.name]);
      else known.push(file.name);
    }
  }
  const ready = [...byName.keys()].filter((name) => waitsFor.get(name) === 0);
  const ordered: FileDescriptorProto[] = [];
  for (let at = 0; at < ready.length; at += 1) {
    const name = ready[at]!;
    ordered.push(byName.get(name)!);
    for (const importer of importers.get(name) ?? []) {
      const left = waitsFor.get(importer)! - 1;
      waitsFor.set(importer, left);
      if (left === 0) ready.push(importer);
    }
  }
  if (ordered.length < byName.size) {
    const circle = [...byName.keys()].filter((name) => waitsFor.get(name)! > 0);
    throw unusable(`its files import each other in a circle: ${listed(circle)}`);
  }
  return ordered;
}

/** Of a registry's files those that some of its services need, in the same order. */
export function filesOfServices({ files, registry }: FileSet, services: readonly string[]): FileDescriptorProto[] {
  const needed = new Set<string>();
  const pending = services.flatMap((name) => registry.getService(name)?.file.proto ?? []);
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    if (needed.has(file.name)) continue;
    needed.add(file.name);
    pending.push(...file.dependency.flatMap((name) => registry.getFile(name)?.proto ?? []));
  }
  return files.filter((file) => needed.has(file.name));
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, missingShown).map((name) => `"${shortened(name, 100)}"`);
  return names.length > shown.length ? `${shown.join(", ")} and ${names.length - shown.length} more` : shown.join(", ");
}
