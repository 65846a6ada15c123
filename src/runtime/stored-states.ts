/**
 * States as the store has them, for whoever only looks: no actor is woken for it. A record that cannot be read is a refusal where it alone was
 * asked for; in a list it is left out, with a line in the log.
 */
import { Failure, isFailure } from "../errors/failure.ts";
import type { Log } from "../ports/log.ts";
import type { Store, StoredRecord } from "../ports/store.ts";
import { recordKey } from "./keys.ts";
import { type Address, type AnyKind, addressText } from "./kind.ts";
import { decodeRecord } from "./record.ts";

export class StoredStates {
  readonly #store: Store;
  readonly #log: Log;
  readonly #kindOf: (address: Address) => AnyKind;

  constructor(store: Store, log: Log, kindOf: (address: Address) => AnyKind) {
    this.#store = store;
    this.#log = log;
    this.#kindOf = kindOf;
  }

  /** null: there is none. Rejects with Failure unavailable for one that cannot be read: it parks its actor once that is woken. */
  async one(address: Address): Promise<unknown> {
    try {
      const record = await this.#store.load(recordKey(address));
      return record === undefined ? null : decodeRecord(this.#kindOf(address), record.value).state;
    } catch (error) {
      throw isFailure(error)
        ? error
        : new Failure("unavailable", `The record of "${addressText(address)}" cannot be read`, { cause: error });
    }
  }

  /** In the order asked; undefined for those that are gone or cannot be read. */
  async many(addresses: readonly Address[]): Promise<readonly unknown[]> {
    const records = await this.#load(addresses);
    return addresses.map((address, position) => {
      const record = records[position];
      return record === undefined ? undefined : this.#decodeOrSkip(address, record.value);
    });
  }

  /** One that is no record must not take the list with it. */
  async #load(addresses: readonly Address[]): Promise<readonly (StoredRecord | undefined)[]> {
    try {
      return await this.#store.loadMany(addresses.map(recordKey));
    } catch (error) {
      if (isFailure(error)) throw error;
      return Promise.all(addresses.map((address) => this.#loadOrSkip(address)));
    }
  }

  async #loadOrSkip(address: Address): Promise<StoredRecord | undefined> {
    try {
      return await this.#store.load(recordKey(address));
    } catch (error) {
      if (isFailure(error)) throw error;
      return this.#skip(address, error);
    }
  }

  #decodeOrSkip(address: Address, text: string): unknown {
    try {
      return decodeRecord(this.#kindOf(address), text).state;
    } catch (error) {
      return this.#skip(address, error);
    }
  }

  #skip(address: Address, error: unknown): undefined {
    this.#log.error("record-unreadable", "A record was left out of a list", { actor: addressText(address), error });
  }
}
