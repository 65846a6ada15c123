/**
 * Which fields of a zod shape are nullable, seen from a message: protobuf has one word for "not there", the REST shapes have
 * two (null and absent), and the row's zod output says which of them a field means.
 */
import type { z } from "zod";

export interface Nullability {
  /** The field reads null, not absent, when it is unset. */
  isNullable(field: string): boolean;
  /** Of the object, or of the items of the array, held by the field. */
  inside(field: string): Nullability;
}

export const noNulls: Nullability = { isNullable: () => false, inside: () => noNulls };

export function nullabilityOf(schema: z.core.$ZodType): Nullability {
  const { core } = unwrap(schema);
  const def = defOf(core);
  if (def.type === "array") return nullabilityOf(def.element);
  if (def.type !== "object") return noNulls;
  const fields = new Map(
    Object.entries(def.shape).map(([name, field]) => [
      name,
      { nullable: unwrap(field).nullable, inner: nullabilityOf(field) },
    ]),
  );
  return {
    isNullable: (field) => fields.get(field)?.nullable ?? false,
    inside: (field) => fields.get(field)?.inner ?? noNulls,
  };
}

/** Takes off what says nothing about the shape underneath, noting whether null was allowed on the way. */
function unwrap(schema: z.core.$ZodType): { core: z.core.$ZodType; nullable: boolean } {
  let core = schema;
  let nullable = false;
  for (;;) {
    const def = defOf(core);
    if (def.type === "nullable") nullable = true;
    if ("innerType" in def) core = def.innerType;
    else if (def.type === "pipe") core = def.out;
    else return { core, nullable };
  }
}

function defOf(schema: z.core.$ZodType): z.core.$ZodTypes["_zod"]["def"] {
  return (schema as z.core.$ZodTypes)._zod.def;
}
