/**
 * Icons of registry entries, fetched for callers that must not or cannot reach the registry themselves. Foreign bytes pass
 * only when they have the hash that the registry gives for them and are an image by their own first bytes.
 */
import { z } from "zod";
import { Failure } from "../errors/failure.ts";
import { iconBytesMax, iconFreshSeconds } from "../limits.ts";
import type { EntryKind, RegistryReader } from "../ports/registry-reader.ts";
import { iconMediaType, iconMediaTypes } from "./icon-type.ts";
import type { CallContext, Operation } from "./operation.ts";
import type { Registries } from "./registry-access.ts";
import { findEntry } from "./registry-entries.ts";
import { slug } from "./shapes.ts";

export interface RegistryIconsOptions {
  readonly reader: RegistryReader;
  readonly access: Registries;
}

const iconInput = z.object({ id: slug, entryId: slug });
const iconShape = z.object({
  content: z.custom<Uint8Array>((value) => value instanceof Uint8Array),
  mediaType: z.enum(iconMediaTypes),
  hash: z.string(),
});

type IconInput = z.infer<typeof iconInput>;
type Icon = z.infer<typeof iconShape>;

export function registryIconOperations(options: RegistryIconsOptions): readonly Operation[] {
  const row = (name: string, kind: EntryKind, summary: string): Operation<IconInput, Icon> => ({
    name,
    summary,
    rpcService: "RegistryService",
    route: {
      method: "GET",
      path: `/registries/{id}/${kind}/{entryId}/icon`,
      body: "none",
      status: 200,
      etag: "hash",
      bytes: { content: "content", mediaType: "mediaType", freshSeconds: iconFreshSeconds },
    },
    role: "agent",
    input: iconInput,
    output: iconShape,
    run: ({ id, entryId }, context) => readIcon(options, { registryId: id, kind, entryId }, context),
  });
  return [
    row("getDefinitionIcon", "definitions", "Read the icon of a service definition"),
    row("getModuleIcon", "modules", "Read the icon of a module"),
  ];
}

async function readIcon(
  options: RegistryIconsOptions,
  lookup: Parameters<typeof findEntry>[1],
  context: CallContext,
): Promise<Icon> {
  const { entry, reach } = await findEntry(options, lookup, context);
  const { icon } = entry;
  if (icon === undefined) {
    throw new Failure("not_found", `Entry "${entry.id}" of registry "${lookup.registryId}" has no icon`);
  }
  const content = await options.reader.artifact(reach, icon.url, iconBytesMax, icon.hash);
  const mediaType = iconMediaType(content);
  if (mediaType === undefined) {
    const message = `The icon of entry "${entry.id}" of registry "${lookup.registryId}" is not a PNG, WebP or SVG image`;
    throw new Failure("upstream_failed", message);
  }
  return { content, mediaType, hash: icon.hash.toLowerCase() };
}
