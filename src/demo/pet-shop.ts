/** What the pet store knows and does, without HTTP: pets, orders, categories, and what it refuses. */
import { setTimeout as sleep } from "node:timers/promises";
import { petStatuses } from "./pet-store-document.ts";

export interface Question {
  readonly method: string;
  /** Segments after the version, still percent-encoded. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
  /** Parsed JSON, undefined without a body. */
  readonly body: unknown;
}

export interface Answer {
  readonly status: number;
  /** A Buffer is a PNG; undefined is nothing; the rest is JSON. */
  readonly body?: unknown;
}

export class ShopError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

interface Pet {
  readonly id: number;
  readonly name: string;
  readonly status: string;
  readonly tags: readonly string[];
  readonly bornOn: string | null;
}

/** A demo that is left running must not fill the memory. */
const petsMax = 10_000;
const waitMsMax = 60_000;

/** One white pixel. */
const photo = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAG7buVgAAAABJRU5ErkJggg==",
  "base64",
);

const categories = {
  name: "animals",
  children: [{ name: "mammals", children: [{ name: "tapirs" }, { name: "cats" }] }, { name: "birds" }],
};

export class PetShop {
  readonly #pets = new Map<number, Pet>();
  #petsCreated = 0;
  #ordersPlaced = 0;

  constructor() {
    this.#create({ name: "Tapir Tom", tags: ["calm", "large"], bornOn: "2019-05-04" });
    this.#create({ name: "Cat Clara", tags: ["calm"], status: "sold" });
    this.#create({ name: "Parrot Paul", tags: ["loud"] });
  }

  async answer({ method, path, query, body }: Question): Promise<Answer> {
    const [collection = "", id, part, ...more] = path;
    if (more.length > 0) throw notFound(path);
    const route = `${method} /${collection}${id === undefined ? "" : "/{id}"}${part === undefined ? "" : `/${part}`}`;
    switch (route) {
      case "GET /pets":
        return { status: 200, body: this.#list(query) };
      case "POST /pets":
        return { status: 201, body: this.#create(body) };
      case "GET /pets/{id}":
        return { status: 200, body: this.#pet(id) };
      case "PUT /pets/{id}":
        return { status: 200, body: this.#replace(this.#pet(id), body) };
      case "DELETE /pets/{id}":
        this.#pets.delete(this.#pet(id).id);
        return { status: 204 };
      case "GET /pets/{id}/photo":
        this.#pet(id);
        return { status: 200, body: photo };
      case "POST /orders":
        return { status: 201, body: this.#order(body) };
      case "GET /categories":
        return { status: 200, body: categories };
      case "GET /stats":
        return { status: 200, body: this.#stats() };
      case "GET /slow":
        return { status: 200, body: await wait(query) };
      default:
        throw notFound(path);
    }
  }

  #list(query: URLSearchParams): Pet[] {
    const status = query.get("status");
    if (status !== null) known(status, "status");
    const tags = query.getAll("tags");
    const limit = whole(query.get("limit") ?? "20", "limit", 1, 100);
    const pets = [...this.#pets.values()];
    return pets
      .filter((pet) => (status === null || pet.status === status) && tags.every((tag) => pet.tags.includes(tag)))
      .slice(0, limit);
  }

  #create(body: unknown): Pet {
    if (this.#pets.size >= petsMax) throw new ShopError(409, "full", "The shop is full");
    this.#petsCreated += 1;
    return this.#store(newPet(body, this.#petsCreated));
  }

  #replace(pet: Pet, body: unknown): Pet {
    return this.#store(newPet(body, pet.id));
  }

  #store(pet: Pet): Pet {
    this.#pets.set(pet.id, pet);
    return pet;
  }

  #pet(id: unknown): Pet {
    const pet = this.#pets.get(Number(id));
    if (pet === undefined) throw new ShopError(404, "not_found", `No pet has the id "${id}"`);
    return pet;
  }

  #order(body: unknown) {
    const { petId, note = null } = fields(body);
    if (typeof petId !== "number") throw invalid("petId must be a number");
    if (note !== null && typeof note !== "string") throw invalid("note must be text or null");
    const pet = this.#pet(petId);
    if (pet.status !== "available") throw new ShopError(409, "not_available", `${pet.name} is ${pet.status}`);
    this.#store({ ...pet, status: "pending" });
    this.#ordersPlaced += 1;
    return { id: this.#ordersPlaced, petId, note, placedAt: new Date().toISOString() };
  }

  #stats() {
    const counts = petStatuses.map((status) => [status, this.#count(status)] as const);
    return { pets: this.#pets.size, orders: this.#ordersPlaced, byStatus: Object.fromEntries(counts) };
  }

  #count(status: string): number {
    return [...this.#pets.values()].filter((pet) => pet.status === status).length;
  }
}

function newPet(body: unknown, id: number): Pet {
  const { name, status = "available", tags = [], bornOn = null } = fields(body);
  if (typeof name !== "string" || name === "" || name.length > 80)
    throw invalid("name must be text of 1 to 80 characters");
  if (!Array.isArray(tags) || !tags.every((tag) => typeof tag === "string"))
    throw invalid("tags must be a list of texts");
  if (bornOn !== null && (typeof bornOn !== "string" || !/^\d{4}-\d\d-\d\d$/.test(bornOn))) {
    throw invalid("bornOn must be a date like 2019-05-04, or null");
  }
  return { id, name, status: known(status, "status"), tags, bornOn };
}

function fields(body: unknown): Record<string, unknown> {
  if (typeof body !== "object" || body === null || Array.isArray(body)) throw invalid("The body must be a JSON object");
  return body as Record<string, unknown>;
}

function known(status: unknown, field: string): string {
  const found = petStatuses.find((candidate) => candidate === status);
  if (found === undefined) throw invalid(`${field} must be one of ${petStatuses.join(", ")}`);
  return found;
}

function whole(text: string, field: string, lowest: number, highest: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < lowest || value > highest) {
    throw invalid(`${field} must be a whole number from ${lowest} to ${highest}`);
  }
  return value;
}

async function wait(query: URLSearchParams): Promise<{ waitedMs: number }> {
  const milliseconds = whole(query.get("milliseconds") ?? "", "milliseconds", 0, waitMsMax);
  // Not referenced: a closing pet store does not wait for the vet.
  await sleep(milliseconds, undefined, { ref: false });
  return { waitedMs: milliseconds };
}

function invalid(message: string): ShopError {
  return new ShopError(400, "invalid", message);
}

function notFound(path: readonly string[]): ShopError {
  return new ShopError(404, "not_found", `No such path: "/${path.join("/")}"`);
}
