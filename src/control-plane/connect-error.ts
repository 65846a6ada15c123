/** Failures as Connect errors: the code of the catalogue, and the details that gRPC clients know how to read. */
import { type Code, ConnectError } from "@connectrpc/connect";
import { catalogue } from "../errors/catalogue.ts";
import type { Failure } from "../errors/failure.ts";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../gen/google/rpc/error_details_pb.ts";

type OutgoingDetail = Extract<ConnectError["details"][number], { desc: unknown }>;

/** `google.rpc.ErrorInfo` always; BadRequest when fields are at fault; RetryInfo when waiting helps. */
export function toConnectError(failure: Failure): ConnectError {
  const { exhaustion, fields, retryAfterSeconds } = failure.details;
  const details: OutgoingDetail[] = [{ desc: ErrorInfoSchema, value: { reason: failure.kind, domain: "troupe" } }];
  if (fields !== undefined && fields.length > 0) {
    details.push({ desc: BadRequestSchema, value: { fieldViolations: fields.map((field) => ({ ...field })) } });
  }
  const { rest, grpc } = catalogue[failure.kind];
  const waitSeconds = exhaustion?.retryAfterSeconds ?? retryAfterSeconds ?? (rest === 429 ? 1 : undefined);
  if (waitSeconds !== undefined) {
    details.push({
      desc: RetryInfoSchema,
      value: { retryDelay: { seconds: BigInt(Math.max(1, Math.ceil(waitSeconds))) } },
    });
  }
  // Words of others may be cut within a character, and Connect cannot encode such a text: it throws where the answer is written.
  // Connect's codes are those of google.rpc.Code, number for number.
  return new ConnectError(failure.message.toWellFormed(), grpc as Code, undefined, details);
}
