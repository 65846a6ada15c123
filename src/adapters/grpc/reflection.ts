/**
 * All files a target describes itself with, by reflection. Bounds: services, files, bytes, and the time of the stream. A target that lies
 * can only waste them: each file is taken once, and one it does not give is left to whoever builds the set.
 */
import { Failure } from "../../errors/failure.ts";
import { grpcDescriptorBytesMax, grpcFilesMax, grpcServicesMax } from "../../limits.ts";
import type { Log } from "../../ports/log.ts";
import type { DescriptorWorkers } from "./descriptor-workers.ts";
import { isInfrastructure } from "./plan.ts";
import type { Reflected, ReflectedFile } from "./reflected.ts";
import type { Question, ReflectionStream } from "./reflection-stream.ts";
import { shortened } from "./unusable.ts";
import { wellKnownFile } from "./well-known.ts";

export interface ReflectionParts {
  readonly stream: ReflectionStream;
  readonly workers: DescriptorWorkers;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** For error texts: `grpc://host:port`. */
  readonly target: string;
}

export interface ReflectedSet {
  /** A google.protobuf.FileDescriptorSet, its files in the order they came. */
  readonly descriptorSet: Uint8Array;
  /** Full names of the services the target has: its files may declare others. */
  readonly services: readonly string[];
}

/** The named services, or all that the target lists. */
export async function readByReflection(parts: ReflectionParts, named: readonly string[] | null): Promise<ReflectedSet> {
  const collected = new Files(parts.target);
  const services = named ?? (await listServices(parts)).filter((name) => !isInfrastructure(name));
  if (services.length === 0) throw refused(parts.target, "it lists no services");
  for (const service of services) {
    if (collected.services.has(service)) continue;
    const found = await ask(parts, { case: "fileContainingSymbol", value: service });
    if (found.kind === "files") collected.add(found.files);
    if (named !== null && !collected.services.has(service)) {
      throw refused(parts.target, `it does not describe service "${shortened(service, 200)}"`);
    }
  }
  const described = services.filter((name) => collected.services.has(name));
  if (described.length === 0) throw refused(parts.target, "it describes none of the services it lists");
  if (described.length < services.length) warn(parts, services.length - described.length);
  for (let name = collected.nextMissing(); name !== undefined; name = collected.nextMissing()) {
    const found = await ask(parts, { case: "fileByFilename", value: name });
    if (found.kind === "files") collected.add(found.files);
  }
  return { descriptorSet: collected.toSet(), services: described };
}

function warn({ log, target }: ReflectionParts, count: number): void {
  const message = `"${target}" lists ${count} service${count === 1 ? "" : "s"} that it does not describe; left out`;
  log.warn("grpc-services-not-described", message);
}

async function listServices(parts: ReflectionParts): Promise<readonly string[]> {
  const listed = await ask(parts, { case: "listServices", value: "*" });
  if (listed.kind === "error") throw refused(parts.target, `it does not list its services (error ${listed.code})`);
  if (listed.kind !== "services") throw refused(parts.target, "it does not list its services");
  if (listed.names.length > grpcServicesMax) {
    throw refused(parts.target, `it lists more than ${grpcServicesMax} services`);
  }
  // In one order whatever the target feels like, so that the same target gives the same document.
  return [...new Set(listed.names)].sort();
}

async function ask({ stream, workers, signal, target }: ReflectionParts, question: Question): Promise<Reflected> {
  const reflected = await workers.reflected(await stream.ask(question), signal);
  if (reflected.kind === "garbage") throw refused(target, `its reflection cannot be understood: ${reflected.message}`);
  return reflected;
}

class Files {
  readonly services = new Set<string>();
  readonly #target: string;
  readonly #byName = new Map<string, Uint8Array>();
  readonly #asked = new Set<string>();
  readonly #imports: string[] = [];
  #bytes = 0;

  constructor(target: string) {
    this.#target = target;
  }

  add(files: readonly ReflectedFile[]): void {
    for (const { name, imports, services, bytes } of files) {
      if (this.#byName.has(name)) continue;
      this.#byName.set(name, bytes);
      this.#bytes += bytes.byteLength;
      for (const service of services) this.services.add(service);
      this.#imports.push(...imports);
      if (this.#byName.size > grpcFilesMax) {
        throw refused(this.#target, `it describes itself with more than ${grpcFilesMax} files`);
      }
      if (this.#bytes > grpcDescriptorBytesMax) {
        throw refused(this.#target, `it describes itself with more than ${grpcDescriptorBytesMax} bytes`);
      }
    }
  }

  /** An import that is neither there, nor ours, nor was asked for before. */
  nextMissing(): string | undefined {
    for (let name = this.#imports.pop(); name !== undefined; name = this.#imports.pop()) {
      if (this.#byName.has(name) || this.#asked.has(name) || wellKnownFile(name) !== undefined) continue;
      this.#asked.add(name);
      if (this.#asked.size > grpcFilesMax) {
        throw refused(this.#target, `it imports more than ${grpcFilesMax} files that it does not give`);
      }
      return name;
    }
    return undefined;
  }

  /** A FileDescriptorSet is its files one after the other, each as field 1. */
  toSet(): Uint8Array {
    const parts = [...this.#byName.values()].flatMap((bytes) => [Buffer.from([0x0a]), varint(bytes.byteLength), bytes]);
    return Buffer.concat(parts);
  }
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.from([...bytes, rest]);
}

export function refused(target: string, reason: string): Failure {
  return new Failure("upstream_failed", `Cannot read the services of "${target}": ${reason}`);
}
