/** The one way out: every outbound HTTP request goes through this port, so addresses, redirects, time and size are judged once. */
export interface OutboundRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | undefined;
  /** Redirects followed (GET and HEAD only); at 0 a 3xx is an answer like any other. */
  readonly redirectsMax: number;
  /** Bytes of the body after decompression. */
  readonly bodyBytesMax: number;
  /** For the whole exchange: look-up, redirects and body included. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface OutboundAnswer {
  readonly status: number;
  /** Names in lower case; a repeated field is joined with ", ", set-cookie with newlines. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Where the answer came from, after redirects. */
  readonly url: string;
}

/**
 * Rejects with Failure: upstream_failed (refused address, no connection, broken answer), timeout, too_large, cancelled.
 * Messages name host and reason, never headers, queries or bodies.
 */
export interface Fetcher {
  fetch(request: OutboundRequest): Promise<OutboundAnswer>;
  close(): Promise<void>;
}

/** What a credential is decided by: where this hop goes, and the addresses its host has, one of which is connected to. */
export interface CredentialHop {
  readonly url: URL;
  /** The one the connection is made to. */
  readonly address: string;
  /** All of them, from the same look-up. */
  readonly addresses: readonly string[];
}

/** The part of the outbound client that registries need: headers decided anew for every hop and address. */
export interface CredentialedFetcher {
  /** `credentials` answers with headers for this hop only, or throws a Failure: then nothing is sent. */
  fetchAs(
    request: OutboundRequest,
    credentials: (hop: CredentialHop) => Readonly<Record<string, string>>,
  ): Promise<OutboundAnswer>;
  /** The addresses of a URL's host, all allowed. Rejects with upstream_failed; its cause is the look-up's error, if that failed. */
  approve(url: string): Promise<readonly string[]>;
}
