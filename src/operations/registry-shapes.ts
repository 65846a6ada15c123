/** Shapes of registries and their auth: API document 2.1–2.3, 2.7 and 2.8. */
import { z } from "zod";
import type { RegistryState } from "../actors/registry.ts";
import { apiKeyBytesMax, credentialCharactersMax } from "../limits.ts";
import { instant, isoTime, slug, text } from "./shapes.ts";

const authType = z.enum(["apiKey", "oauth2"]);
const epochMs = z.int();

const tokenExpiresAt = epochMs.nullable().meta({
  description: "When the token at hand expires, epoch milliseconds; null without one",
  example: null,
});

export const registryShape = z
  .object({
    id: slug.min(1).describe("Slug; never changed by a refresh"),
    baseUrl: z.string().meta({ description: "Normalized absolute URL", example: "https://registry.example.com/" }),
    lastSyncedAt: instant.nullable().describe("Last successful refresh; null before the first"),
    createdAt: instant.describe("When it was registered"),
    updatedAt: instant.describe("Last change of the record"),
    authType: authType.nullable().meta({ description: "Configured auth method; null for none", example: "apiKey" }),
    tokenExpiresAt,
  })
  .meta({ id: "Registry", description: "A remote catalog" });

export type RegistryRecord = z.infer<typeof registryShape>;

export function toRegistryRecord(state: RegistryState): RegistryRecord {
  const { id, baseUrl, lastSyncedAt, createdAt, updatedAt, auth, token } = state;
  return {
    id,
    baseUrl,
    lastSyncedAt: lastSyncedAt === null ? null : isoTime(lastSyncedAt),
    createdAt: isoTime(createdAt),
    updatedAt: isoTime(updatedAt),
    authType: auth?.type ?? null,
    tokenExpiresAt: token?.expiresAt ?? null,
  };
}

export const outcomeShape = z
  .object({
    type: authType,
    status: z.enum(["configured", "error"]).describe("error: the token exchange failed"),
    headerName: z.string().optional().describe("Header the key is sent in (apiKey)"),
    tokenExpiresAt: epochMs.optional().describe("When the token expires, epoch milliseconds (oauth2)"),
    message: z.string().optional().describe("What failed (status error)"),
  })
  .meta({
    id: "RegistryAuthOutcome",
    description: "What became of credentials that were given",
    example: { type: "apiKey", status: "configured", headerName: "X-Api-Key" },
  });

export type AuthOutcome = z.infer<typeof outcomeShape>;

export const authStateShape = z
  .object({
    authType: authType.nullable().meta({ description: "Null when nothing is configured", example: "apiKey" }),
    tokenEndpoint: z.string().optional().describe("Pinned token endpoint (oauth2)"),
    headerName: z
      .string()
      .nullable()
      .meta({ description: "Pinned header name (apiKey); null for oauth2", example: "X-Api-Key" }),
    tokenExpiresAt,
    availableScopes: z
      .array(z.object({ id: z.string(), description: z.string() }))
      .meta({ description: "Scopes advertised now (oauth2)", example: [] }),
    configuredScopes: z.array(z.string()).meta({ description: "Scopes that tokens are asked for with", example: [] }),
  })
  .meta({ id: "RegistryAuth", description: "Configured auth of a registry, and what it advertises" });

export type AuthState = z.infer<typeof authStateShape>;

/** A key is sent as a header value: visible characters, no line breaks, not larger than servers take. */
const apiKey = z
  .string()
  .min(1, "must not be empty")
  .max(apiKeyBytesMax, `must have at most ${apiKeyBytesMax} characters`)
  .regex(/^[\x21-\x7e]+$/, "must be visible ASCII characters without blanks or line breaks")
  .meta({ description: "Sent in the header that the registry advertises", example: "k-1234" });
const credential = text()
  .min(1, "must not be empty")
  .max(credentialCharactersMax, `must have at most ${credentialCharactersMax} characters`)
  .meta({ example: "troupe" });

export const authSetupInput = z
  .discriminatedUnion("type", [
    z.object({ type: z.literal("apiKey"), apiKey }),
    z.object({
      type: z.literal("oauth2"),
      clientId: credential,
      clientSecret: credential,
      scopes: z.array(credential).max(256).optional().describe("Absent: all advertised ones"),
    }),
  ])
  .meta({
    id: "RegistryAuthSetup",
    description: "Credentials for the method that the registry advertises",
    example: { type: "apiKey", apiKey: "k-1234" },
  });

export type AuthSetup = z.infer<typeof authSetupInput>;

const entryShape = z
  .object({
    id: slug.min(1).meta({ description: "Slug of the entry", example: "petstore" }),
    source: z.string().meta({
      description: "Absolute URL of the descriptor, on the registry's origin",
      example: "https://registry.example.com/entries/petstore.json",
    }),
    name: z.string().optional().meta({ description: "Name to show", example: "Pet store" }),
    description: z.string().optional().meta({ description: "What it is", example: "Pets and their owners" }),
    kind: z.string().min(1).optional().describe("Kind of the definition, with version; definitions only"),
    type: z.enum(["adapter", "environment"]).optional().describe("Modules only"),
    icon: z.object({ url: z.string(), hash: z.string() }).optional().describe("Absolute URL, and hash for caching"),
  })
  .meta({ id: "RegistryEntry", description: "One item that a registry offers" });

const entriesCursor = z
  .string()
  .nullable()
  .meta({ description: "The registry's cursor for the next page; null on the last", example: null });

export const definitionsShape = z
  .object({ definitions: z.array(entryShape).describe("As the registry gives them"), nextCursor: entriesCursor })
  .meta({ id: "DefinitionsPage", description: "One page of service definitions" });
export const modulesShape = z
  .object({ modules: z.array(entryShape).describe("As the registry gives them"), nextCursor: entriesCursor })
  .meta({ id: "ModulesPage", description: "One page of modules" });
