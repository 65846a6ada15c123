/**
 * A registry as operations reach it: what it can do (remembered for a minute) and what to send it. Credentials come from the
 * registry's actor at the moment they are needed, and only those of the registry on whose behalf a request is made.
 */
import { LRUCache } from "lru-cache";
import type { Authorization, RegistryMessage, RegistryState } from "../actors/registry.ts";
import type { DriftEvent } from "../actors/registry-drift.ts";
import { openAccessToken, openApiKey } from "../actors/registry-effects.ts";
import { Failure } from "../errors/failure.ts";
import { capabilitiesKeptMax, capabilitiesKeptMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type {
  Advertisement,
  CredentialSource,
  EntryKind,
  RegistryAccess,
  RegistryCredential,
  RegistryReader,
} from "../ports/registry-reader.ts";
import type { Vault } from "../ports/vault.ts";
import type { Actors } from "../runtime/actors.ts";
import type { CallContext } from "./operation.ts";

export interface RegistriesOptions {
  readonly registries: Actors<RegistryState, RegistryMessage>;
  readonly reader: RegistryReader;
  readonly vault: Vault;
  readonly clock: Clock;
  readonly log: Log;
}

/** Times that credentials may be replaced under one request that waits for their token. */
const authorizeTurnsMax = 5;

interface Capabilities {
  readonly until: number;
  readonly promise: Promise<Advertisement>;
}

export class Registries {
  readonly #options: RegistriesOptions;
  readonly #capabilities = new LRUCache<string, Capabilities>({ max: capabilitiesKeptMax });

  constructor(options: RegistriesOptions) {
    this.#options = options;
  }

  async find(id: string): Promise<RegistryState> {
    const { state } = await this.#options.registries.query(id);
    if (state === null) throw new Failure("not_found", `There is no registry "${id}"`);
    return state;
  }

  /** Read live, and told to the actor: what drifted is logged once per change. */
  async advertisement(state: RegistryState, context: CallContext): Promise<Advertisement> {
    const advertisement = await this.#options.reader.advertisement(state.baseUrl, context.signal);
    await this.observe(state.id, advertisement, context);
    return advertisement;
  }

  async observe(id: string, { auth }: Advertisement, context: CallContext): Promise<void> {
    const { registries, log } = this.#options;
    const events = (await registries.ask(id, { type: "observe", advertised: auth }, context)) as readonly DriftEvent[];
    for (const { event, message } of events) {
      log.warn(event, message, { registryId: id, requestId: context.requestId });
    }
  }

  /** URL of a capability; the map is read at most once a minute, and by one caller for all. */
  async capability(state: RegistryState, kind: EntryKind): Promise<string> {
    const url = (await this.#capabilitiesOf(state))[kind];
    if (url === null) throw new Failure("not_found", `Registry "${state.id}" does not support ${kind}`);
    return url;
  }

  forget(id: string): void {
    this.#capabilities.delete(id);
  }

  access({ id, baseUrl }: RegistryState, context: CallContext): RegistryAccess {
    return { registryId: id, baseUrl, signal: context.signal, credentials: this.#credentials(id, context) };
  }

  #capabilitiesOf({ id, baseUrl }: RegistryState): Promise<Advertisement> {
    const { reader, clock } = this.#options;
    const kept = this.#capabilities.get(id);
    if (kept !== undefined && kept.until > clock.monotonic()) return kept.promise;
    // Not the signal of one caller: others wait for the same answer, and the reader has a deadline of its own.
    const promise = reader.advertisement(baseUrl, new AbortController().signal);
    const capabilities = { until: clock.monotonic() + capabilitiesKeptMs, promise };
    this.#capabilities.set(id, capabilities);
    promise.catch(() => {
      if (this.#capabilities.peek(id) === capabilities) this.#capabilities.delete(id);
    });
    return promise;
  }

  #credentials(id: string, context: CallContext): CredentialSource {
    let tokenNumber: number | null = null;
    const authorize = async (refused: number | null): Promise<RegistryCredential | null> => {
      const authorization = await this.#authorize(id, refused, context);
      tokenNumber = authorization.type === "oauth2" ? authorization.number : null;
      return this.#open(id, authorization);
    };
    return {
      current: () => authorize(null),
      renewed: async (refused) => (refused.type === "apiKey" || tokenNumber === null ? null : authorize(tokenNumber)),
    };
  }

  async #authorize(id: string, refused: number | null, context: CallContext): Promise<Authorization> {
    try {
      for (let turn = 0; turn < authorizeTurnsMax; turn++) {
        const message: RegistryMessage = { type: "authorize", refused };
        const authorization = (await this.#options.registries.ask(id, message, context)) as Authorization;
        if (authorization.type !== "again") return authorization;
      }
      throw new Failure("upstream_failed", `The credentials of registry "${id}" are being replaced all the time`);
    } catch (error) {
      // Our own refusal of the transport: at request time it fails the request, not the setup.
      if (error instanceof Failure && error.kind === "refused") throw new Failure("upstream_failed", error.message);
      throw error;
    }
  }

  #open(id: string, authorization: Authorization): RegistryCredential | null {
    const { vault } = this.#options;
    switch (authorization.type) {
      case "anonymous":
      case "again":
        return null;
      case "apiKey": {
        const { headerName, credentials } = authorization;
        return { type: "apiKey", headerName, key: openApiKey(vault, id, credentials) };
      }
      case "oauth2":
        return { type: "oauth2", accessToken: openAccessToken(vault, id, authorization.envelope) };
    }
  }
}
