/** The adapter that `troupe module new` writes: a JSON list of bookmarks becomes tools. Small, and every part of the contract is in it. */

export const adapterMain = `/**
 * Bookmarks as tools. A document is JSON:
 *
 *   { "title": "Reading list", "bookmarks": [{ "id": "home", "title": "Our home", "url": "https://example.com/", "tags": ["us"] }] }
 *
 * Tools: list and get read it, find searches it, visit asks the address whether it still answers.
 */
import type {
  AdapterModule,
  DocumentInput,
  JsonSchema,
  ModuleContext,
  ModuleError,
  ServiceDefinition,
  ServiceToHydrate,
  ToolInvocation,
} from "troupe/sdk";

interface Bookmark {
  readonly id: string;
  readonly title: string;
  readonly url: string;
  readonly tags: readonly string[];
}

/** What \`hydrate\` makes of a service: everything its calls need. */
interface Library {
  readonly bookmarks: readonly Bookmark[];
  readonly timeoutMs: number;
  readonly token: string | undefined;
}

const module: AdapterModule = {
  type: "adapter",
  // Settings of the module, the same for all its services.
  configSchema: {
    type: "object",
    properties: {
      resultsMax: { type: "integer", minimum: 1, maximum: 1000, default: 20, description: "Results of one call" },
    },
    additionalProperties: false,
  },
  setup: (context) => ({
    generateDefinition,
    hydrate,
    invoke: (library: unknown, invocation) => invoke(context, library as Library, invocation),
  }),
};

export default module;

/** Pure: it looks at the document and at nothing else, so the same document always gives the same tools. */
function generateDefinition({ document }: DocumentInput): ServiceDefinition {
  const { title, bookmarks } = read(document);
  const id = { type: "string", enum: bookmarks.map((bookmark) => bookmark.id) };
  return {
    name: title,
    summary: \`\${bookmarks.length} bookmarks\`,
    // Settings of one service.
    configSchema: {
      type: "object",
      properties: { timeoutMs: { type: "integer", minimum: 100, maximum: 30000, default: 10000 } },
      additionalProperties: false,
    },
    secretsSchema: {
      type: "object",
      properties: { token: { type: "string", minLength: 1, description: "Sent as bearer token on a visit" } },
      additionalProperties: false,
    },
    tools: [
      {
        id: "list",
        name: "List bookmarks",
        description: "All of them, or those with a tag",
        inputSchema: parameters({ tag: { type: "string" } }, []),
        outputSchema: { type: "array", items: bookmarkSchema },
      },
      {
        id: "get",
        name: "Get a bookmark",
        inputSchema: parameters({ id }, ["id"]),
        outputSchema: bookmarkSchema,
      },
      {
        id: "find",
        name: "Find bookmarks",
        description: "By a part of title, address or tag",
        inputSchema: parameters({ text: { type: "string", minLength: 1 } }, ["text"]),
        outputSchema: { type: "array", items: bookmarkSchema },
      },
      {
        id: "visit",
        name: "Visit a bookmark",
        description: "Asks the address and answers with the status it gave",
        inputSchema: parameters({ id }, ["id"]),
        outputSchema: { type: "object", properties: { status: { type: "integer" }, bytes: { type: "integer" } } },
      },
    ],
    // Stored with the service and given to \`hydrate\`: any JSON.
    plan: bookmarks,
  };
}

/** Called before the first call of a service, after each change of its settings, and again whenever the module was restarted. */
function hydrate({ plan, config, secrets }: ServiceToHydrate): Library {
  return {
    bookmarks: plan as readonly Bookmark[],
    timeoutMs: config.timeoutMs as number,
    token: secrets.token as string | undefined,
  };
}

/** The server has checked the parameters against the tool's inputSchema. */
function invoke(context: ModuleContext, library: Library, { toolId, parameters }: ToolInvocation): unknown {
  const { bookmarks } = library;
  const resultsMax = context.config.resultsMax as number;
  switch (toolId) {
    case "list":
      return bookmarks
        .filter(({ tags }) => parameters.tag === undefined || tags.includes(parameters.tag as string))
        .slice(0, resultsMax);
    case "get":
      return bookmarkOf(library, parameters.id);
    case "find": {
      const text = (parameters.text as string).toLowerCase();
      return bookmarks
        .filter(({ title, url, tags }) => [title, url, ...tags].some((field) => field.toLowerCase().includes(text)))
        .slice(0, resultsMax);
    }
    case "visit":
      return visit(context, library, bookmarkOf(library, parameters.id));
    default:
      throw failure("invalid_request", \`There is no tool "\${toolId}"\`);
  }
}

async function visit({ fetch, log }: ModuleContext, { timeoutMs, token }: Library, { id, url }: Bookmark) {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: \`Bearer \${token}\` };
  // The only way out: Node's own fetch finds no network. What it rejects with has a code already.
  const { status, body } = await fetch({ url, headers, timeoutMs });
  log.debug(\`Bookmark "\${id}" answered \${status}\`);
  if (status >= 500) throw failure("upstream_failed", \`The address of bookmark "\${id}" answered \${status}\`);
  return { status, bytes: body.length };
}

function bookmarkOf({ bookmarks }: Library, id: unknown): Bookmark {
  const found = bookmarks.find((bookmark) => bookmark.id === id);
  if (found === undefined) throw failure("invalid_request", \`There is no bookmark "\${id}"\`);
  return found;
}

/** The code tells the caller whose fault it is; the message is shown, so it never holds a secret. */
function failure(code: NonNullable<ModuleError["code"]>, message: string): ModuleError {
  return Object.assign(new Error(message), { code });
}

const bookmarkSchema: JsonSchema = {
  type: "object",
  properties: {
    id: { type: "string" },
    title: { type: "string" },
    url: { type: "string" },
    tags: { type: "array", items: { type: "string" } },
  },
  required: ["id", "title", "url", "tags"],
};

function parameters(properties: Record<string, unknown>, required: readonly string[]): JsonSchema {
  return { type: "object", properties, required, additionalProperties: false };
}

function read(text: string): { title: string; bookmarks: Bookmark[] } {
  const document = parse(text);
  if (!Array.isArray(document?.bookmarks)) {
    throw failure("invalid_request", 'The document has no list "bookmarks"');
  }
  const bookmarks = document.bookmarks.map((given, index) => {
    const { id, title, url, tags = [] } = (given ?? {}) as Partial<Bookmark>;
    if (typeof id !== "string" || typeof title !== "string" || typeof url !== "string" || !Array.isArray(tags)) {
      throw failure("invalid_request", \`Bookmark \${index} needs "id", "title" and "url", and a list of "tags" if any\`);
    }
    return { id, title, url, tags: tags.map(String) };
  });
  if (bookmarks.length === 0) throw failure("invalid_request", "The document has no bookmarks");
  return { title: typeof document.title === "string" ? document.title : "Bookmarks", bookmarks };
}

function parse(text: string): Record<string, unknown> | null {
  try {
    return JSON.parse(text);
  } catch {
    throw failure("invalid_request", "The document is not JSON");
  }
}
`;

