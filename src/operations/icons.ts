/** Icons as operations answer them: the same shape and the same care for registry entries, modules and services. */
import { createHash } from "node:crypto";
import { z } from "zod";
import { iconFreshSeconds } from "../limits.ts";
import { iconMediaType, iconMediaTypes } from "./icon-type.ts";
import type { Route } from "./operation.ts";

export const iconShape = z.object({
  content: z.custom<Uint8Array>((value) => value instanceof Uint8Array),
  mediaType: z.enum(iconMediaTypes),
  /** SHA-256 of the content, lower-case hex. */
  hash: z.string(),
});

export type Icon = z.infer<typeof iconShape>;

export function iconRoute(path: string): Route {
  return {
    method: "GET",
    path,
    body: "none",
    status: 200,
    etag: "hash",
    bytes: { content: "content", mediaType: "mediaType", freshSeconds: iconFreshSeconds },
  };
}

/** Foreign bytes pass only when they are an image by their own first bytes. */
export function toIcon(content: Uint8Array): Icon | undefined {
  const mediaType = iconMediaType(content);
  if (mediaType === undefined) return undefined;
  return { content, mediaType, hash: createHash("sha256").update(content).digest("hex") };
}
