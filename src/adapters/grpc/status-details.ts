/** The fields a target complains about, from the rich error model (google.rpc.Status in a trailer). Runs in the descriptor worker. */
import { fromBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { BadRequestSchema } from "../../gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../gen/google/rpc/status_pb.ts";
import { parameterProblemsMax } from "../../limits.ts";
import { shortened } from "./unusable.ts";

export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

const fieldCharactersMax = 200;

/** Empty when the bytes say nothing of fields, or are no status at all: the status itself has been understood already. */
export function readFieldViolations(bytes: Uint8Array): readonly FieldViolation[] {
  try {
    const violations = fromBinary(StatusSchema, bytes).details.flatMap(
      (detail) => anyUnpack(detail, BadRequestSchema)?.fieldViolations ?? [],
    );
    return violations.slice(0, parameterProblemsMax).map(({ field, description }) => ({
      field: shortened(field, fieldCharactersMax),
      description: shortened(description),
    }));
  } catch {
    return [];
  }
}
