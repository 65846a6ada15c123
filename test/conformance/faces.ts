/** Registry operations through either face, told in one form: what REST says, without nulls. */
import type { JsonValue } from "@bufbuild/protobuf";
import type grpc from "@grpc/grpc-js";
import { expect } from "vitest";
import { catalogue } from "../../src/errors/catalogue.ts";
import type { FailureKind } from "../../src/errors/failure.ts";
import type { ForeignClient } from "../e2e/foreign-client.ts";
import type { Answer, Server } from "../e2e/server.ts";

export interface Told {
  /** REST status; over gRPC the one its reason stands for, and 200 for every success. */
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes
  readonly body: any;
}

export interface Setup {
  readonly type: string;
  readonly apiKey?: string;
  readonly clientId?: string;
  readonly clientSecret?: string;
  readonly scopes?: readonly string[];
}

export interface Face {
  readonly name: "REST" | "gRPC";
  add(baseUrl: string, auth?: Setup): Promise<Told>;
  get(id: string): Promise<Told>;
  refresh(id: string): Promise<Told>;
  setAuth(id: string, setup: Setup): Promise<Told>;
  getAuth(id: string): Promise<Told>;
  deleteAuth(id: string): Promise<Told>;
  browse(id: string): Promise<Told>;
}

export function restFace(server: () => Server): Face {
  const ask = async (method: string, path: string, body?: unknown): Promise<Told> => {
    const { status, body: answered }: Answer = await server().call(method, path, body);
    return { status: status < 300 ? 200 : status, body: withoutNulls(answered ?? {}) };
  };
  return {
    name: "REST",
    add: (baseUrl, auth) => ask("POST", "/registries", { baseUrl, auth }),
    get: (id) => ask("GET", `/registries/${id}`),
    refresh: (id) => ask("POST", `/registries/${id}/refresh`, {}),
    setAuth: (id, setup) => ask("POST", `/registries/${id}/auth`, setup),
    getAuth: (id) => ask("GET", `/registries/${id}/auth`),
    deleteAuth: (id) => ask("DELETE", `/registries/${id}/auth`),
    browse: (id) => ask("GET", `/registries/${id}/definitions`),
  };
}

export function grpcFace(client: () => ForeignClient): Face {
  const ask = async (method: string, request: JsonValue, field?: string): Promise<Told> => {
    try {
      const answer = (await client().call("RegistryService", method, request)) as Record<string, unknown>;
      return { status: 200, body: withNumbers(withoutNulls(field === undefined ? answer : answer[field])) };
    } catch (error) {
      const { code, details, metadata } = error as grpc.ServiceError;
      const info = String(metadata?.get("grpc-status-details-bin")[0] ?? "");
      const kind = (Object.keys(catalogue) as FailureKind[]).find(
        (name) => catalogue[name].grpc === code && info.includes(name),
      );
      if (kind === undefined) expect.unreachable(`an error of no known kind: ${code} ${details}`);
      return { status: catalogue[kind as FailureKind].rest, body: { error: details, code: kind } };
    }
  };
  return {
    name: "gRPC",
    add: (baseUrl, auth) => ask("AddRegistry", { baseUrl, ...(auth === undefined ? {} : { auth: rpcSetup(auth) }) }),
    get: (id) => ask("GetRegistry", { id }, "registry"),
    refresh: (id) => ask("RefreshRegistry", { id }, "registry"),
    setAuth: (id, setup) => ask("SetRegistryAuth", { id, auth: rpcSetup(setup) }),
    getAuth: (id) => ask("GetRegistryAuth", { id }),
    deleteAuth: (id) => ask("DeleteRegistryAuth", { id }),
    browse: (id) => ask("BrowseDefinitions", { id }),
  };
}

/** An empty list cannot be told from an absent one on the wire: `noScopes` stands for it. */
function rpcSetup({ scopes, ...setup }: Setup): JsonValue {
  return {
    ...setup,
    ...(scopes === undefined ? {} : scopes.length === 0 ? { noScopes: true } : { scopes: [...scopes] }),
  };
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(entries.map(([name, member]) => [name, withoutNulls(member)]));
}

/** proto3 JSON has 64-bit integers as text. */
function withNumbers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withNumbers);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, member]) => [
    name,
    name === "tokenExpiresAt" ? Number(member) : withNumbers(member),
  ]);
  return Object.fromEntries(entries);
}
