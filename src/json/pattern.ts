/**
 * Regular expressions of foreign schemas, on RE2: time linear in the text, so that no pattern can hold the event loop. What
 * RE2 has no notion of (look-around, back-references) makes the schema unusable instead of dangerous.
 */
import { RE2JS } from "re2js";

/** Patterns this long are generated text, and their automata grow with them. */
const patternCharactersMax = 4_096;

/** Signs of a pattern, and of all patterns of a schema, once `{n,m}` is written out: the automaton grows with that, some 3 us for each. */
const patternUnfoldedMax = 20_000;
const patternsUnfoldedMax = 100_000;

export interface LinearPattern {
  test(text: string): boolean;
  toString(): string;
}

/** In the form Ajv takes as `code.regExp`, for one schema. Throws when a pattern is not supported, or all are too much together. */
export function linearPatterns(): ((pattern: string, flags: string) => LinearPattern) & { readonly code: string } {
  const known = new Map<string, LinearPattern>();
  let unfolded = 0;
  const compileOnce = (pattern: string): LinearPattern => {
    const before = known.get(pattern);
    if (before !== undefined) return before;
    unfolded += unfoldedLength(pattern);
    if (unfolded > patternsUnfoldedMax)
      throw new Error("the patterns are too large once their repetitions are unfolded");
    const compiled = compilePattern(pattern);
    known.set(pattern, compiled);
    return compiled;
  };
  return Object.assign(compileOnce, { code: "linearPattern" });
}

export function compilePattern(pattern: string): LinearPattern {
  if (pattern.length > patternCharactersMax)
    throw new Error(`pattern is longer than ${patternCharactersMax} characters`);
  if (unfoldedLength(pattern) > patternUnfoldedMax) throw new Error("pattern repeats too much");
  const compiled = compile(pattern);
  return {
    test: (text) => compiled.test(text),
    // Ajv shares compiled patterns by this text.
    toString: () => pattern,
  };
}

function compile(pattern: string): RE2JS {
  try {
    return RE2JS.compile(RE2JS.translateRegExp(pattern));
  } catch {
    throw new Error(`pattern "${pattern.slice(0, 100)}" is not supported (look-around and back-references are not)`);
  }
}

const sign = /\\[pPu]\{[^}]*\}|\\.|\[(?:\\.|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|./gsy;

/** How many signs and classes the pattern is when each `{n,m}` is replaced by as many copies. Malformed ones are for the compiler to find. */
function unfoldedLength(pattern: string): number {
  const outer: number[] = [];
  let length = 0;
  let last = 0;
  for (const [text, least, most] of pattern.matchAll(sign)) {
    if (text === "(") {
      outer.push(length);
      length = 0;
      last = 0;
    } else if (text === ")") {
      last = length;
      length += outer.pop() ?? 0;
    } else if (least !== undefined) {
      const copies = Number(most || least);
      length += last * Math.max(0, copies - 1);
      last *= copies;
    } else if (!"*+?|".includes(text)) {
      last = 1;
      length += 1;
    }
  }
  return length;
}
