/** Failures whose words came from elsewhere: whatever they are, they can be written down in every protocol. */
import { errorToJson } from "@connectrpc/connect/protocol-connect";
import { expect, it } from "vitest";
import { toConnectError } from "../../src/control-plane/connect-error.ts";
import { grpcTrailer } from "../../src/control-plane/grpc-trailer.ts";
import { Failure } from "../../src/errors/failure.ts";

it.each([
  ["half a surrogate pair", "Cut \ud83d", "Cut %EF%BF%BD"],
  ["the other half", "\ude00 cut", "%EF%BF%BD cut"],
  ["halves in the wrong order", "\ude00\ud83d", "%EF%BF%BD%EF%BF%BD"],
  ["a whole pair", "\ud83d\ude00", "%F0%9F%98%80"],
  ["line breaks, NUL and DEL", "a\r\nb\u0000\u007f", "a%0D%0Ab%00%7F"],
  ["per cent signs", "100% %41", "100%25 %2541"],
  ["nothing", "", ""],
])("words with %s", (_title, words, encoded) => {
  const fields = [{ field: words, description: words }];
  const error = toConnectError(new Failure("upstream_failed", words, { fields }));
  expect(grpcTrailer(error).get("grpc-message")).toBe(encoded);
  expect(JSON.stringify(errorToJson(error, undefined)).isWellFormed()).toBe(true);
  expect((errorToJson(error, undefined) as { message?: string }).message ?? "").toBe(words.toWellFormed());
});
