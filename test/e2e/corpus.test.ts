/**
 * Public API documents end to end: each is installed by URL over REST, configured, enabled, and a program calls one of its tools.
 * A recording server on loopback stands for the API, and what arrives there is checked against the document.
 */
import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openRecordingServer, type RecordingServer } from "../adapters/recording-server.ts";
import { checkRequestAgainstDocument } from "../adapters/request-check.ts";
import { valueFor } from "../adapters/schema-values.ts";
import { type CorpusEntry, corpus, corpusInstalled, corpusText } from "../corpus/corpus.ts";
import { removeFolder, type Server, startServer } from "./server.ts";

/** Tools tried until the generated parameters fit their schema. */
const toolsTriedMax = 40;

if (!corpusInstalled) {
  test("the corpus is not installed: run npm run corpus to install real documents end to end", () => {
    expect(corpusInstalled).toBe(false);
  });
}

describe.runIf(corpusInstalled)("installed over REST and called from a program", () => {
  let server: Server;
  let api: RecordingServer;
  let library: HttpServer;
  let libraryUrl = "";

  beforeAll(async () => {
    library = createServer((request, response) => {
      const entry = corpus[Number(request.url?.slice(1))];
      response.setHeader("content-type", "application/json");
      response.end(entry === undefined ? "" : corpusText(entry));
    });
    await new Promise<void>((resolve) => library.listen(0, "127.0.0.1", resolve));
    libraryUrl = `http://127.0.0.1:${(library.address() as AddressInfo).port}`;
    [server, api] = await Promise.all([startServer(), openRecordingServer()]);
  });

  afterAll(async () => {
    library.closeAllConnections();
    library.close();
    await api.close();
    await server.kill("SIGTERM");
    await removeFolder(server.folder);
  });

  test("covers at least 20 documents, the largest well-known ones among them", () => {
    expect(corpus.length).toBeGreaterThanOrEqual(20);
    const names = corpus.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["GitHub", "Stripe", "Kubernetes", "Twilio", "Slack"]));
  });

  test.each(corpus.map((entry, number) => [entry.name, entry, number] as const))("%s", async (name, entry, number) => {
    const id = name.replace(/[^A-Za-z0-9]/g, "");
    const installed = await server.post("/services", { id, url: `${libraryUrl}/${number}` });
    expect([installed.status, installed.body]).toEqual([201, { id }]);
    await configure(id);
    const enabled = await server.post(`/services/${id}/enabled`, { enabled: true });
    expect([enabled.status, enabled.body]).toEqual([200, { id, enabled: true }]);
    await callOne(id, entry);
  });

  async function configure(id: string): Promise<void> {
    const url = await server.patch(`/services/${id}/config`, {
      op: "add",
      path: "/serverUrl",
      value: `${api.origin}/base`,
    });
    expect([url.status, url.body.outdated]).toEqual([200, []]);
    const { secretsSchema } = (await server.get(`/services/${id}/secrets/schema`)).body;
    const properties = Object.entries(secretsSchema.properties as Record<string, { type: string }>);
    const operations = properties.map(([scheme, { type }]) => ({
      op: "add",
      path: `/${scheme.replaceAll("~", "~0").replaceAll("/", "~1")}`,
      value: type === "object" ? { username: "u", password: "p" } : "secret",
    }));
    const secrets = await server.patch(`/services/${id}/secrets`, ...operations);
    expect(secrets.status, secrets.text).toBe(200);
    expect(secrets.body.present.length).toBeGreaterThanOrEqual(properties.length);
  }

  async function callOne(id: string, entry: CorpusEntry): Promise<void> {
    const { toolId, parameters } = await callable(id);
    const before = api.requests.length;
    const process = await server.run(
      "const answer = await services[env.service].tools[env.tool].invoke(env.parameters); return { status: answer.status }",
      { envConfig: { service: id, tool: toolId, parameters } },
    );
    expect(process.error).toBeNull();
    expect(await server.output(process.id)).toEqual({ status: 200 });
    expect(api.requests.length).toBe(before + 1);
    const document = JSON.parse(corpusText(entry)) as Record<string, unknown>;
    expect(checkRequestAgainstDocument(document, api.last(), "/base").problems).toEqual([]);
    const docs = await server.get(`/tools/${id}/${encodeURIComponent(toolId)}/docs`);
    expect(docs.status).toBe(200);
    expect(docs.text).toContain(toolId);
  }

  /** One of the first tools for which valid parameters can be made up; those with several parameters first. */
  async function callable(id: string): Promise<{ toolId: string; parameters: unknown }> {
    const { items } = (await server.get(`/tools?serviceId=${id}&limit=100`)).body;
    const tools = await Promise.all(
      items.slice(0, toolsTriedMax).map(async (item: { id: string }) => {
        const { status, body } = await server.get(`/tools/${id}/${encodeURIComponent(item.id)}`);
        expect(status).toBe(200);
        return { toolId: item.id, inputSchema: body.inputSchema as object };
      }),
    );
    const slots = (schema: object): number => Object.keys((schema as { properties?: object }).properties ?? {}).length;
    for (const { toolId, inputSchema } of tools.sort((a, b) => slots(b.inputSchema) - slots(a.inputSchema))) {
      const parameters = valueFor(inputSchema);
      const ajv = new Ajv2020({ strict: false, ownProperties: true, validateSchema: false, logger: false });
      addFormats.default(ajv);
      if (ajv.validate(inputSchema, parameters)) return { toolId, parameters };
    }
    throw new Error("No parameters could be made up for any of the tools tried");
  }
});
