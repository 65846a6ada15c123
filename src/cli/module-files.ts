/**
 * The files of a new module, as text: a package that works as it is. Its main file is TypeScript whose types are all erasable and
 * imported with `import type`, so authors get the contract checked while they type, and Node (22.18 and newer) runs the file as it
 * is: no build, nothing to install, nothing of ours in the package.
 */
import { adapterMain, adapterReadme, adapterTest } from "./adapter-template.ts";
import { environmentMain, environmentReadme, environmentTest } from "./environment-template.ts";

export type ModuleType = "adapter" | "environment";

export interface NewModule {
  /** Becomes its id; see `moduleNameFault`. */
  readonly name: string;
  readonly type: ModuleType;
  /** Of this server, which the module is made for. */
  readonly troupeVersion: string;
}

export interface NewFile {
  /** Relative to the module's folder. */
  readonly path: string;
  readonly text: string;
}

export const moduleNameRule =
  "a name is 1 to 64 lower-case letters, digits and hyphens, begins with a letter and does not end with a hyphen";

/** Ids the server itself uses. */
const takenNames = ["openapi", "mcp", "grpc", "graphql", "javascript", "python", "constructor"];

/** What is wrong with a name, as the end of a sentence; undefined when nothing is. */
export function moduleNameFault(name: string): string | undefined {
  if (!/^[a-z](?:[a-z0-9-]{0,62}[a-z0-9])?$/.test(name)) return moduleNameRule;
  if (takenNames.includes(name)) return "the server uses this name itself";
  return undefined;
}

/** Pure: the same module always has the same files. */
export function moduleFiles({ name, type, troupeVersion }: NewModule): readonly NewFile[] {
  const template = templates[type];
  const title = titleOf(name);
  return [
    { path: "package.json", text: json(packageOf(name, title, type, troupeVersion)) },
    { path: "main.ts", text: template.main },
    { path: "main.test.ts", text: template.test },
    { path: "icon.svg", text: icon(title) },
    { path: "README.md", text: `# ${title}\n\n${template.readme}${readmeEnd(name)}` },
    { path: "tsconfig.json", text: json(typescriptOptions) },
    { path: ".gitignore", text: "node_modules/\n*.tgz\n" },
  ];
}

const templates = {
  adapter: {
    main: adapterMain,
    test: adapterTest,
    readme: adapterReadme,
    description: "Turns a list of bookmarks into tools that list, get, find and visit them",
  },
  environment: {
    main: environmentMain,
    test: environmentTest,
    readme: environmentReadme,
    description: "Runs programs that are lists of steps",
  },
} as const;

function packageOf(name: string, title: string, type: ModuleType, troupeVersion: string): object {
  const { description } = templates[type];
  return {
    name: `troupe-module-${name}`,
    version: "0.1.0",
    description,
    type: "module",
    engines: { node: ">=22.18" },
    files: ["main.ts", "icon.svg"],
    scripts: { test: "node --test", pack: "npm pack" },
    troupe: {
      id: name,
      name: title,
      type,
      description,
      engines: `^${troupeVersion}`,
      main: "main.ts",
      icon: "icon.svg",
    },
  };
}

/** For editors and `tsc`; nothing is ever compiled. What Node cannot strip is an error. */
const typescriptOptions = {
  compilerOptions: {
    target: "es2024",
    module: "nodenext",
    strict: true,
    noUncheckedIndexedAccess: true,
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    noEmit: true,
  },
};

function readmeEnd(name: string): string {
  return `
## Work on it

Types and test kit come from the package \`troupe\`, which has to be beside the module as \`node_modules/troupe\`: \`npm link troupe\`
where the server is installed for all, or a link by hand: \`mkdir -p node_modules && ln -s FOLDER_OF_TROUPE node_modules/troupe\`.
The module itself needs neither: \`main.ts\` imports types only, and Node drops them.

\`\`\`
npm test        # the test kit holds the module to its contract, then the tests of your own
npm run pack    # troupe-module-${name}-0.1.0.tgz, what a server installs
\`\`\`

A server installs nothing for a module: what \`main.ts\` imports must be in the package (\`files\` in package.json), or built into Node.
`;
}

function titleOf(name: string): string {
  const words = name.replaceAll("-", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function icon(title: string): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64" viewBox="0 0 64 64">
  <rect width="64" height="64" rx="14" fill="#3b5bdb"/>
  <text x="32" y="44" font-family="sans-serif" font-size="34" text-anchor="middle" fill="#fff">${title.charAt(0)}</text>
</svg>
`;
}

function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
