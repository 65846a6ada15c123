/**
 * Patches of one actor's secrets that are decided in the same turn are sealed together: one seal, one commit, however many callers.
 * Sealing each against the state of the moment would make all but one seal again, once per commit: N² seals for N patches at once.
 */
import type { SealContext, Vault } from "../ports/vault.ts";
import { type Configured, type SecretsRequest, type SecretsSealed, sealSecrets } from "./configured.ts";

interface Batch {
  state: Configured;
  readonly requests: SecretsRequest[];
}

export class SecretSeals {
  readonly #vault: Vault;
  readonly #batches = new Map<string, Batch>();

  constructor(vault: Vault) {
    this.#vault = vault;
  }

  /** undefined: another call reports for these requests too. */
  async seal(
    state: Configured,
    requests: readonly SecretsRequest[],
    context: SealContext,
  ): Promise<SecretsSealed | undefined> {
    const key = `${context.kind}/${context.id}`;
    const joined = this.#batches.get(key);
    if (joined !== undefined) {
      joined.state = state;
      joined.requests.push(...requests);
      return undefined;
    }
    const batch: Batch = { state, requests: [...requests] };
    this.#batches.set(key, batch);
    // Until the actor has decided on everything that lies in its mailbox.
    await Promise.resolve();
    this.#batches.delete(key);
    return sealSecrets(batch.state, batch.requests, this.#vault, context);
  }
}
