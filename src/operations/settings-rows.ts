/** The rows on configuration and secrets, once for services and modules: the same rules, the same answers. */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import {
  type ConfigPatch,
  type Configured,
  configOf,
  configTag,
  type SecretsRequest,
  secretsOf,
} from "../actors/configured.ts";
import type { CallContext, Operation, Route } from "./operation.ts";
import { jsonObject, moduleIdField, schemaShape, serviceIdField } from "./shapes.ts";

export interface SettingsRowsOptions {
  readonly noun: "Service" | "Module";
  /** Input field with the id. */
  readonly idField: "serviceId" | "moduleId";
  /** `/services/{serviceId}` */
  readonly path: string;
  /** Rejects with Failure not_found. */
  find(id: string): Promise<Configured>;
  ask(
    id: string,
    message: ConfigPatch | ({ readonly type: "patchSecrets" } & SecretsRequest),
    context: CallContext,
  ): Promise<Configured>;
}

const outdated = z
  .array(z.string())
  .meta({ description: "Pointers to stored values that the schema no longer defines", example: [] });
const configShape = z
  .object({
    config: jsonObject.meta({ description: "The stored configuration", example: { timeoutMs: 5_000 } }),
    outdated,
  })
  .meta({ id: "Configuration" });
const secretsShape = z
  .object({
    present: z.array(z.string()).meta({ description: "Pointers to secrets that have a value", example: ["/apiKey"] }),
    outdated,
  })
  .meta({ id: "SecretsPresence", description: "Which secrets have a value; never the values" });
/** Checked where the patch is applied; here for the documents. */
const patchShape = z.array(
  z.unknown().meta({
    id: "JsonPatchOperation",
    description: "RFC 6902",
    type: "object",
    required: ["op", "path"],
    properties: {
      op: { type: "string", enum: ["add", "remove", "replace", "move", "copy", "test"] },
      path: { type: "string", description: "JSON Pointer (RFC 6901)" },
      from: { type: "string", description: "JSON Pointer (RFC 6901), for move and copy" },
      value: { description: "For add, replace and test" },
    },
    example: { op: "add", path: "/timeoutMs", value: 5_000 },
  }),
);
const patchBody = { field: "patch", mediaTypes: ["application/json", "application/json-patch+json"] } as const;

/** The id under `idField`; for patches also `patch` and `ifMatch`. */
type Input = Readonly<Record<string, unknown>>;

export function settingsOperations({ noun, idField, path, find, ask }: SettingsRowsOptions): readonly Operation[] {
  const rpcService = `${noun}Service`;
  const byId = z.object({ [idField]: noun === "Service" ? serviceIdField : moduleIdField });
  const patchInput = byId.extend({ patch: patchShape });
  const configPatchInput = patchInput.extend({ ifMatch: z.string().optional() });
  const idOf = (input: Input): string => String(input[idField]);
  const read = (below: string): Route => ({ method: "GET", path: `${path}${below}`, body: "none", status: 200 });

  const getConfig: Operation<Input, z.infer<typeof configShape> & { etag: string }> = {
    name: `get${noun}Config`,
    summary: "Read the stored configuration",
    rpcService,
    route: { ...read("/config"), etag: "etag" },
    role: "agent",
    input: byId,
    output: configShape.extend({ etag: z.string() }),
    run: async (input) => {
      const state = await find(idOf(input));
      return { ...configOf(state), etag: configTag(state) };
    },
  };

  const getConfigSchema: Operation<Input, { configSchema: z.infer<typeof schemaShape> }> = {
    name: `get${noun}ConfigSchema`,
    summary: "Read the JSON Schema of the configuration",
    rpcService,
    route: read("/config/schema"),
    role: "agent",
    input: byId,
    output: z.object({ configSchema: schemaShape }),
    run: async (input) => ({ configSchema: (await find(idOf(input))).configSchema }),
  };

  const patchConfig: Operation<Input, z.infer<typeof configShape>> = {
    name: `patch${noun}Config`,
    summary: "Change the stored configuration by JSON Patch",
    rpcService,
    route: { method: "PATCH", path: `${path}/config`, body: patchBody, status: 200, ifMatch: "ifMatch" },
    role: "operator",
    input: configPatchInput,
    output: configShape,
    failures: ["conflict", "upstream_failed"],
    run: async (input, context) => {
      const { patch, ifMatch } = input as { readonly patch: unknown[]; readonly ifMatch?: string };
      return configOf(await ask(idOf(input), { type: "patchConfig", patch, ifMatch }, context));
    },
  };

  const getSecrets: Operation<Input, z.infer<typeof secretsShape>> = {
    name: `get${noun}Secrets`,
    summary: "Tell which secrets have a value, never the values",
    rpcService,
    route: read("/secrets"),
    role: "agent",
    input: byId,
    output: secretsShape,
    run: async (input) => secretsOf(await find(idOf(input))),
  };

  const getSecretsSchema: Operation<Input, { secretsSchema: z.infer<typeof schemaShape> }> = {
    name: `get${noun}SecretsSchema`,
    summary: "Read the JSON Schema of the secrets",
    rpcService,
    route: read("/secrets/schema"),
    role: "agent",
    input: byId,
    output: z.object({ secretsSchema: schemaShape }),
    run: async (input) => ({ secretsSchema: (await find(idOf(input))).secretsSchema }),
  };

  const patchSecrets: Operation<Input, z.infer<typeof secretsShape>> = {
    name: `patch${noun}Secrets`,
    summary: "Set or remove secrets by JSON Patch (add, replace, remove); values are write-only",
    rpcService,
    route: { method: "PATCH", path: `${path}/secrets`, body: patchBody, status: 200 },
    role: "operator",
    input: patchInput,
    output: secretsShape,
    failures: ["conflict", "upstream_failed"],
    run: async (input, context) => {
      const { patch } = input as { readonly patch: unknown[] };
      return secretsOf(await ask(idOf(input), { type: "patchSecrets", patch, ticket: randomUUID() }, context));
    },
  };

  return [getConfig, getConfigSchema, patchConfig, getSecrets, getSecretsSchema, patchSecrets];
}
