/**
 * Icons of registry entries, fetched for callers that must not or cannot reach the registry themselves. Foreign bytes pass
 * only when they have the hash that the registry gives for them and are an image by their own first bytes.
 */
import { z } from "zod";
import { Failure } from "../errors/failure.ts";
import { iconBytesMax } from "../limits.ts";
import type { EntryKind, RegistryReader } from "../ports/registry-reader.ts";
import { type Icon, iconRoute, iconShape, toIcon } from "./icons.ts";
import type { CallContext, Operation } from "./operation.ts";
import type { Registries } from "./registry-access.ts";
import { findEntry } from "./registry-entries.ts";
import { slug } from "./shapes.ts";

export interface RegistryIconsOptions {
  readonly reader: RegistryReader;
  readonly access: Registries;
}

const iconInput = z.object({
  id: slug.describe("Slug of the registry"),
  entryId: slug.meta({ description: "Slug of the entry", example: "petstore" }),
});
type IconInput = z.infer<typeof iconInput>;

export function registryIconOperations(options: RegistryIconsOptions): readonly Operation[] {
  const row = (name: string, kind: EntryKind, summary: string): Operation<IconInput, Icon> => ({
    name,
    summary,
    rpcService: "RegistryService",
    route: iconRoute(`/registries/{id}/${kind}/{entryId}/icon`),
    role: "agent",
    input: iconInput,
    output: iconShape,
    failures: ["upstream_failed"],
    run: ({ id, entryId }, context) => readIcon(options, { registryId: id, kind, entryId }, context),
  });
  return [
    row("getRegistryDefinitionIcon", "definitions", "Read the icon of a service definition"),
    row("getRegistryModuleIcon", "modules", "Read the icon of a module"),
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
  const read = toIcon(content);
  if (read === undefined) {
    const message = `The icon of entry "${entry.id}" of registry "${lookup.registryId}" is not a PNG, WebP or SVG image`;
    throw new Failure("upstream_failed", message);
  }
  return read;
}
