/**
 * Where a protobuf request has words of its own for what REST says otherwise: it cannot tell null from absent, nor an empty list from an
 * absent one, so a marker says it; and it resumes by `from_sequence` where REST has Last-Event-ID.
 */
import { Failure } from "../errors/failure.ts";

type Request = Readonly<Record<string, unknown>>;

/** `marker` set: `field` reads `value`. Throws Failure when the request sets both. */
export function withMarker(request: Request, marker: string, field: string, value: unknown): Record<string, unknown> {
  const { [marker]: isMarked, ...rest } = request;
  if (isMarked !== true) return rest;
  if (isSaid(rest[field])) {
    throw new Failure("invalid_request", `Fields "${marker}" and "${field}" exclude each other`, {
      fields: [{ field: marker, description: `excludes ${field}` }],
    });
  }
  return { ...rest, [field]: value };
}

/** A repeated field is always there; with nothing in it, nothing was said. */
function isSaid(value: unknown): boolean {
  return value !== undefined && !(Array.isArray(value) && value.length === 0);
}

/** A header that is no number is as good as none; a sequence below 0 can only be a mistake of its caller. */
export function withLastEventId({ fromSequence, ...request }: Request): Record<string, unknown> {
  if (typeof fromSequence === "number" && fromSequence < 0) {
    throw new Failure("invalid_request", 'Field "fromSequence" is not valid: must not be negative', {
      fields: [{ field: "fromSequence", description: "must not be negative" }],
    });
  }
  return { ...request, lastEventId: fromSequence };
}
