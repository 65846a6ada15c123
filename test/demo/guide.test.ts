/** The guide against the pet store instead of the server: it knows neither. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { takeTour } from "../../src/demo/guide.ts";
import { type PetStore, startPetStore } from "../../src/demo/pet-store.ts";
import type { Step, Tour } from "../../src/demo/tour.ts";

let store: PetStore;

beforeAll(async () => {
  store = await startPetStore({ port: 0, apiKey: "key" });
});

afterAll(() => store.close());

async function take(tour: Tour, signal = new AbortController().signal) {
  const printed: string[] = [];
  const base = new URL(store.documentUrl).origin;
  const answer = await takeTour(tour, { base, signal, print: (text) => printed.push(text) }).catch(
    (error: Error) => error,
  );
  return { answer, printed: printed.join("\n"), base };
}

const read: Step = { say: "Read it.", method: "GET", path: "/openapi.json", expect: 200 };

test("a tour is told each answer and its last answer is returned", async () => {
  const seen: unknown[] = [];
  function* tour(): Tour {
    seen.push(yield read);
    yield { ...read, path: "/v1/pets", expect: 401 };
  }
  const { answer, printed, base } = await take(tour());
  expect(seen).toMatchObject([{ openapi: "3.1.0" }]);
  expect(answer).toMatchObject({ code: "unauthorized" });
  expect(printed).toContain(`# 1. Read it.\n\n$ curl -sS ${base}/openapi.json\n{`);
  expect(printed).toContain("# 2. Read it.");
});

test("a long answer is cut and says how much is missing", async () => {
  function* tour(): Tour {
    yield read;
  }
  const { printed } = await take(tour());
  expect(printed).toMatch(/\n… \d+ more lines$/);
  expect(printed.split("\n").length).toBeLessThan(80);
});

test("an answer that was not expected ends the tour, saying what came", async () => {
  let went = false;
  function* tour(): Tour {
    yield { ...read, path: "/v1/pets" };
    went = true;
  }
  const { answer } = await take(tour());
  expect(String(answer)).toContain("Step 1 was answered with 401 instead of 200: {");
  expect(went).toBe(false);
});

test("an interrupted tour ends at once", async () => {
  function* tour(): Tour {
    yield read;
  }
  const { answer } = await take(tour(), AbortSignal.abort());
  expect(answer).toMatchObject({ name: "AbortError" });
});
