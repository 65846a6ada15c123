/**
 * The source of the adapter module on offer: CSV tables as tools. It needs no network and no other package, and does what the
 * contract of modules asks of an adapter (src/sdk/sdk.ts): makes tools of a document, holds a service ready, answers calls.
 */

const header = `/** CSV tables as tools: the first line names the columns, every other line is a row. */

/** @type {import("troupe/sdk").AdapterModule} */
const csvTables = {
  type: "adapter",
  setup: () => ({ generateDefinition, hydrate, invoke }),
};

export default csvTables;

/** The tools of a document; the plan is the document itself. */
function generateDefinition({ document }) {
  const { columns } = read(document);
  return { name: "CSV table", description: \`Rows with \${columns.join(", ")}\`, tools: tools(columns), plan: document };
}

function hydrate({ plan }) {
  return read(plan);
}

function invoke(table, { toolId, parameters }) {
  switch (toolId) {
    case "findRows": {
      const wanted = Object.entries(parameters.where ?? {});
      return table.rows.filter((row) => wanted.every(([column, value]) => row[column] === value));
    }
`;

const countRows = `    case "countRows":
      return { count: table.rows.length };
`;

const footer = `    default:
      throw refusal(\`There is no tool "\${toolId}"\`);
  }
}

/** The caller's fault, and answered as such. */
function refusal(message) {
  return Object.assign(new Error(message), { code: "invalid_request" });
}

/** Quoted fields may hold commas, doubled quotes and line breaks. */
function read(text) {
  const lines = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^,\\r\\n]*))(,|\\r?\\n|$)/g)) {
    lines.at(-1).push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === "") break;
    if (end !== ",") lines.push([]);
  }
  const [columns, ...others] = lines.filter((fields) => fields.some((field) => field !== ""));
  if (columns === undefined) throw refusal("The document has no line with the names of the columns");
  const row = (fields) => Object.fromEntries(columns.map((column, index) => [column, fields[index] ?? ""]));
  return { columns, rows: others.map(row) };
}

function tools(columns) {
  const where = { type: "object", properties: Object.fromEntries(columns.map((name) => [name, { type: "string" }])) };
  const findRows = { type: "object", properties: { where }, additionalProperties: false };
  return [
    { id: "findRows", name: "Find rows", description: "Rows whose columns have these values", inputSchema: findRows },
`;

const countRowsTool = `    { id: "countRows", name: "Count rows", description: "How many rows there are", inputSchema: { type: "object" } },
`;

const end = `  ];
}
`;

/** `counts`: with the second tool, which the first release did not have. */
export function csvModuleSource({ counts }: { readonly counts: boolean }): string {
  return [header, counts ? countRows : "", footer, counts ? countRowsTool : "", end].join("");
}
