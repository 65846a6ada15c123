/**
 * Small modules made from a name: as many as a test wants, each a whole one by the contract (src/sdk/sdk.ts), and the ways in
 * which a module can be broken, each as a source that is right but for the one thing its name says.
 */
import type { ModuleDescription } from "./modules.ts";

/** An adapter with one tool per line of a document, or an environment that echoes the program; both tell their version. */
export function sampleModuleSource(type: ModuleDescription["type"], version: string): string {
  return type === "adapter" ? adapterSource(version) : environmentSource(version);
}

function adapterSource(version: string): string {
  return `export default {
  type: "adapter",
  setup: () => ({
    generateDefinition: ({ document }) => ({
      name: "Sample",
      tools: document.split("\\n").filter((id) => /^\\w+$/.test(id)).map((id) => ({ id, name: id })),
    }),
    hydrate: () => ({ version: ${JSON.stringify(version)} }),
    invoke: ({ version }, { toolId, parameters }) => ({ version, toolId, parameters }),
  }),
};
`;
}

function environmentSource(version: string): string {
  return `export default {
  type: "environment",
  setup: () => ({
    execute: async (run) => {
      run.stdout(run.code);
      run.output({ version: ${JSON.stringify(version)} });
      return { status: "success" };
    },
    kill: () => {},
    docs: () => "Whatever is sent is printed",
    toolDocs: ({ id }) => \`Tool \${id} cannot be called from here\`,
  }),
};
`;
}

const definition = "generateDefinition: () => ({ name: 'Sample', tools: [{ id: 'echo', name: 'Echo' }] })";
const parts = `${definition}, hydrate: () => null, invoke: () => null`;

/** Adapters that fail when they are loaded or set up. Whoever waits for some of them waits for ever. */
export const brokenModuleSources = {
  "syntax-error": "export default {",
  "throws-at-load": "throw new Error('Broken at load');",
  "never-loads": "setInterval(() => {}, 1_000);\nawait new Promise(() => {});",
  "computes-at-load": "for (;;);",
  "exits-at-load": "process.exit(3);",
  "no-default-export": `export const adapter = { type: "adapter", setup: () => ({ ${parts} }) };`,
  "other-type": `export default { type: "environment", setup: () => ({ ${parts} }) };`,
  "no-setup": `export default { type: "adapter" };`,
  "schema-is-none": `export default { type: "adapter", configSchema: { type: "nothing" }, setup: () => ({ ${parts} }) };`,
  "setup-throws": `export default { type: "adapter", setup: () => { throw new Error("Broken at setup"); } };`,
  "setup-never-ends": `export default { type: "adapter", setup: () => new Promise(() => {}) };`,
  "no-hydrate": `export default { type: "adapter", setup: () => ({ ${definition}, invoke: () => null }) };`,
} as const satisfies Readonly<Record<string, string>>;
