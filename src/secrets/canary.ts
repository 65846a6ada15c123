/**
 * A known text sealed when a store is first used. It tells at the start whether the given key is the one the secrets were
 * written with: a wrong key refuses the start, instead of showing up later as empty credentials.
 */
import { Failure, isFailure } from "../errors/failure.ts";
import type { Vault } from "../ports/vault.ts";

const context = { kind: "vault", id: "canary", field: "proof" };
const proof = "troupe secrets canary";

export function makeCanary(vault: Vault): string {
  return vault.seal(proof, context);
}

/**
 * current: nothing to do. previous: a previous key opened it; write `makeCanary` again.
 * @throws Failure refused when none of the keys opens it.
 */
export function checkCanary(vault: Vault, envelope: string): "current" | "previous" {
  if (openOrRefuse(vault, envelope) !== proof) throw wrongKey();
  return vault.isCurrent(envelope) ? "current" : "previous";
}

function openOrRefuse(vault: Vault, envelope: string): string {
  try {
    return vault.open(envelope, context);
  } catch (error) {
    throw isFailure(error) ? wrongKey(error) : error;
  }
}

function wrongKey(cause?: unknown): Failure {
  return new Failure(
    "refused",
    "The secrets key is not the one this data directory was written with: start with that key, or name it in SERVICE_SECRETS_PREVIOUS_KEYS",
    { cause },
  );
}
