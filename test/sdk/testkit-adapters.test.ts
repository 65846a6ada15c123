/** The test kit finds each of a table of faults planted in an adapter, says where, and finds none where there is none. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { FetchRequest } from "../../src/sdk/sdk.ts";
import { checkModule, type ModuleSamples, requireSoundModule } from "../../src/sdk/testkit.ts";
import { all, edit, faultsOf, hastyMs, type Planted, requireFound, scaffoldFolder, source } from "./planted.ts";
import { calling, document, get, home, readingList, visit } from "./reading-list.ts";

describe("a sound adapter", () => {
  test("passes every check, in order, and nothing is left behind", async () => {
    const folder = scaffoldFolder("adapter");
    const temporary = mkdtempSync(join(tmpdir(), "planted-"));
    vi.stubEnv("TMPDIR", temporary);
    onTestFinished(() => {
      vi.unstubAllEnvs();
      rmSync(temporary, { recursive: true });
    });
    const findings = await checkModule(folder, readingList);
    expect(faultsOf(findings)).toEqual([]);
    expect(findings.map(({ check }) => check)).toEqual([
      ...["package", "load", "settings", "setup", "definition", "pure definition", "bad documents"],
      ...["setup", "service settings", "hydrate", "calls", "calls", "unknown tool", "dehydrate", "pure definition"],
    ]);
    source("throw 1")(folder);
    expect(faultsOf(await checkModule(folder, readingList))).toHaveLength(1);
    expect(readdirSync(temporary)).toEqual([]);
  });

  test("asks the author's function and nobody else, with its own headers", async () => {
    const asked: FetchRequest[] = [];
    const fetch = (request: FetchRequest) => {
      asked.push(request);
      return { status: 204, headers: { "x-seen": "yes" } };
    };
    const calls = [{ ...visit, answer: { status: 204, bytes: 0 } }];
    const service = { document, secrets: { token: "let-me-in" }, config: { timeoutMs: 500 }, calls };
    await requireSoundModule(scaffoldFolder("adapter"), { fetch, services: [service] });
    expect(asked).toEqual([
      { url: home.url, method: "GET", redirectsMax: 0, timeoutMs: 500, headers: expect.any(Object) },
    ]);
    expect(asked[0]?.headers).toMatchObject({ authorization: "Bearer let-me-in" });
  });

  test.concurrent.each([
    ["an error without a code", new Error("No route"), "upstream_failed"],
    ["a timeout", Object.assign(new Error("Too slow"), { code: "timeout" }), "timeout"],
    ["an answer that is too large", Object.assign(new Error("Too much"), { code: "too_large" }), "upstream_failed"],
  ])("gets %s from the author's function as its caller would", async (_, error, code) => {
    const fetch = () => Promise.reject(error);
    const { tool, parameters = {} } = visit;
    await requireSoundModule(scaffoldFolder("adapter"), { ...calling({ tool, parameters, code }), fetch });
  });
});

describe("a definition", () => {
  const badDocument = `throw failure("invalid_request", 'The document has no list "bookmarks"');`;
  const rows: readonly Planted[] = [
    {
      fault: "throws",
      plant: edit("  return {\n    name: title,", '  if (title) throw new Error("No");\n  return {\n    name: title,'),
      check: "definition",
      says: /No/,
    },
    {
      fault: "has no tools",
      plant: edit("tools: [\n", "tools: [] ?? [\n"),
      check: "definition",
      says: /makes no tools/,
    },
    {
      fault: "has a tool twice",
      plant: edit('id: "get"', 'id: "list"'),
      check: "definition",
      says: /"list" occurs twice/,
    },
    {
      fault: "has a tool without a name",
      plant: edit('name: "List bookmarks",', ""),
      check: "definition",
      says: /name/,
    },
    {
      fault: "has a schema that is none",
      plant: edit('tag: { type: "string" } }, [])', 'tag: { type: "text" } }, [])'),
      check: "definition",
      says: /inputSchema of tool "list"/,
    },
    {
      fault: "is another each time",
      plant: edit("summary: `", "summary: performance.now() + `"),
      check: "pure definition",
      says: /another "summary" the next time/,
    },
    {
      fault: "is another in each process",
      plant: all(
        edit("interface Bookmark {", "const salt = Math.random();\ninterface Bookmark {"),
        edit("summary: `", "summary: salt + `"),
      ),
      check: "pure definition",
      says: /another "summary" the next time/,
    },
    {
      fault: "is made of a bad document",
      check: "bad documents",
      says: /is taken/,
      samples: { ...readingList, badDocuments: [document] },
    },
    {
      fault: "is refused as if the target were at fault",
      plant: edit(badDocument, 'throw new Error("No list");'),
      check: "bad documents",
      says: /should be refused with invalid_request: .*No list \(upstream_failed\)/,
    },
    { fault: "no sample asks for", check: "definition", says: /nothing to check/, samples: {} },
    {
      fault: "no service of a sample asks for",
      check: "definition",
      says: /nothing to check/,
      samples: { services: [] },
    },
  ];
  test.concurrent.each(rows)("that $fault", (row) => requireFound("adapter", readingList, row));
});

describe("a service", () => {
  const { tool, parameters = {} } = get;
  const answering = (text: string) => edit("return bookmarkOf(library, parameters.id);", text);
  const hydrating = (text: string) =>
    edit("  return {\n    bookmarks: plan as", `  ${text}\n  return {\n    bookmarks: plan as`);
  const keeping = edit("interface Bookmark {", "let kept: unknown;\ninterface Bookmark {");
  const rows: readonly Planted[] = [
    {
      fault: "gets settings it does not declare",
      check: "service settings",
      says: /config .*"\/speed" is not allowed/,
      samples: { services: [{ document, config: { speed: 1 }, calls: [] }] },
    },
    { fault: "cannot hydrate", plant: hydrating('if (plan) throw new Error("No");'), check: "hydrate", says: /No/ },
    {
      fault: "cannot hydrate twice",
      plant: all(keeping, hydrating('if (kept) throw new Error("Open already");\n  kept = plan;')),
      check: "hydrate",
      says: /Open already/,
    },
    {
      fault: "keeps in memory what belongs into the plan",
      plant: all(
        keeping,
        edit("plan: bookmarks,", "plan: ((kept = bookmarks), null),"),
        edit("plan as readonly", "kept as readonly"),
      ),
      check: "calls",
      says: /undefined/,
    },
    {
      fault: "answers something else",
      plant: answering("return {};"),
      check: "calls",
      says: /should be .*Our home.* and is \{\}/,
    },
    { fault: "answers what is no JSON", plant: answering("return 1n;"), check: "calls", says: /BigInt/ },
    {
      fault: "answers against its outputSchema",
      plant: answering("return { ...bookmarkOf(library, parameters.id), id: 1 };"),
      check: "calls",
      says: /outputSchema: "\/id" must be string/,
      samples: calling({ tool, parameters }),
    },
    {
      fault: "never answers",
      plant: answering("return new Promise(() => {});"),
      check: "calls",
      says: /\(timeout\)/,
      samples: { ...calling(get), timeoutMs: hastyMs },
    },
    {
      fault: "computes for ever",
      plant: answering("for (;;);"),
      check: "calls",
      says: /\((timeout|unavailable|upstream_failed)\)/,
      samples: { ...calling(get), timeoutMs: hastyMs },
    },
    {
      fault: "answers where it should fail",
      check: "calls",
      says: /should fail with conflict and answers/,
      samples: calling({ tool, parameters, code: "conflict" }),
    },
    {
      fault: "fails with another code",
      plant: edit('throw failure("upstream_failed"', 'throw failure("conflict"'),
      check: "calls",
      says: /should fail with upstream_failed: .*\(conflict\)/,
      samples: { ...calling({ tool: "visit", parameters, code: "upstream_failed" }), fetch: () => ({ status: 500 }) },
    },
    {
      fault: "does not have the tool of a sample",
      check: "calls",
      says: /no tool "drop"/,
      samples: calling({ tool: "drop" }),
    },
    {
      fault: "does not allow the parameters of a sample",
      check: "calls",
      says: /Parameters of tool "get": "\/id" is required/,
      samples: calling({ tool }),
    },
    {
      fault: "fetches what no sample answers",
      check: "calls",
      says: /the samples have no function "fetch"/,
      samples: { services: [{ document, calls: [visit] }] } satisfies ModuleSamples,
    },
    {
      fault: "answers for tools it does not have",
      plant: edit("    default:\n", "    default:\n      return null;\n"),
      check: "unknown tool",
      says: /is not refused: it answers null/,
    },
    {
      fault: "ends its process when it lets go of a service",
      plant: edit("    hydrate,\n", "    hydrate,\n    dehydrate: () => process.exit(1),\n"),
      check: "dehydrate",
      says: /./,
    },
  ];
  test.concurrent.each(rows)("that $fault", (row) => requireFound("adapter", readingList, row));
});

test("a service that goes around context.fetch reaches nobody", async () => {
  let requests = 0;
  const server = createServer((_, response) => {
    requests += 1;
    response.end("hello");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const folder = scaffoldFolder("adapter");
  edit("await fetch({ url, headers, timeoutMs });", '{ ...(await globalThis.fetch(url)), body: "" };')(folder);
  const calls = [{ tool: "visit", parameters: { id: "home" } }];
  const near = JSON.stringify({ bookmarks: [{ ...home, url }] });
  const [fault] = faultsOf(await checkModule(folder, { ...readingList, services: [{ document: near, calls }] }));
  expect(fault).toMatchObject({ check: "calls", message: expect.stringMatching(/^Tool "visit" with .* fails: /) });
  expect(requests).toBe(0);
});

test("all faults are in one error, each with its check", async () => {
  const folder = scaffoldFolder("adapter");
  edit("return bookmarkOf(library, parameters.id);", "return {};")(folder);
  edit("    default:\n", "    default:\n      return null;\n")(folder);
  await expect(requireSoundModule(folder, calling(get))).rejects.toThrow(
    /^The module in ".*" does not keep its contract:\n {2}calls: The answer of .*\n {2}unknown tool: The unknown tool .*$/,
  );
});
