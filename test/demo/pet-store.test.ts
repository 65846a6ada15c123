/** The pet store is the demo's other side; what its document promises must be so. Real sockets, one store per test. */
import { inflateSync } from "node:zlib";
import { validate } from "@scalar/openapi-parser";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type PetStore, startPetStore } from "../../src/demo/pet-store.ts";
import { petStoreDocument } from "../../src/demo/pet-store-document.ts";

const apiKey = "test-key";
let store: PetStore;

beforeEach(async () => {
  store = await startPetStore({ port: 0, apiKey });
});

afterEach(() => store.close());

async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${store.url}${path}`, {
    method,
    headers: { "X-Pet-Key": apiKey, ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
}

const names = ({ body }: { body: { name: string }[] }) => body.map(({ name }) => name);

test("the document is valid OpenAPI and served without a key", async () => {
  const response = await fetch(store.documentUrl);
  const document = await response.json();
  expect(document).toEqual(petStoreDocument);
  const { valid, errors } = await validate(document as Parameters<typeof validate>[0]);
  expect({ valid, errors: errors ?? [] }).toEqual({ valid: true, errors: [] });
});

test("every operation of the document exists", async () => {
  for (const [path, operations] of Object.entries(petStoreDocument.paths)) {
    for (const method of Object.keys(operations).filter((key) => key !== "parameters")) {
      const { status, body } = await ask(
        method.toUpperCase(),
        path.replace("{petId}", "2"),
        method === "get" ? undefined : {},
      );
      expect(`${method} ${path}: ${status} ${body?.message}`).not.toContain("No such path");
    }
  }
});

test("filters of the list are combined, and an array is a repeated parameter", async () => {
  expect(names(await ask("GET", "/pets"))).toEqual(["Tapir Tom", "Cat Clara", "Parrot Paul"]);
  expect(names(await ask("GET", "/pets?tags=calm&tags=large"))).toEqual(["Tapir Tom"]);
  expect(names(await ask("GET", "/pets?tags=calm&status=sold"))).toEqual(["Cat Clara"]);
  expect(names(await ask("GET", "/pets?limit=1"))).toEqual(["Tapir Tom"]);
});

test("a pet is created, replaced, read and removed", async () => {
  const created = await ask("POST", "/pets", { name: "Otter Olga", bornOn: null });
  expect(created).toEqual({
    status: 201,
    body: { id: 4, name: "Otter Olga", status: "available", tags: [], bornOn: null },
  });
  const replaced = await ask("PUT", "/pets/4", { name: "Olga", tags: ["wet"], bornOn: "2024-02-29" });
  expect(replaced.body).toEqual({ id: 4, name: "Olga", status: "available", tags: ["wet"], bornOn: "2024-02-29" });
  expect((await ask("GET", "/pets/4")).body).toEqual(replaced.body);
  expect(await ask("DELETE", "/pets/4")).toEqual({ status: 204, body: undefined });
  expect((await ask("GET", "/pets/4")).status).toBe(404);
});

test("an order makes the pet pending, and a pending pet cannot be ordered", async () => {
  expect(await ask("POST", "/orders", { petId: 1, note: "soon" })).toMatchObject({
    status: 201,
    body: { id: 1, petId: 1, note: "soon" },
  });
  expect((await ask("POST", "/orders", { petId: 1 })).status).toBe(409);
  expect((await ask("GET", "/stats")).body).toEqual({
    pets: 3,
    orders: 1,
    byStatus: { available: 1, pending: 1, sold: 1 },
  });
});

test("the photo is a whole PNG", async () => {
  const response = await fetch(`${store.url}/pets/1/photo`, { headers: { "X-Pet-Key": apiKey } });
  const bytes = Buffer.from(await response.arrayBuffer());
  expect(response.headers.get("content-type")).toBe("image/png");
  expect(bytes.subarray(0, 8).toString("latin1")).toBe("\x89PNG\r\n\x1a\n");
  const data = bytes.indexOf("IDAT");
  const pixels = inflateSync(bytes.subarray(data + 4, data + 4 + bytes.readUInt32BE(data - 4)));
  expect(pixels).toEqual(Buffer.from([0, 255]));
});

test("the slow operation answers as late as it was told", async () => {
  const before = performance.now();
  expect(await ask("GET", "/slow?milliseconds=100")).toEqual({ status: 200, body: { waitedMs: 100 } });
  expect(performance.now() - before).toBeGreaterThanOrEqual(95);
});

test("closing does not wait for slow answers", async () => {
  const slow = ask("GET", "/slow?milliseconds=60000").catch((error: unknown) => error);
  await new Promise((resolve) => setTimeout(resolve, 50));
  await store.close();
  expect(await slow).toBeInstanceOf(Error);
  store = await startPetStore({ port: 0, apiKey });
});

test.each([
  ["no key", "GET", "/pets", undefined, { "X-Pet-Key": "" }, 401, "unauthorized"],
  ["a wrong key", "GET", "/pets", undefined, { "X-Pet-Key": "other" }, 401, "unauthorized"],
  ["an unknown path", "GET", "/birds", undefined, {}, 404, "not_found"],
  ["a path that is too long", "GET", "/pets/1/photo/2", undefined, {}, 404, "not_found"],
  ["an unknown pet", "GET", "/pets/99", undefined, {}, 404, "not_found"],
  ["an id that is no number", "GET", "/pets/tom", undefined, {}, 404, "not_found"],
  ["a method that is not there", "DELETE", "/pets", undefined, {}, 404, "not_found"],
  ["an unknown status", "GET", "/pets?status=lost", undefined, {}, 400, "invalid"],
  ["a limit of 0", "GET", "/pets?limit=0", undefined, {}, 400, "invalid"],
  ["a limit of 101", "GET", "/pets?limit=101", undefined, {}, 400, "invalid"],
  ["a limit that is no number", "GET", "/pets?limit=1e1", undefined, {}, 400, "invalid"],
  ["no body", "POST", "/pets", undefined, {}, 400, "invalid"],
  ["broken JSON", "POST", "/pets", "{", {}, 400, "invalid"],
  ["a list as body", "POST", "/pets", [], {}, 400, "invalid"],
  ["an empty name", "POST", "/pets", { name: "" }, {}, 400, "invalid"],
  ["tags that are no texts", "POST", "/pets", { name: "a", tags: [1] }, {}, 400, "invalid"],
  ["a date that is none", "POST", "/pets", { name: "a", bornOn: "today" }, {}, 400, "invalid"],
  ["another media type", "POST", "/pets", "name=a", { "Content-Type": "text/plain" }, 415, "unsupported_media_type"],
  ["a body that is too large", "POST", "/pets", { name: "a".repeat(100_000) }, {}, 413, "too_large"],
  ["an order without a pet", "POST", "/orders", {}, {}, 400, "invalid"],
  ["an order of an unknown pet", "POST", "/orders", { petId: 99 }, {}, 404, "not_found"],
  ["a wait without a time", "GET", "/slow", undefined, {}, 400, "invalid"],
  ["a wait that is too long", "GET", "/slow?milliseconds=60001", undefined, {}, 400, "invalid"],
])("%s is refused as JSON", async (_, method, path, body, headers, status, code) => {
  const answer = await ask(method, path, body, headers as Record<string, string>);
  expect(answer).toMatchObject({ status, body: { code, message: expect.any(String) } });
});

test("a port that is taken is an error", async () => {
  await expect(startPetStore({ port: store.port, apiKey })).rejects.toThrow("EADDRINUSE");
});
