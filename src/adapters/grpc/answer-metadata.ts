/** Metadata of an answer as plain JSON: text by name, a repeated name joined with ", ", binary values in base64. */
import type grpc from "@grpc/grpc-js";
import { withoutCredentials } from "../masking.ts";
import { type Settings, sentSecrets } from "./settings.ts";

/** What the protocol needs for itself and says nothing of the answer. */
const ofProtocol = /^(grpc-|content-type$|trailer$)/;

/** A target may repeat what it was sent: whoever may call a tool need not know the operator's secrets. */
export function plainMetadata(metadata: grpc.Metadata, secrets: Settings): Record<string, string> {
  const named = Object.entries(metadata.toJSON()).filter(([name]) => !ofProtocol.test(name));
  const plain = Object.fromEntries(
    named.map(([name, values]) => [
      name,
      values.map((value) => (typeof value === "string" ? value : value.toString("base64"))).join(", "),
    ]),
  );
  return withoutCredentials(plain, sentSecrets(secrets));
}

export function maskedText(text: string, secrets: Settings): string {
  return withoutCredentials({ text }, sentSecrets(secrets)).text ?? "";
}
