/**
 * The import table of ARCHITECTURE.md, as data: which folder may import which. A folder not named here does not exist; an
 * import not allowed here fails, and so does a loop between files.
 */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "../src");

/** errors and limits.ts may be imported by all and import nothing but themselves. */
const forAll = ["errors", "limits.ts"];

const mayImport: Readonly<Record<string, readonly string[]>> = {
  errors: [],
  "limits.ts": [],
  ports: [],
  json: [],
  gen: [],
  net: [],
  runtime: ["ports"],
  actors: ["runtime", "ports", "json"],
  operations: ["actors", "runtime", "ports", "json", "net"],
  gateway: ["operations", "ports", "json"],
  "control-plane": ["operations", "ports", "json", "gen"],
  "mcp-face": ["gateway", "operations", "ports", "json"],
  client: ["gen"],
  store: ["ports"],
  executor: ["ports", "json"],
  environments: ["ports", "json"],
  adapters: ["ports", "json", "gen"],
  packages: ["ports", "json"],
  "module-host": ["ports", "json", "sdk"],
  modules: ["ports"],
  maintenance: ["actors", "runtime", "ports", "store", "packages"],
  sdk: ["module-host", "packages", "ports", "json"],
  cli: ["certs", "client", "gen", "maintenance", "sdk"],
  certs: ["ports", "net"],
  egress: ["ports", "net"],
  secrets: ["ports"],
  registries: ["ports", "json", "net"],
  "dev-registry": ["demo"],
  observability: ["ports"],
  demo: [],
  "config.ts": ["certs", "net", "secrets"],
  node: ["*"],
  "serve.ts": ["*"],
  "main.ts": ["*"],
};

/** Libraries that only these folders may know, whichever of their entries is imported. */
const libraries: Readonly<Record<string, readonly string[]>> = {
  commander: ["cli"],
  fastify: ["gateway"],
  level: ["store"],
  undici: ["egress"],
  "node-forge": ["certs"],
  "@connectrpc/connect": ["client", "control-plane"],
  "@connectrpc/connect-node": ["client", "control-plane"],
  "@bufbuild/protobuf": ["cli", "client", "control-plane", "gen", "adapters"],
  "@modelcontextprotocol/sdk": ["adapters", "mcp-face"],
  "@grpc/grpc-js": ["adapters"],
  graphql: ["adapters"],
  yaml: ["adapters"],
  ajv: ["adapters", "json"],
  "ajv-formats": ["adapters", "json"],
  re2js: ["adapters", "json"],
  semver: ["operations", "packages", "registries"],
  "tar-stream": ["packages"],
  "quickjs-emscripten-core": ["executor"],
  "@jitl/quickjs-wasmfile-release-sync": ["executor"],
  "oxc-transform": ["executor"],
  "@jridgewell/trace-mapping": ["executor"],
  "@scalar/openapi-parser": ["adapters"],
  "fast-json-patch": ["json"],
  "prom-client": ["observability"],
  "@opentelemetry/api": ["observability"],
  "@opentelemetry/core": ["observability"],
  "@opentelemetry/exporter-trace-otlp-http": ["observability"],
  "@opentelemetry/resources": ["observability"],
  "@opentelemetry/sdk-trace": ["observability"],
};

interface Import {
  readonly from: string;
  readonly to: string;
  /** `@scope/name` or `name`; undefined for own files and what comes with Node. */
  readonly library: string | undefined;
  readonly isTypeOnly: boolean;
}

const files = globSync("**/*.ts", { cwd: root });
const imports = files.flatMap(importsOf);

