/**
 * QuickJS as WebAssembly. The binary is compiled once; an instance has its own memory and can be thrown away when a program
 * made it grow or broke it. Two things the package does not offer are added here:
 *
 * 1. A memory ceiling. `setMemoryLimit` does not count typed arrays (measured), so growth of the WebAssembly memory itself is
 *    refused above the ceiling; the engine then reports "out of memory" to the program.
 * 2. Unhandled rejections. The engine has a hook for them that the package does not expose: `watchRejections` below.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import variantModule from "@jitl/quickjs-wasmfile-release-sync";
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSRuntime,
  type QuickJSSyncVariant,
  type QuickJSWASMModule,
} from "quickjs-emscripten-core";
import { exportTable } from "./wasm-table.ts";

const pageBytes = 64 * 1024;
/** What the binary asks for at least. */
const initialPages = 256;
const tableName = "table";
/** The engine's own stack, inside its memory; the V8 stack (launch.ts) is sized so that this one always ends first. */
const stackBytesMax = 256 * 1024;

export interface Engine {
  newInstance(): Promise<Instance>;
}

export interface Instance {
  readonly module: QuickJSWASMModule;
  newRuntime(): QuickJSRuntime;
  /** `megabytes` for all that the engine holds. */
  limitMemory(runtime: QuickJSRuntime, megabytes: number): void;
  /** Since the last `limitMemory`: how often the program asked for more than it may have. */
  readonly refusals: number;
  /** Memory cannot shrink: an instance that grew is replaced. */
  readonly grew: boolean;
  /** Calls back with handles that the listener owns; false where the hook was not found. */
  watchRejections(context: QuickJSContext, listener: RejectionListener): boolean;
}

/** `promise` identifies; `handled` is true when a rejection reported before got its handler after all. */
export type RejectionListener = (promise: bigint, handled: boolean, reason: () => QuickJSHandle) => void;

export function loadEngine(): Engine {
  const require = createRequire(import.meta.url);
  const binary = readFileSync(require.resolve("@jitl/quickjs-wasmfile-release-sync/wasm"));
  const compiled = new WebAssembly.Module(exportTable(binary, tableName));
  // CommonJS and ESM builds of the variant differ in where the value sits.
  const variant = ((variantModule as unknown as { default?: QuickJSSyncVariant }).default ??
    variantModule) as QuickJSSyncVariant;
  return { newInstance: () => newInstance(compiled, variant) };
}

async function newInstance(compiled: WebAssembly.Module, variant: QuickJSSyncVariant): Promise<Instance> {
  const memory = new WebAssembly.Memory({ initial: initialPages, maximum: 32_768 });
  let pagesMax = initialPages;
  let refusals = 0;
  const grow = memory.grow.bind(memory);
  memory.grow = (pages) => {
    if (memory.buffer.byteLength / pageBytes + pages > pagesMax) {
      refusals += 1;
      throw new RangeError("The memory limit of the run is reached");
    }
    return grow(pages);
  };
  let table: WebAssembly.Table | undefined;
  const instantiateWasm = (imports: WebAssembly.Imports, done: (instance: WebAssembly.Instance) => void): object => {
    const instance = new WebAssembly.Instance(compiled, imports);
    table = instance.exports[tableName] as WebAssembly.Table;
    done(instance);
    return {};
  };
  const module = await newQuickJSWASMModuleFromVariant(
    newVariant(variant, { wasmMemory: memory, emscriptenModule: { instantiateWasm } as object }),
  );
  let hook: ((listener: NativeListener | undefined) => number) | undefined;

  return {
    module,
    newRuntime() {
      const runtime = module.newRuntime();
      runtime.setMaxStackSize(stackBytesMax);
      return runtime;
    },
    limitMemory(runtime, megabytes) {
      refusals = 0;
      runtime.setMemoryLimit(megabytes * 1024 * 1024);
      pagesMax = Math.max(initialPages, Math.ceil((megabytes * 1024 * 1024) / pageBytes));
    },
    get refusals() {
      return refusals;
    },
    get grew() {
      return memory.buffer.byteLength > initialPages * pageBytes;
    },
    watchRejections(context, listener) {
      hook ??= newHook(table as WebAssembly.Table);
      const { ctx, rt, ffi } = context as unknown as ContextInternals;
      const slot = findHookSlot(context.runtime, memory, rt.value);
      if (slot === undefined) return false;
      const keep = (value: bigint): QuickJSHandle => {
        const pointer = (module as unknown as ModuleInternals).module._malloc(8);
        new DataView(memory.buffer).setBigUint64(pointer, BigInt.asUintN(64, value), true);
        const copy = ffi.QTS_DupValuePointer(ctx.value, pointer);
        (module as unknown as ModuleInternals).module._free(pointer);
        return (context as unknown as ContextInternals).memory.heapValueHandle(copy);
      };
      const index = hook((_context, promise, reason, handled) => listener(promise, handled !== 0, () => keep(reason)));
      new DataView(memory.buffer).setUint32(slot, index, true);
      return true;
    },
  };
}

type NativeListener = (context: number, promise: bigint, reason: bigint, handled: number, opaque: number) => void;

/** Of the package's private parts, what the hook needs. The version is pinned; `loadEngine`'s callers test the hook. */
interface ContextInternals {
  readonly ctx: { readonly value: number };
  readonly rt: { readonly value: number };
  readonly ffi: { QTS_DupValuePointer(context: number, pointer: number): number };
  readonly memory: { heapValueHandle(pointer: number): QuickJSHandle };
}
interface ModuleInternals {
  readonly module: { _malloc(bytes: number): number; _free(pointer: number): void };
}

/**
 * The hook's C signature is (context, promise, reason, isHandled, opaque). A JavaScript function gets a WebAssembly type by
 * passing through a module that imports it and exports it again: that is all these bytes say.
 */
const trampoline = new Uint8Array([
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 9, 1, 0x60, 5, 0x7f, 0x7e, 0x7e, 0x7f, 0x7f, 0, 2, 7, 1, 1, 0x68, 1, 0x66, 0, 0,
  7, 5, 1, 1, 0x66, 0, 0,
]);

/** One table entry for the life of an instance; the listener behind it changes with the run. */
function newHook(table: WebAssembly.Table): (listener: NativeListener | undefined) => number {
  let current: NativeListener | undefined;
  const entry: NativeListener = (...values) => current?.(...values);
  const { f } = new WebAssembly.Instance(new WebAssembly.Module(trampoline), { h: { f: entry } }).exports;
  const index = table.grow(1);
  table.set(index, f);
  return (listener) => {
    current = listener;
    return index;
  };
}

/**
 * In the engine's runtime structure the rejection hook stands right behind the interrupt handler and its argument, all
 * of them zero at first. Setting the interrupt handler shows where that is.
 */
function findHookSlot(runtime: QuickJSRuntime, memory: WebAssembly.Memory, pointer: number): number | undefined {
  const words = 256;
  const before = new Uint32Array(memory.buffer, pointer, words).slice();
  runtime.setInterruptHandler(() => false);
  const after = new Uint32Array(memory.buffer, pointer, words);
  const at = before.findIndex((word, index) => word === 0 && after[index] !== 0);
  if (at < 0 || after[at + 2] !== 0 || after[at + 3] !== 0) return undefined;
  return pointer + (at + 2) * 4;
}
