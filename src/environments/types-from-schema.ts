/**
 * JSON Schema (2020-12, with what is left of draft-07 and OpenAPI 3.0) as TypeScript text an agent can read.
 *
 * The text is a description, not a validator: keywords TypeScript cannot say (pattern, minimum, …) become a doc comment,
 * `not`, `if` and unknown keywords are left out, and what cannot be resolved is `unknown`.
 *
 * 1. The text always parses as TypeScript, whatever the schema.
 * 2. It never exceeds its bound: it is written at the first level of detail that fits, and the last level always does.
 * 3. A definition is written once and referred to by name, so circles end.
 */
import { sameDefinitions } from "./schema-references.ts";
import { type Detail, TypeWriter } from "./type-writer.ts";

/** UTF-8 bytes of the types of one tool: about 4,000 tokens, what an agent can still read at once. */
export const typesBytesMax = 16 * 1024;

/** Deep parts go first, then long descriptions, then breadth: the top of a schema is what a caller writes. */
const detailLevels: readonly Detail[] = [
  { depthMax: 16, membersMax: 300, literalsMax: 300, descriptionCharactersMax: 300 },
  { depthMax: 8, membersMax: 100, literalsMax: 60, descriptionCharactersMax: 200 },
  { depthMax: 6, membersMax: 100, literalsMax: 40, descriptionCharactersMax: 120 },
  { depthMax: 5, membersMax: 100, literalsMax: 30, descriptionCharactersMax: 120 },
  { depthMax: 4, membersMax: 80, literalsMax: 30, descriptionCharactersMax: 100 },
  { depthMax: 3, membersMax: 80, literalsMax: 20, descriptionCharactersMax: 100 },
  { depthMax: 2, membersMax: 80, literalsMax: 20, descriptionCharactersMax: 80 },
  { depthMax: 2, membersMax: 40, literalsMax: 10, descriptionCharactersMax: 60 },
  { depthMax: 1, membersMax: 40, literalsMax: 10, descriptionCharactersMax: 40 },
  { depthMax: 1, membersMax: 10, literalsMax: 3, descriptionCharactersMax: 0 },
];

export interface NamedSchema {
  /** Name of the type: an identifier chosen by us, not by the document. */
  readonly name: string;
  readonly schema: unknown;
}

/**
 * `type` declarations: the named schemas in the given order, each followed by the definitions it uses. A definition that is
 * the same as in the schema before is written once.
 */
export function typesFromSchemas(schemas: readonly NamedSchema[], bytesMax: number = typesBytesMax): string {
  const names = new Set(schemas.map(({ name }) => name));
  const texts: string[] = [];
  let bytesLeft = bytesMax;
  let known: ReadonlyMap<string, string> = new Map();
  for (const [index, { name, schema }] of schemas.entries()) {
    const previous = schemas[index - 1]?.schema;
    const same = previous === undefined ? new Set<string>() : sameDefinitions(previous, schema);
    known = new Map([...known].filter(([pointer]) => same.has(pointer)));
    // An equal share for those still to come, so that a huge input does not leave the output without a word.
    const written = writeWithin(Math.floor(bytesLeft / (schemas.length - index)), { name, schema }, names, known);
    texts.push(written.text);
    bytesLeft -= Buffer.byteLength(written.text) + 1;
    known = written.known;
    for (const taken of known.values()) names.add(taken);
  }
  return texts.join("\n");
}

interface Written {
  readonly text: string;
  /** Pointer of each definition written so far → its type name. */
  readonly known: ReadonlyMap<string, string>;
}

function writeWithin(
  bytesMax: number,
  { name, schema }: NamedSchema,
  names: ReadonlySet<string>,
  known: ReadonlyMap<string, string>,
): Written {
  for (const detail of detailLevels) {
    const writer = new TypeWriter({ root: schema, name, names, known, detail, charactersMax: bytesMax });
    const text = writer.write();
    if (text !== undefined && Buffer.byteLength(text) <= bytesMax) return { text, known: writer.known };
  }
  return { text: `type ${name} = unknown; // Left out: too large\n`, known };
}
