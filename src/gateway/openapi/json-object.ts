/** Parts of a JSON document under construction. */
export type JsonObject = { readonly [name: string]: unknown };
