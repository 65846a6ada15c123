/** What one running fixture offers: what it ships, changed by what was published and withdrawn meanwhile, then samples. */
import { realOffers, sampleOffers } from "./offers/catalog.ts";
import type { Offer } from "./offers/offer.ts";
import { type Publications, publishedOffer, withdrawn } from "./publication.ts";
import type { EntryKind } from "./routes.ts";

export class Shelf {
  readonly #byId: Readonly<Record<EntryKind, Map<string, Offer>>> = {
    definitions: byId(realOffers.definitions),
    modules: byId(realOffers.modules),
  };

  /** Newly published ones follow the shipped ones. A published sample stands for itself. */
  offers(kind: EntryKind, sampleCount: number): readonly Offer[] {
    const own = this.#byId[kind];
    return [...own.values(), ...sampleOffers(kind, sampleCount).filter(({ id }) => !own.has(id))];
  }

  publish<Kind extends EntryKind>(kind: Kind, publication: Publications[Kind]): void {
    const own = this.#byId[kind];
    own.set(publication.id, publishedOffer(kind, publication, own.get(publication.id)));
  }

  /** @throws Error when there is no such offer or release. */
  withdraw(kind: EntryKind, id: string, version?: string): void {
    const own = this.#byId[kind];
    const known = own.get(id);
    if (known === undefined || (version !== undefined && known.releases.every((one) => one.version !== version))) {
      throw new Error(`Cannot withdraw "${id}"${version === undefined ? "" : ` ${version}`}: it is not on offer`);
    }
    const left = withdrawn(known, version);
    if (left === undefined) own.delete(id);
    else own.set(id, left);
  }
}

function byId(offers: readonly Offer[]): Map<string, Offer> {
  return new Map(offers.map((offer) => [offer.id, offer]));
}
