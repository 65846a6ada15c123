import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { adapterCode, hosted, invocation, openHost, plan, writeModule } from "./modules.ts";

const echo = adapterCode({
  echo: "return { parameters, secrets: Object.keys(hydrated.secrets), config: hydrated.config, module: hydrated.module, plan: hydrated.plan }",
});

it("defines, describes, hydrates and invokes", async () => {
  const host = await openHost();
  const adapter = await host.openAdapter(hosted(writeModule(echo), { config: { region: "eu" } }));
  const definition = await adapter.define({ text: "doc", url: "http://127.0.0.1/doc" });
  expect(definition).toMatchObject({ title: "Sample", version: "0.0.0", description: "doc", tools: [{ id: "echo" }] });
  const reference = plan(definition.plan);
  expect(await adapter.describe(reference, "echo")).toEqual({ inputSchema: { type: "object" }, outputSchema: true });
  const service = await adapter.hydrate({
    serviceId: "s",
    plan: reference,
    config: { a: 1 },
    secrets: { key: "hidden" },
  });
  expect(await service.invoke(invocation("echo", { x: [1, "ü", null] }))).toEqual({
    parameters: { x: [1, "ü", null] },
    secrets: ["key"],
    config: { a: 1 },
    module: { region: "eu" },
    plan: { document: "doc", url: "http://127.0.0.1/doc" },
  });
});

it("inspects what a module declares and leaves no process behind", async () => {
  const host = await openHost();
  const code = `export default { type: "adapter", setup() {}, configSchema: { type: "object", properties: { a: { type: "string" } } } }`;
  expect(await host.inspect(writeModule(code))).toEqual({
    configSchema: { type: "object", properties: { a: { type: "string" } } },
    secretsSchema: { type: "object", additionalProperties: false },
  });
  expect(host.processes()).toEqual([]);
});

it("loads a module written in TypeScript", async () => {
  const host = await openHost();
  const code = `const setup = (): unknown => ({}); export default { type: "adapter" as const, setup };`;
  await expect(host.inspect(writeModule(code, { main: "main.ts" }))).resolves.toBeDefined();
});

it("fetches through the host, bodies of bytes in both directions", async () => {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => response.writeHead(201, { "x-kind": "echo" }).end(Buffer.concat(chunks)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const host = await openHost();
  const adapter = await host.openAdapter(
    hosted(
      writeModule(
        adapterCode({
          post: `
            const answer = await context.fetch({ url: parameters.url, method: "POST", body: new Uint8Array([0, 255, 7]) });
            return { status: answer.status, kind: answer.headers["x-kind"], body: [...answer.body] };`,
          nowhere: `try { await context.fetch({ url: "http://127.0.0.1:1/" }) } catch (error) { return error.code }`,
        }),
      ),
    ),
  );
  const { plan: text } = await adapter.define({ text: "" });
  const service = await adapter.hydrate({ serviceId: "s", plan: plan(text), config: {}, secrets: {} });
  expect(await service.invoke(invocation("post", { url }))).toEqual({ status: 201, kind: "echo", body: [0, 255, 7] });
  expect(await service.invoke(invocation("nowhere"))).toBe("upstream_failed");
});
