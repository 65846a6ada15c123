/** What an endpoint answered to the introspection query, judged in the worker: an answer may be as large as a document. */
import { isTree } from "./introspection.ts";
import { shortened } from "./unusable.ts";

export type IntrospectionAnswer =
  | { readonly outcome: "document"; readonly document: string }
  /** GraphQL, and a no: what it says. */
  | { readonly outcome: "refused"; readonly message: string }
  | { readonly outcome: "foreign" };

export function readIntrospectionAnswer(body: Uint8Array, endpoint: string): IntrospectionAnswer {
  const answer = readJson(body);
  if (!isTree(answer)) return { outcome: "foreign" };
  const { data, errors } = answer;
  if (isTree(data) && isTree(data.__schema)) {
    return { outcome: "document", document: JSON.stringify({ endpoint, introspection: { __schema: data.__schema } }) };
  }
  if (Array.isArray(errors) && errors.length > 0) {
    const messages = errors.slice(0, 3).map((error: unknown) => (isTree(error) ? String(error.message ?? "") : ""));
    return { outcome: "refused", message: shortened(messages.join(" ")) };
  }
  return isTree(data) || data === null ? { outcome: "refused", message: "" } : { outcome: "foreign" };
}

function readJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
}
