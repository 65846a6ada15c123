/** One field of a request that is wrong, found after its shape was: the sentence for people, the name of the field for programs. */
import { Failure } from "./failure.ts";

export function fieldAtFault(field: string, sentence: string): Failure {
  return new Failure("invalid_request", sentence, { fields: [{ field, description: sentence }] });
}

/** `failure` with the fields it names moved inside `field`: whoever found them had only that one before them. */
export function withinField(field: string, failure: Failure): Failure {
  const { kind, message, details } = failure;
  if (details.fields === undefined) return failure;
  const fields = details.fields.map((fault) => ({
    ...fault,
    field: fault.field === "" ? field : `${field}.${fault.field}`,
  }));
  return new Failure(kind, message, { ...details, fields });
}
