/** What an author gives the test kit: settings, documents and calls, programs, and the world the module may ask. */
import type { FetchRequest, JsonObject, ProgramEnd } from "./sdk.ts";

export interface ModuleSamples {
  /** Settings of the module. Defaults of its schema are filled in, as on a server. */
  readonly config?: JsonObject;
  readonly secrets?: JsonObject;
  /**
   * Answers every `context.fetch`; nothing else does, so checks need no network. What it throws rejects the fetch, with the code
   * `upstream_failed` unless the error has another. Redirects are not followed: answer what comes after them. When not given,
   * every fetch is rejected.
   */
  fetch?(request: FetchRequest): SampleAnswer | Promise<SampleAnswer>;
  /** Adapters: services made of documents, at least one. */
  readonly services?: readonly ServiceSample[];
  /** Adapters: documents that must be refused with `invalid_request`. */
  readonly badDocuments?: readonly string[];
  /** Environments: programs in its language. */
  readonly programs?: ProgramSamples;
  /** For each call, run and start of the module, in milliseconds. Default 10000. */
  readonly timeoutMs?: number;
}

export interface SampleAnswer {
  /** Default 200. */
  readonly status?: number;
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Default empty. */
  readonly body?: string | Uint8Array;
}

/* ---- adapters ---- */

export interface ServiceSample {
  readonly document: string;
  /** Where the document came from. */
  readonly url?: string;
  /** Settings of the service. */
  readonly config?: JsonObject;
  readonly secrets?: JsonObject;
  /** Done one after the other. */
  readonly calls: readonly CallSample[];
}

export interface CallSample {
  readonly tool: string;
  /** Default `{}`. Checked against the tool's inputSchema first, as a server does: what is not valid is `invalid_request`. */
  readonly parameters?: JsonObject;
  /** When given, the answer must equal it. In any case it must be valid against the tool's outputSchema. */
  readonly answer?: unknown;
  /** When given, the call must fail, with this code. */
  readonly code?: string;
}

/* ---- environments ---- */

/** One program for each thing an environment must be able to do. */
export interface ProgramSamples {
  readonly prints: ProgramSample & { readonly stdout: string };
  readonly outputs: ProgramSample & { readonly output: JsonObject };
  readonly callsTool: ProgramSample & { readonly tools: SampleTools };
  readonly fails: ProgramSample & { readonly reason: FailureReason };
  /** It is killed. */
  readonly neverEnds: { readonly code: string; readonly env?: JsonObject };
  readonly others?: readonly ProgramSample[];
}

export type FailureReason = Extract<ProgramEnd, { status: "failed" }>["reason"];

/** By `serviceId.toolId`. What one throws is the error the program gets; other tools are not found. */
export type SampleTools = Readonly<Record<string, (parameters: unknown) => unknown>>;

export interface ProgramSample {
  readonly code: string;
  readonly env?: JsonObject;
  readonly tools?: SampleTools;
  /** Whatever is given must come out exactly. */
  readonly stdout?: string;
  readonly stderr?: string;
  readonly output?: JsonObject;
  /** When given, the program must fail so; else it must succeed. */
  readonly reason?: FailureReason;
  /** Of the failure: a part of its text. */
  readonly error?: string;
}
