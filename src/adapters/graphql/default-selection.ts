/**
 * What a tool selects when the caller does not say. Level by level: all leaf fields, and below them those of related objects, down to the
 * configured depth and up to a number of fields, so that a wide object never crowds out the top. Left out are
 * 1. fields that need arguments, and deprecated ones;
 * 2. types that are on the way already (author → posts → author);
 * 3. Relay connections below the top: servers want a page size for each, and every one would be a list of its own;
 * 4. in fragments, a field whose type differs from that of the same name in another: GraphQL cannot merge them.
 * Runs in the schema worker.
 */
import {
  type GraphQLCompositeType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isCompositeType,
  isRequiredArgument,
  isUnionType,
} from "graphql";
import { graphqlDefaultFieldsMax, graphqlDefaultFragmentsMax } from "../../limits.ts";
import { type Field, fieldsOf } from "./tools.ts";

export interface Selection {
  /** `__typename` tells what a union or interface turned out to be. */
  readonly typename: boolean;
  readonly fields: SelectedField[];
  readonly fragments: { readonly on: string; readonly fields: SelectedField[] }[];
}

export interface SelectedField {
  readonly name: string;
  readonly type: GraphQLOutputType;
  readonly description: string;
  readonly selection: Selection | null;
}

interface Pending {
  readonly type: GraphQLCompositeType;
  readonly selection: Selection;
  /** Composite types above this one, itself included. */
  readonly path: readonly string[];
}

/** Null for a leaf. `depth` 1 selects leaf fields only. */
export function defaultSelection(schema: GraphQLSchema, type: GraphQLOutputType, depth: number): Selection | null {
  const top = getNamedType(type);
  if (!isCompositeType(top)) return null;
  const selection = emptySelection(top);
  let level: Pending[] = [{ type: top, selection, path: [top.name] }];
  const budget = { fields: graphqlDefaultFieldsMax };
  for (let remaining = depth; remaining > 0 && level.length > 0; remaining -= 1) {
    level = level.flatMap((pending) => fill(schema, pending, remaining > 1, budget));
  }
  return withoutEmpty(selection) ?? { ...selection, typename: true };
}

/** Fills one selection and answers with those below it that are still empty. */
function fill(schema: GraphQLSchema, pending: Pending, descends: boolean, budget: { fields: number }): Pending[] {
  const { type, selection, path } = pending;
  const below: Pending[] = [];
  const add = (from: readonly Field[], into: SelectedField[], typeName: string) => {
    for (const field of from) {
      if (budget.fields <= 0) return;
      const named = getNamedType(field.type);
      const composite = isCompositeType(named) ? named : null;
      if (composite && (!descends || path.includes(composite.name) || composite.name === typeName)) continue;
      if (composite?.name.endsWith("Connection")) continue;
      budget.fields -= 1;
      const inner = composite && emptySelection(composite);
      into.push({ name: field.name, type: field.type, description: field.description ?? "", selection: inner });
      if (composite && inner)
        below.push({ type: composite, selection: inner, path: [...path, typeName, composite.name] });
    }
  };
  const common = isUnionType(type) ? [] : Object.values(type.getFields());
  add(common.filter(isFree), selection.fields, type.name);
  if (!isAbstractType(type)) return below;
  for (const { on, fields } of fragments(schema.getPossibleTypes(type), common)) {
    const fragment = { on: on.name, fields: [] as SelectedField[] };
    selection.fragments.push(fragment);
    add(fields, fragment.fields, on.name);
  }
  return below;
}

/** The same for a type wherever it occurs, so that two places that select it can be merged. */
function fragments(possible: readonly GraphQLObjectType[], common: readonly Field[]) {
  if (possible.length > graphqlDefaultFragmentsMax) return [];
  const types = new Map<string, string | null>(common.map((field) => [field.name, null]));
  return possible.map((on) => ({
    on,
    fields: fieldsOf(on).filter((field) => {
      if (!isFree(field)) return false;
      const taken = types.get(field.name);
      if (taken === undefined) types.set(field.name, String(field.type));
      return taken === undefined || taken === String(field.type);
    }),
  }));
}

function isFree(field: Field): boolean {
  return !field.args.some(isRequiredArgument) && (field.deprecationReason ?? null) === null;
}

function emptySelection(type: GraphQLCompositeType): Selection {
  return { typename: isAbstractType(type), fields: [], fragments: [] };
}

/** Fields whose own selection stayed empty cannot be asked for. */
function withoutEmpty(selection: Selection): Selection | null {
  const kept = (fields: readonly SelectedField[]) =>
    fields.flatMap((field) => {
      if (field.selection === null) return [field];
      const inner = withoutEmpty(field.selection);
      return inner === null ? [] : [{ ...field, selection: inner }];
    });
  const fields = kept(selection.fields);
  const fragments = selection.fragments
    .map(({ on, fields }) => ({ on, fields: kept(fields) }))
    .filter((fragment) => fragment.fields.length > 0);
  if (fields.length === 0 && fragments.length === 0 && !selection.typename) return null;
  return { typename: selection.typename, fields, fragments };
}

/** GraphQL text: `{ id name owner { login } }`. */
export function printSelection({ typename, fields, fragments }: Selection): string {
  const parts = [
    ...(typename ? ["__typename"] : []),
    ...fields.map(printField),
    ...fragments.map(({ on, fields }) => `... on ${on} { ${fields.map(printField).join(" ")} }`),
  ];
  return `{ ${parts.join(" ")} }`;
}

function printField({ name, selection }: SelectedField): string {
  return selection === null ? name : `${name} ${printSelection(selection)}`;
}
