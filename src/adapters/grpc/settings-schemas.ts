/** What an operator may set: `configSchema` and `secretsSchema` of a service. Runs in the descriptor worker. */
import { grpcMessagesDefault, grpcMessagesMax } from "../../limits.ts";
import type { JsonSchema } from "../../ports/adapter.ts";

export const timeoutMsDefault = 30_000;

const dialect = "https://json-schema.org/draft/2020-12/schema";

/** `target`: what the document says, or null: then configuration has to. */
export function configSchema(target: string | null): JsonSchema {
  return {
    $schema: dialect,
    type: "object",
    properties: {
      target: {
        type: "string",
        pattern: "^([gG][rR][pP][cC]|[hH][tT][tT][pP])[sS]?://",
        description: "Where calls go: grpc://host:port, or grpcs://host:port over TLS",
        ...(target === null ? {} : { examples: [target] }),
      },
      timeoutMs: {
        type: "number",
        exclusiveMinimum: 0,
        default: timeoutMsDefault,
        description: "Time for one call, milliseconds; the target is told of it",
      },
      metadata: metadataSchema("Metadata sent with every call; what holds credentials belongs in the secrets"),
      maxMessages: {
        type: "integer",
        minimum: 1,
        maximum: grpcMessagesMax,
        default: grpcMessagesDefault,
        description: "Messages taken of an answer that is a stream; then it is cancelled",
      },
    },
    additionalProperties: false,
    ...(target === null ? { required: ["target"] } : {}),
  };
}

export const secretsSchema: JsonSchema = {
  $schema: dialect,
  type: "object",
  properties: {
    bearerToken: { type: "string", minLength: 1, description: 'Sent as metadata "authorization: Bearer …"' },
    metadata: metadataSchema("Metadata with credentials, such as x-api-key"),
    caCertificate: pemSchema("Certificates the target's own is checked against (PEM); absent: the usual public ones"),
    clientCertificate: pemSchema("Certificate shown to the target (PEM)"),
    clientKey: pemSchema("Private key of the client certificate (PEM)"),
  },
  additionalProperties: false,
};

function metadataSchema(description: string): JsonSchema {
  return {
    type: "object",
    description: `${description}. A name that ends in "-bin" has a base64 value`,
    additionalProperties: { type: "string" },
  };
}

function pemSchema(description: string): JsonSchema {
  return { type: "string", pattern: "^\\s*-----BEGIN ", description };
}
