/** The documents a server gives of itself, to anybody: the page and the guide stand alone, and none is sent twice to who has it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { docsPage } from "../../src/gateway/docs-page.ts";
import { removeFolder, type Server, startServer } from "../e2e/server.ts";

let server: Server;

beforeAll(async () => {
  server = await startServer({
    settings: { SERVICE_API_KEYS: "boss:operator:boss-key", SERVICE_PROCESS_MEMORY_MB: "77", SERVICE_RATE_LIMITS: "" },
  });
});

afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolder(server.folder);
});

const mediaTypes = {
  "/openapi.json": "application/json; charset=utf-8",
  "/docs": "text/html; charset=utf-8",
  "/docs/style.css": "text/css; charset=utf-8",
  "/llms.txt": "text/markdown; charset=utf-8",
};

describe.each(Object.entries(mediaTypes))("%s", (path, mediaType) => {
  it("needs no key, and is not sent again to who has it", async () => {
    const { status, headers, text } = await server.get(path);
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe(mediaType);
    expect(text.length).toBeGreaterThan(500);
    expect(text.length).toBeLessThan(300_000);
    const again = await fetch(server.http + path, { headers: { "if-none-match": `"other", ${headers.get("etag")}` } });
    expect([again.status, await again.text(), again.headers.get("etag")]).toEqual([304, "", headers.get("etag")]);
    const head = await fetch(server.http + path, { method: "HEAD" });
    expect([head.status, head.headers.get("content-length")]).toEqual([200, String(Buffer.byteLength(text))]);
  });

  it("is counted like any other request, and is not there for other methods", async () => {
    expect((await server.get(path)).headers.get("x-ratelimit-remaining")).toMatch(/^\d+$/);
    const { status, headers } = await server.call("POST", path, {}, { authorization: "Bearer boss-key" });
    expect([status, headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
  });
});

describe("the page", () => {
  it("loads nothing from elsewhere, and runs nothing", async () => {
    const { headers, text } = await server.get("/docs");
    expect(headers.get("content-security-policy")).toBe(
      "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(text).not.toMatch(/<script|<style|<img|<iframe|\son\w+=|\sstyle=|javascript:/i);
    expect([...text.matchAll(/(?:src|href)="([^#"]*)/g)].map(([, target]) => target).filter(Boolean)).toEqual([
      "/docs/style.css",
      "/openapi.json",
      "/llms.txt",
    ]);
    expect((await server.get("/docs/style.css")).text).not.toMatch(/@import|url\(/);
  });

  it("shows every operation, schema and error, and has no link that leads nowhere", async () => {
    const { body } = await server.get("/openapi.json");
    const { text } = await server.get("/docs");
    const ids = new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    for (const methods of Object.values(body.paths) as object[]) {
      for (const { operationId } of Object.values(methods)) expect(ids).toContain(operationId);
    }
    for (const name of Object.keys(body.components.schemas)) expect(ids).toContain(`schema-${name}`);
    for (const name of Object.keys(body.components.responses)) expect(ids).toContain(`error-${name}`);
    const targets = [...text.matchAll(/href="#([^"]+)"/g)].map(([, target]) => target);
    expect(targets.filter((target) => !ids.has(target))).toEqual([]);
  });

  it("shows as text whatever stands in the document", () => {
    const evil = `<script>alert("x")</script>'&`;
    const page = docsPage({
      info: { title: evil, version: evil, description: evil },
      tags: [{ name: "tag", description: evil }],
      paths: {
        "/x": {
          get: {
            operationId: "x",
            summary: evil,
            description: evil,
            tags: ["tag"],
            parameters: [{ name: evil, in: "query", description: evil, schema: { type: "string", default: evil } }],
            responses: {
              200: { description: evil, content: { "text/plain": { schema: { enum: [evil] }, example: evil } } },
            },
          },
        },
      },
      components: { schemas: { X: { type: "object", description: evil, properties: { [evil]: {} } } }, responses: {} },
    });
    expect(page).not.toContain("<script");
    expect(page.match(/&#60;script&#62;/g)?.length).toBeGreaterThan(9);
  });
});

describe("the guide for agents", () => {
  it("tells what holds on this server", async () => {
    const { text } = await server.get("/llms.txt");
    expect(text).toMatch(/^# Troupe\n\n> /);
    for (const told of ["Authorization: Bearer", "77 MiB", "102400", "X-RateLimit-Limit"]) expect(text).toContain(told);
  });

  it("links to what is there", async () => {
    const { text } = await server.get("/llms.txt");
    const links = [...text.matchAll(/\]\((\/[^)]*)\)/g)].map(([, path]) => path ?? "");
    expect(links.length).toBeGreaterThan(2);
    for (const path of links) {
      const { status } = await server.call("GET", path, undefined, { authorization: "Bearer boss-key" });
      expect([path, path === "/mcp" ? 405 : 200]).toEqual([path, status]);
    }
  });

  it("names only paths that the document has", async () => {
    const { body } = await server.get("/openapi.json");
    const { text } = await server.get("/llms.txt");
    const named = [...text.matchAll(/`(?:GET|POST) (\/[^`?\s]*)/g)].map(([, path]) => path ?? "");
    expect(named.length).toBeGreaterThan(5);
    for (const path of named) expect(Object.keys(body.paths)).toContain(path);
  });
});
