/**
 * TypeScript by oxc. Native code: nested input can crash it or keep it busy for long, so it runs here in the child and only for code
 * that needs it. Loaded when first needed.
 */
import { createRequire } from "node:module";
import { originalPositionFor, TraceMap } from "@jridgewell/trace-mapping";
import type * as Oxc from "oxc-transform";
import type { Position } from "./compile.ts";

let oxc: typeof Oxc | undefined;

export function loadTranspiler(): typeof Oxc {
  oxc ??= createRequire(import.meta.url)("oxc-transform") as typeof Oxc;
  return oxc;
}

export type Transpiled =
  | {
      readonly ok: true;
      readonly code: string;
      /** From the code to the wrapped source. */
      locate(position: Position): Position | undefined;
    }
  | { readonly ok: false; readonly message: string; readonly position: Position | undefined };

export function transpile(wrapped: string): Transpiled {
  const result = loadTranspiler().transformSync("main.ts", wrapped, {
    lang: "ts",
    sourceType: "script",
    sourcemap: true,
  });
  const error = result.errors.find(({ severity }) => severity === "Error");
  if (error !== undefined || result.code === "") {
    const offset = error?.labels[0]?.start;
    return {
      ok: false,
      message: error?.message ?? "The code cannot be parsed",
      position: offset === undefined ? undefined : positionAt(wrapped, offset),
    };
  }
  return { ok: true, code: result.code, locate: locator(result.map) };
}

/** The map is decoded only when an error has to be located. */
function locator(map: Oxc.SourceMap | undefined): (position: Position) => Position | undefined {
  let trace: TraceMap | undefined;
  return ({ line, column }) => {
    if (map === undefined) return undefined;
    trace ??= new TraceMap(map as ConstructorParameters<typeof TraceMap>[0]);
    const found = originalPositionFor(trace, { line, column: column - 1 });
    return found.line === null ? undefined : { line: found.line, column: found.column + 1 };
  };
}

/** `offset` counts UTF-8 bytes. */
function positionAt(source: string, offset: number): Position {
  const before = Buffer.from(source).toString("utf8", 0, offset);
  const lineStart = before.lastIndexOf("\n") + 1;
  return { line: before.split("\n").length, column: [...before.slice(lineStart)].length + 1 };
}
