/**
 * What the demo shows, as data: each tour is a generator that yields steps and is told their answers. Nothing here sends or
 * prints anything.
 */
import type { Request } from "./curl.ts";

export interface Step extends Request {
  /** What this step is for, one sentence. */
  readonly say: string;
  /** The status that means it worked. */
  readonly expect: number;
  /** Shown before the command: what its body is about, when JSON hides it. */
  readonly listing?: string;
}

/** Parsed JSON, or text for other media types. */
export type Answer = unknown;
export type Tour = Generator<Step, void, Answer>;

/** What must be known of the pet store before it can be installed. */
export interface PetStoreFacts {
  readonly documentUrl: string;
  readonly port: number;
  readonly apiKey: string;
}

const petProgram = `\
interface Pet { id: number; name: string }

const { petstore } = services;
const [calm, created, photo] = await Promise.all([
  petstore.listPets({ query: { tags: ["calm"] } }),
  petstore.createPet({ body: { name: env.newPet, tags: ["calm", "new"] } }),
  petstore.getPetPhoto({ path: { petId: 1 } }),
]);
console.log("created pet", created.body.id);

const stats = await petstore.getStats({});
return {
  calm: calm.body.map((pet: Pet) => pet.name),
  created: created.body,
  photo: photo.body.mediaType,
  pets: stats.body.pets,
};
`;

export function* petStoreTour({ documentUrl, port, apiKey }: PetStoreFacts): Tour {
  yield {
    say: "Install the pet store from its OpenAPI document. It starts disabled.",
    method: "POST",
    path: "/services",
    body: { id: "petstore", adapter: "openapi", url: documentUrl },
    expect: 201,
  };
  yield {
    say: "Say where it listens: the document leaves the port to us.",
    method: "PATCH",
    path: "/services/petstore/config",
    body: [{ op: "add", path: "/serverVar_port", value: String(port) }],
    expect: 200,
  };
  yield {
    say: "Give it the API key. It is stored encrypted and never shown again.",
    method: "PATCH",
    path: "/services/petstore/secrets",
    body: [{ op: "add", path: "/petKey", value: apiKey }],
    expect: 200,
  };
  yield {
    say: "Enable it: configuration and secrets are checked now.",
    method: "POST",
    path: "/services/petstore/enabled",
    body: { enabled: true },
    expect: 200,
  };
  yield { say: "Each operation of the document is a tool.", method: "GET", path: "/tools?limit=100", expect: 200 };
  const created = yield {
    say: "Run a program that calls three tools at the same time, then a fourth.",
    listing: petProgram,
    method: "POST",
    path: "/processes",
    body: { code: petProgram, ref: "demo", envConfig: { newPet: "Otter Olga" } },
    expect: 200,
  };
  const { id } = created as { id: number };
  const snapshot = yield {
    say: "Wait until it is done.",
    method: "GET",
    path: `/processes/${id}?wait=30`,
    expect: 200,
  };
  const { exitState, error } = snapshot as { exitState: string | null; error: string | null };
  if (exitState !== "success") throw new Error(`The program ended with exitState ${exitState}: ${error}`);
  yield { say: "What it printed.", method: "GET", path: `/processes/${id}/stdout`, expect: 200 };
  yield { say: "And its output.", method: "GET", path: `/processes/${id}/output`, expect: 200 };
}

/** What must be known of the registry and the pet store before one can be installed from the other. */
export interface RegistryFacts {
  readonly registryUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly port: number;
  readonly apiKey: string;
}

const shopProgram = "return (await services.shop.getStats({})).body";

export function* registryTour({ registryUrl, clientId, clientSecret, port, apiKey }: RegistryFacts): Tour {
  const added = yield {
    say: "Add the registry: its well-known document says what it offers, and that it takes OAuth2 clients.",
    method: "POST",
    path: "/registries",
    body: { baseUrl: registryUrl },
    expect: 201,
  };
  const registryId = (added as { id: string }).id;
  const registry = `/registries/${encodeURIComponent(registryId)}`;
  const setup = yield {
    say: "Give it the client's credentials. A token is fetched at once, and renewed by itself from now on.",
    method: "POST",
    path: `${registry}/auth`,
    body: { type: "oauth2", clientId, clientSecret },
    expect: 200,
  };
  const { status, message } = (setup as { auth: { status: string; message?: string } }).auth;
  if (status !== "configured") throw new Error(`The registry's auth ended ${status}: ${message}`);
  yield { say: "Browse what it offers.", method: "GET", path: `${registry}/definitions?query=pet`, expect: 200 };
  yield {
    say: "Install the newest pet store it has, under a name of our own.",
    method: "POST",
    path: "/services",
    body: { id: "shop", registryId, definitionId: "petstore" },
    expect: 201,
  };
  yield {
    say: "Configure it as before.",
    method: "PATCH",
    path: "/services/shop/config",
    body: [{ op: "add", path: "/serverVar_port", value: String(port) }],
    expect: 200,
  };
  yield {
    say: "With its secret.",
    method: "PATCH",
    path: "/services/shop/secrets",
    body: [{ op: "add", path: "/petKey", value: apiKey }],
    expect: 200,
  };
  yield { say: "Enable it.", method: "POST", path: "/services/shop/enabled", body: { enabled: true }, expect: 200 };
  const created = yield {
    say: "And run a program that calls it.",
    method: "POST",
    path: "/processes",
    body: { code: shopProgram },
    expect: 200,
  };
  const { id } = created as { id: number };
  yield {
    say: "Its output, as soon as there is one.",
    method: "GET",
    path: `/processes/${id}/output?wait=30`,
    expect: 200,
  };
}

/** How any document gets in: a body for POST /services, and what to say about it. */
export interface Installation {
  readonly say: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly bodyFrom?: string;
}

export function* documentTour({ say, body, bodyFrom }: Installation): Tour {
  const installed = yield {
    say,
    method: "POST",
    path: "/services",
    body,
    ...(bodyFrom === undefined ? {} : { bodyFrom }),
    expect: 201,
  };
  const service = `/services/${encodeURIComponent((installed as { id: string }).id)}`;
  yield { say: "What can be configured.", method: "GET", path: `${service}/config/schema`, expect: 200 };
  yield { say: "Which secrets it wants.", method: "GET", path: `${service}/secrets/schema`, expect: 200 };
  const tools = yield { say: "Its tools, the first ten.", method: "GET", path: "/tools?limit=10", expect: 200 };
  const [first] = (tools as { items: readonly { serviceId: string; id: string }[] }).items;
  if (first === undefined) return;
  const tool = `/tools/${encodeURIComponent(first.serviceId)}/${encodeURIComponent(first.id)}`;
  yield { say: "How process code calls the first one.", method: "GET", path: `${tool}/docs`, expect: 200 };
}
