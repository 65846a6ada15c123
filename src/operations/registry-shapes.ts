/** Shapes of registries and their auth: API document 2.1–2.3, 2.7 and 2.8. */
import { z } from "zod";
import type { RegistryState } from "../actors/registry.ts";
import { apiKeyBytesMax, credentialCharactersMax } from "../limits.ts";
import { instant, isoTime, slug, text } from "./shapes.ts";

const authType = z.enum(["apiKey", "oauth2"]);
const epochMs = z.int();

export const registryShape = z.object({
  id: slug,
  baseUrl: z.string(),
  lastSyncedAt: instant.nullable(),
  createdAt: instant,
  updatedAt: instant,
  authType: authType.nullable(),
  tokenExpiresAt: epochMs.nullable(),
});

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

export const outcomeShape = z.object({
  type: authType,
  status: z.enum(["configured", "error"]),
  headerName: z.string().optional(),
  tokenExpiresAt: epochMs.optional(),
  message: z.string().optional(),
});

export type AuthOutcome = z.infer<typeof outcomeShape>;

export const authStateShape = z.object({
  authType: authType.nullable(),
  tokenEndpoint: z.string().optional(),
  headerName: z.string().nullable(),
  tokenExpiresAt: epochMs.nullable(),
  availableScopes: z.array(z.object({ id: z.string(), description: z.string() })),
  configuredScopes: z.array(z.string()),
});

export type AuthState = z.infer<typeof authStateShape>;

/** A key is sent as a header value: visible characters, no line breaks, not larger than servers take. */
const apiKey = z
  .string()
  .min(1, "must not be empty")
  .max(apiKeyBytesMax, `must have at most ${apiKeyBytesMax} characters`)
  .regex(/^[\x21-\x7e]+$/, "must be visible ASCII characters without blanks or line breaks");
const credential = text()
  .min(1, "must not be empty")
  .max(credentialCharactersMax, `must have at most ${credentialCharactersMax} characters`);

export const authSetupInput = z.discriminatedUnion("type", [
  z.object({ type: z.literal("apiKey"), apiKey }),
  z.object({
    type: z.literal("oauth2"),
    clientId: credential,
    clientSecret: credential,
    scopes: z.array(credential).max(256).optional(),
  }),
]);

export type AuthSetup = z.infer<typeof authSetupInput>;

const entryShape = z.object({
  id: slug,
  source: z.string(),
  name: z.string().optional(),
  description: z.string().optional(),
  kind: z.string().optional(),
  type: z.enum(["adapter", "environment"]).optional(),
  icon: z.object({ url: z.string(), hash: z.string() }).optional(),
});

export const definitionsShape = z.object({ definitions: z.array(entryShape), nextCursor: z.string().nullable() });
export const modulesShape = z.object({ modules: z.array(entryShape), nextCursor: z.string().nullable() });
