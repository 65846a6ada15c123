import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { prepareDocument, serviceIdFrom } from "../../src/demo/installation.ts";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe-installation-"));
});

afterAll(() => rm(folder, { recursive: true }));

test("a URL is left for the server to fetch", async () => {
  const { installation } = await prepareDocument("https://example.com/openapi.json");
  expect(installation).toMatchObject({ body: { adapter: "openapi", url: "https://example.com/openapi.json" } });
});

test("a file is sent along, and its command reads the file", async () => {
  const file = join(folder, "my api's.v1.yaml");
  await writeFile(file, "openapi: 3.1.0\n");
  const { installation } = await prepareDocument(file);
  expect(installation.body).toEqual({ id: "my_api_s_v1", adapter: "openapi", definition: "openapi: 3.1.0\n" });
  expect(installation.bodyFrom).toContain(`'${file.replace("'", "'\\''")}'`);
});

test("a file too large for a request body is served to the server by URL", async () => {
  const file = join(folder, "large.json");
  const text = JSON.stringify({ openapi: "3.1.0", info: { description: "é".repeat(1_000_000) } });
  await writeFile(file, text);
  const { installation, close } = await prepareDocument(file);
  try {
    const { id, url } = installation.body as { id: string; url: string };
    expect(id).toBe("large");
    expect(await (await fetch(url)).text()).toBe(text);
  } finally {
    close();
  }
});

test("a file that is not there and a folder are refused with the reason", async () => {
  await expect(prepareDocument(join(folder, "gone.json"))).rejects.toThrow(
    /Cannot read ".*gone\.json": there is no such file$/,
  );
  await expect(prepareDocument(folder)).rejects.toThrow(/: it is a folder$/);
});

test.each([
  ["petstore.json", "petstore"],
  ["/a/b/My API.v2.yaml", "My_API_v2"],
  ["3d-models.yml", "_3d_models"],
  [".yaml", "_yaml"],
  ["ünïcode", "_n_code"],
])("the service id for %s is %s", (file, id) => {
  expect(serviceIdFrom(file)).toBe(id);
});
