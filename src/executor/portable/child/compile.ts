/**
 * From the submitter's text to a function of the engine. The text is the body of an async function and must be nothing more: a
 * text that closes the function and goes on (`}) ; … (async () => {`) is a syntax error.
 *
 * One wrapper cannot tell, two can. After a closing brace too many, an arrow function in parentheses continues with `,` or `)`
 * only, a function declaration with a statement, and no statement begins with these. So both must parse.
 *
 * JavaScript is compiled as it is. What is no JavaScript, and what looks like a call with type arguments (`f<string>(x)` is
 * also two comparisons), goes through the TypeScript transformer.
 */
import type { QuickJSContext, QuickJSHandle } from "quickjs-emscripten-core";
import { transpile } from "./transpile.ts";

/** Both from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** File name of the submitter's code in stack traces. */
export const programFile = "main.js";

export type Compiled =
  | {
      readonly ok: true;
      readonly program: QuickJSHandle;
      /** From a position in a stack trace to the submitter's. */
      readonly locate: Locate;
    }
  | { readonly ok: false; readonly error: string };

export type Locate = (position: Position) => Position | undefined;

interface Problem {
  readonly message: string;
  readonly position: Position | undefined;
}

/** `transpiling` is called before and after the native parser has the code. */
export function compile(context: QuickJSContext, code: string, transpiling: (done: boolean) => void): Compiled {
  const source = code.toWellFormed();
  const typed = looksTyped(source);
  const plain = typed ? undefined : compilePlain(context, source);
  if (plain?.ok) return plain;
  transpiling(false);
  const stripped = compileTyped(context, source);
  transpiling(true);
  if (stripped.ok) return stripped;
  const fallback = typed ? compilePlain(context, source) : undefined;
  if (fallback?.ok) return fallback;
  return { ok: false, error: describe(source, stripped.problem) };
}

type Attempt = Extract<Compiled, { ok: true }> | { readonly ok: false; readonly problem: Problem };

function compilePlain(context: QuickJSContext, source: string): Attempt {
  const check = evaluate(context, `async function main() {\n${source}\n}`, true);
  if (!("alive" in check)) return { ok: false, problem: check };
  check.dispose();
  const program = evaluate(context, `(async () => {\n${source}\n})`, false);
  if (!("alive" in program)) return { ok: false, problem: program };
  return { ok: true, program, locate: inside(source) };
}

function compileTyped(context: QuickJSContext, source: string): Attempt {
  const stripped = transpile(`async function main() {\n${source}\n}`);
  const locate = inside(source);
  if (!stripped.ok)
    return {
      ok: false,
      problem: { message: stripped.message, position: stripped.position && locate(stripped.position) },
    };
  const locateBoth: Locate = (position) => {
    const original = stripped.locate(position);
    return original && locate(original);
  };
  // In parentheses: a text that left the function is several statements now, and those are no expression.
  const program = evaluate(context, `(${stripped.code}\n)`, false);
  if ("alive" in program) return { ok: true, program, locate: locateBoth };
  // The opening parenthesis shifts the first line, which is the wrapper's own.
  return {
    ok: false,
    problem: { message: program.message, position: program.position && locateBoth(program.position) },
  };
}

/** A wrapper stands on the line before; its own lines are not the submitter's, and what is wrong behind the end is at the end. */
function inside(source: string): Locate {
  const lines = source.split("\n");
  return ({ line, column }) => {
    if (line < 2) return undefined;
    if (line - 1 <= lines.length) return { line: line - 1, column };
    return { line: lines.length, column: (lines.at(-1) ?? "").length + 1 };
  };
}

function evaluate(context: QuickJSContext, text: string, compileOnly: boolean): QuickJSHandle | Problem {
  const result = context.evalCode(text, programFile, { compileOnly });
  if (result.error === undefined) return result.value;
  const error: unknown = context.dump(result.error);
  result.error.dispose();
  if (typeof error !== "object" || error === null)
    return { message: "The code cannot be compiled", position: undefined };
  const { message, stack } = error as { message?: unknown; stack?: unknown };
  const found = /main\.js:(\d+):(\d+)/.exec(String(stack));
  return {
    message: String(message),
    position: found === null ? undefined : { line: Number(found[1]), column: Number(found[2]) },
  };
}

function describe(source: string, { message, position }: Problem): string {
  if (position === undefined) return `Syntax error: ${message}`;
  const line = source.split("\n")[position.line - 1] ?? "";
  const what = /^\s*(import|export)\b(?!\s*\()/.test(line)
    ? "import and export are not available, the code is the body of a function"
    : message;
  return `Syntax error at line ${position.line}, column ${position.column}: ${what}`;
}

/** `name<Type>(`: bounded pieces, so that the search is linear. */
function looksTyped(source: string): boolean {
  return /[\w$]<[\w$[\]{}|&,.:;'" <]{1,200}>{1,8}\(/.test(source);
}
