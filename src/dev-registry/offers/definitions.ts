/** The service definitions on offer: OpenAPI 3.0 and 3.1, JSON and YAML, with releases that differ in what they can do. */
import { petStoreDocument } from "../../demo/pet-store-document.ts";
import { lendingLibraryYaml } from "./lending-library-document.ts";
import { type Offer, offer, type Release, release } from "./offer.ts";
import { weatherStationDocument } from "./weather-station-document.ts";

interface OpenApiDocument {
  readonly info: object;
  readonly paths: Readonly<Record<string, object>>;
}

const yamlFile = { fileName: "openapi.yaml", mediaType: "application/yaml" };

/** The demo's pet store answers every operation of every release. */
const petstore = offer({
  id: "petstore",
  name: "Pet Store",
  description: "Pets, orders and photos: the small shop of the demo",
  kind: "openapi@3.1.0",
  latestVersion: "1.1.0",
  releases: [
    jsonRelease("1.0.0", withoutPath(petStoreDocument, "/stats")),
    jsonRelease("1.1.0-rc.1", petStoreDocument),
    jsonRelease("1.1.0", petStoreDocument),
    jsonRelease("2.0.0-beta.1", withoutPath(petStoreDocument, "/slow")),
  ],
});

const weatherStation = offer({
  id: "weather-station",
  name: "Weather Station",
  description: "Readings and alarms of weather stations",
  kind: "openapi@3.0.3",
  latestVersion: "2.1.0",
  releases: [
    jsonRelease("1.4.2", withoutPath(weatherStationDocument, "/stations/{stationId}/alarms")),
    jsonRelease("2.0.0", weatherStationDocument),
    jsonRelease("2.1.0", weatherStationDocument),
  ],
});

const lendingLibrary = offer({
  id: "lending-library",
  name: "Lending Library",
  description: "Books, loans and reservations of a public library",
  kind: "openapi@3.1.0",
  latestVersion: "0.10.0",
  releases: ["0.9.0", "0.10.0"].map((version) =>
    release({ version, ...yamlFile, content: lendingLibraryYaml(version) }),
  ),
});

export const definitionOffers: readonly Offer[] = [petstore, weatherStation, lendingLibrary];

function withoutPath<Document extends OpenApiDocument>(document: Document, path: string): Document {
  const { [path]: _left, ...paths } = document.paths;
  return { ...document, paths };
}

/** With its own version in the document, so that no two releases have the same bytes. */
export function jsonRelease(version: string, document: OpenApiDocument): Release {
  const content = JSON.stringify({ ...document, info: { ...document.info, version } }, null, 2);
  return release({ version, fileName: "openapi.json", mediaType: "application/json", content });
}