function importsOf(file: string): Import[] {
  const text = readFileSync(join(root, file), "utf8");
  const written = /^\s*(?:import|export)\s+(type\s+)?(?:[^"'`;]*?\sfrom\s+)?"([^"]+)"/gm;
  const atRunTime = /\bawait import\(()"([^"]+)"\)/g;
  return [...text.matchAll(written), ...text.matchAll(atRunTime)].map((match) => {
    const to = match[2] ?? "";
    return {
      from: file,
      to: to.startsWith(".") ? relative(root, resolve(root, dirname(file), to)) : to,
      library: /^(?:\.|node:)/.test(to) ? undefined : /^(?:@[^/]+\/)?[^/]+/.exec(to)?.[0],
      isTypeOnly: match[1]?.startsWith("type") === true,
    };
  });
}

function layerOf(file: string): string {
  return file.split("/")[0] ?? file;
}

function isOwn(target: string): boolean {
  return files.includes(target);
}

/** What an installed package has beside it; its own name is there for the texts of new modules. */
function packagesInstalled(): readonly string[] {
  const text = readFileSync(resolve(root, "../package.json"), "utf8");
  const { name, dependencies } = JSON.parse(text) as { readonly name: string; readonly dependencies: object };
  return [name, ...Object.keys(dependencies)];
}

describe("the import table", () => {
  it("names every folder of src, and no other", () => {
    expect([...new Set(files.map(layerOf))].sort()).toEqual(Object.keys(mayImport).sort());
  });

  it("finds the imports it is about", () => {
    expect(imports.length).toBeGreaterThan(300);
    expect(imports.filter(({ to }) => to.startsWith(".."))).toEqual([]);
  });

  it("is kept by every import", () => {
    const forbidden = imports
      .filter(({ to }) => isOwn(to))
      .filter(({ from, to }) => {
        const [own, other] = [layerOf(from), layerOf(to)];
        const allowed = mayImport[own] ?? [];
        return own !== other && !allowed.includes("*") && !allowed.includes(other) && !forAll.includes(other);
      })
      .map(({ from, to }) => `${from} → ${to}`);
    expect(forbidden).toEqual([]);
  });

  it("keeps each library in its folder", () => {
    const strays = imports
      .filter(({ from, library }) => libraries[library ?? ""]?.includes(layerOf(from)) === false)
      .map(({ from, to }) => `${from} → ${to}`);
    expect(strays).toEqual([]);
  });

  it("names no library and no folder of one in vain", () => {
    const used = new Set(imports.map(({ from, library }) => `${layerOf(from)} → ${library}`));
    const allowed = Object.entries(libraries).flatMap(([library, layers]) =>
      layers.map((layer) => `${layer} → ${library}`),
    );
    expect(allowed.filter((edge) => !used.has(edge))).toEqual([]);
  });

  it("finds every library among the dependencies, so that an installed package has it", () => {
    const installed = packagesInstalled();
    const missing = imports.filter(({ library }) => library !== undefined && !installed.includes(library));
    expect(missing.map(({ from, to }) => `${from} → ${to}`)).toEqual([]);
  });

  it("has no loop of run-time imports between files", () => {
    const edges = new Map<string, string[]>();
    for (const { from, to, isTypeOnly } of imports) {
      if (!isTypeOnly && isOwn(to)) edges.set(from, [...(edges.get(from) ?? []), to]);
    }
    expect(findLoop(edges)).toBeUndefined();
  });
});

describe("the source", () => {
  const texts = files
    .filter((file) => !file.startsWith("gen/"))
    .map((file) => ({ file, text: readFileSync(join(root, file), "utf8") }));

  it("carries no leftover marks", () => {
    const marks = texts.filter(({ text }) => /\b(TODO|FIXME|XXX|HACK)\b/.test(text)).map(({ file }) => file);
    expect(marks).toEqual([]);
  });

  it("opens every file with what the file is", () => {
    const silent = texts.filter(({ text }) => !/^(#!.*\n)?\/\*\*/.test(text)).map(({ file }) => file);
    expect(silent).toEqual([]);
  });

  it("has no barrels: no file named index.ts, no file that only passes exports on", () => {
    const barrels = texts
      .filter(({ file, text }) => file.endsWith("index.ts") || /^export \* from/m.test(text))
      .map(({ file }) => file);
    expect(barrels).toEqual([]);
  });

  it("has no file whose name leaves its purpose open", () => {
    const vague = files.filter((file) => /(^|\/)(utils?|helpers?|common|manager|base|misc)\.ts$/.test(file));
    expect(vague).toEqual([]);
  });
});

function findLoop(edges: ReadonlyMap<string, readonly string[]>): string | undefined {
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): string | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file].join(" → ");
    if (done.has(file)) return undefined;
    path.push(file);
    for (const next of edges.get(file) ?? []) {
      const loop = visit(next);
      if (loop !== undefined) return loop;
    }
    path.pop();
    done.add(file);
    return undefined;
  };
  for (const file of edges.keys()) {
    const loop = visit(file);
    if (loop !== undefined) return loop;
  }
  return undefined;
}
