/** Samples for the adapter that the scaffold writes, as its author would give them. */
import type { CallSample, ModuleSamples } from "../../src/sdk/testkit.ts";

export const home = { id: "home", title: "Our home", url: "https://home.example/", tags: ["us"] };
export const document = JSON.stringify({ title: "Reading list", bookmarks: [home] });
export const get: CallSample = { tool: "get", parameters: { id: "home" }, answer: home };
export const visit: CallSample = { tool: "visit", parameters: { id: "home" }, answer: { status: 200, bytes: 5 } };

export function calling(...calls: readonly CallSample[]): ModuleSamples {
  return { fetch: () => ({ body: "hello" }), services: [{ document, calls }] };
}

export const readingList: ModuleSamples = { ...calling(get, visit), badDocuments: ["{}"] };
