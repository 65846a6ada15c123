/**
 * Regular expressions of foreign schemas, on RE2: time linear in the text, so that no pattern can hold the event loop. What
 * RE2 has no notion of (look-around, back-references) makes the schema unusable instead of dangerous.
 */
import { RE2JS } from "re2js";

/** Patterns this long are generated text, and their automata grow with them. */
const patternCharactersMax = 4_096;

export interface LinearPattern {
  test(text: string): boolean;
  toString(): string;
}

/** In the form Ajv takes as `code.regExp`. Throws when the pattern is not supported. */
export const linearPattern = Object.assign(compilePattern, { code: "linearPattern" });

export function compilePattern(pattern: string, _flags?: string): LinearPattern {
  if (pattern.length > patternCharactersMax)
    throw new Error(`pattern is longer than ${patternCharactersMax} characters`);
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
