import { describe, expect, it } from "vitest";
import { encodeGrpcMessage, plainGrpcMessage } from "../../src/control-plane/grpc-message.ts";

describe("a grpc-message", () => {
  it.each([
    ['Field "id" is not valid: a letter, _ or $', 'Field "id" is not valid: a letter, _ or $'],
    ["100 % of /a/b?c=d&e#f", "100 %25 of /a/b?c=d&e#f"],
    ["Grüße 𝒳\n", "Gr%C3%BC%C3%9Fe %F0%9D%92%B3%0A"],
    ["\ud800", "%EF%BF%BD"],
    ["", ""],
  ])("says %j", (message, encoded) => {
    expect(encodeGrpcMessage(message)).toBe(encoded);
    expect(decodeURIComponent(encoded)).toBe(message.toWellFormed());
    const headers = new Headers({ "grpc-message": encodeURIComponent(message.toWellFormed()) });
    plainGrpcMessage(headers);
    expect(headers.get("grpc-message")).toBe(encoded);
  });
});
