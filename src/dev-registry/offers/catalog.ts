/** Everything on offer: the real entries, then as many generated ones as wanted, so that pages can be turned. */
import type { EntryKind } from "../routes.ts";
import { definitionOffers, jsonRelease } from "./definitions.ts";
import { moduleOffers, moduleRelease } from "./modules.ts";
import { type Offer, offer } from "./offer.ts";
import { sampleModuleSource } from "./sample-modules.ts";

export const realOffers: Readonly<Record<EntryKind, readonly Offer[]>> = {
  definitions: definitionOffers,
  modules: moduleOffers,
};

/** Samples are made once and kept: their hashes cost more than their memory. */
const samples: Readonly<Record<EntryKind, Offer[]>> = { definitions: [], modules: [] };

export function sampleOffers(kind: EntryKind, count: number): readonly Offer[] {
  const made = samples[kind];
  while (made.length < count) made.push(makers[kind](made.length + 1));
  return made.slice(0, count);
}

const makers: Readonly<Record<EntryKind, (number: number) => Offer>> = {
  definitions: (number) => {
    const id = `sample-${number}`;
    const document = {
      openapi: "3.1.0",
      info: { title: `Sample ${number}` },
      servers: [{ url: "http://127.0.0.1:8300" }],
      paths: { "/state": { get: { operationId: "getState", responses: { 200: { description: "The state" } } } } },
    };
    const releases = [jsonRelease("1.0.0", document)];
    const about = { name: `Sample ${number}`, description: "A generated definition", kind: "openapi@3.1.0" };
    return offer({ id, ...about, latestVersion: "1.0.0", releases });
  },
  modules: (number) => {
    const about = {
      id: `sample-${number}`,
      name: `Sample ${number}`,
      type: number % 2 === 0 ? ("environment" as const) : ("adapter" as const),
      description: "A generated module that says what it was asked",
    };
    const releases = [moduleRelease(about, "1.0.0", sampleModuleSource(about.type, "1.0.0"))];
    return offer({ ...about, latestVersion: "1.0.0", releases });
  },
};