export const adapterTest = `import assert from "node:assert/strict";
import { test } from "node:test";
import { requireSoundModule } from "troupe/sdk/testkit";
import bookmarks from "./main.ts";

const document = JSON.stringify({
  title: "Reading list",
  bookmarks: [
    { id: "home", title: "Our home", url: "https://home.example/", tags: ["us"] },
    { id: "news", title: "The news", url: "https://news.example/", tags: ["daily"] },
  ],
});

const home = { id: "home", title: "Our home", url: "https://home.example/", tags: ["us"] };

test("keeps the contract of modules, in a process of its own as on a server", async () => {
  await requireSoundModule(import.meta.dirname, {
    config: { resultsMax: 5 },
    // Every request of the module ends here: the test needs no network.
    fetch: ({ url, headers }) => ({
      status: headers?.authorization === "Bearer let-me-in" ? 200 : 401,
      body: \`This is \${url}\`,
    }),
    services: [
      {
        document,
        secrets: { token: "let-me-in" },
        calls: [
          { tool: "list", parameters: { tag: "us" }, answer: [home] },
          { tool: "get", parameters: { id: "home" }, answer: home },
          { tool: "get", parameters: { id: "away" }, code: "invalid_request" },
          { tool: "find", parameters: { text: "NEWS" } },
          { tool: "visit", parameters: { id: "home" }, answer: { status: 200, bytes: 29 } },
        ],
      },
    ],
    badDocuments: ["", "{}", '{"bookmarks":[{"id":1}]}'],
  });
});

test("names every bookmark in the schema of its parameters", async () => {
  const unused = () => assert.fail("It needs nothing from outside");
  const log = { debug: unused, info: unused, warn: unused, error: unused };
  const adapter = await bookmarks.setup({ config: { resultsMax: 5 }, secrets: {}, log, fetch: unused });
  const { tools } = await adapter.generateDefinition({ document });
  assert.deepEqual(
    tools.map(({ id }) => id),
    ["list", "get", "find", "visit"],
  );
  assert.match(JSON.stringify(tools[1]?.inputSchema), /"enum":\\["home","news"\\]/);
});
`;

export const adapterReadme = `An adapter module for Troupe: it turns a JSON list of bookmarks into tools.

| tool | does |
|---|---|
| \`list\` | all bookmarks, or those with a tag |
| \`get\` | one bookmark by its id |
| \`find\` | bookmarks by a part of title, address or tag |
| \`visit\` | asks the address and answers with its status |

Settings of the module: \`resultsMax\`. Settings of a service: \`timeoutMs\`; its secret \`token\` is sent on visits.
Replace all of this with what your adapter does; \`main.ts\` shows each part of the contract once.
`;
