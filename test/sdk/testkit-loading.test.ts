/** What the test kit finds before a module does anything: in its package, and when its code is loaded and set up. */
import { unlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { brokenModuleSources } from "../../src/dev-registry/offers/sample-modules.ts";
import { checkModule } from "../../src/sdk/testkit.ts";
import {
  all,
  edit,
  faultsOf,
  file,
  hastyMs,
  manifest,
  type Planted,
  packageJson,
  requireFound,
  scaffoldFolder,
  source,
} from "./planted.ts";
import { readingList } from "./reading-list.ts";

const hasty = { ...readingList, timeoutMs: hastyMs };

describe("a package", () => {
  const check = "package";
  const rows: readonly Planted[] = [
    {
      fault: "has no package.json",
      plant: (at) => unlinkSync(join(at, "package.json")),
      check,
      says: /no package\.json/,
    },
    { fault: "has a package.json that is not JSON", plant: file("package.json", "{"), check, says: /JSON/ },
    { fault: "has no member troupe", plant: packageJson({ troupe: undefined }), check, says: /troupe/ },
    { fault: "has an id that is none", plant: manifest({ id: "a/b" }), check, says: /troupe\.id/ },
    { fault: "has no name", plant: manifest({ name: undefined }), check, says: /troupe\.name/ },
    { fault: "has a type that is none", plant: manifest({ type: "library" }), check, says: /troupe\.type/ },
    { fault: "has no description", plant: manifest({ description: undefined }), check, says: /troupe\.description/ },
    { fault: "has a version that is none", plant: packageJson({ version: "one" }), check, says: /version/ },
    { fault: "has a range that is none", plant: manifest({ engines: "new" }), check, says: /troupe\.engines/ },
    { fault: "is for another server", plant: manifest({ engines: ">=99" }), check, says: />=99/ },
    { fault: "names a main file outside", plant: manifest({ main: "../main.ts" }), check, says: /troupe\.main/ },
    {
      fault: "leaves its main file out",
      plant: packageJson({ files: ["icon.svg"] }),
      check,
      says: /no file "main\.ts"/,
    },
    { fault: "leaves its icon out", plant: packageJson({ files: ["main.ts"] }), check, says: /no file "icon\.svg"/ },
    { fault: "has a very large icon", plant: file("icon.svg", "x".repeat(300_000)), check, says: /icon\.svg.* bytes/ },
    {
      fault: "needs a package it does not bring",
      plant: packageJson({ dependencies: { left: "1" } }),
      check,
      says: /: left;/,
    },
    {
      fault: "is too large",
      plant: file("main.ts", "/".repeat(51 * 1024 * 1024)),
      check,
      says: /more than the 52428800/,
    },
  ];
  test.each(rows)("that $fault", (row) => requireFound("adapter", readingList, row));

  test("may bring packages it depends on, and what they depend on", async () => {
    const folder = scaffoldFolder("adapter");
    all(
      packageJson({ dependencies: { left: "1" }, bundleDependencies: ["left"] }),
      file("node_modules/left/package.json", '{"main":"index.cjs","dependencies":{"right":"1"}}'),
      file("node_modules/left/index.cjs", 'module.exports = require("right");'),
      file("node_modules/right/package.json", '{"main":"index.cjs"}'),
      file("node_modules/right/index.cjs", "module.exports = 1;"),
      edit("interface Bookmark {", 'import "left";\ninterface Bookmark {'),
    )(folder);
    expect(faultsOf(await checkModule(folder, readingList))).toEqual([]);
  });
});

describe("code", () => {
  const check = "load";
  const late = new RegExp(`not ready within ${hastyMs} ms`);
  const at = (name: keyof typeof brokenModuleSources) => source(brokenModuleSources[name]);
  const first = (text: string) => edit("interface Bookmark {", `${text}\ninterface Bookmark {`);
  const rows: readonly Planted[] = [
    { fault: "is not JavaScript", plant: at("syntax-error"), check, says: /cannot be loaded/ },
    { fault: "throws when it is loaded", plant: at("throws-at-load"), check, says: /Broken at load/ },
    { fault: "is never loaded", plant: at("never-loads"), check, says: late, samples: hasty },
    { fault: "computes for ever when loaded", plant: at("computes-at-load"), check, says: late, samples: hasty },
    { fault: "ends its process when loaded", plant: at("exits-at-load"), check, says: /"sample"/ },
    { fault: "has no default export", plant: at("no-default-export"), check, says: /no default export/ },
    {
      fault: "is of another type",
      plant: at("other-type"),
      check,
      says: /type "environment", but its manifest says "adapter"/,
    },
    { fault: "has no function setup", plant: at("no-setup"), check, says: /no function setup/ },
    { fault: "declares a schema that is none", plant: at("schema-is-none"), check, says: /configSchema/ },
    {
      fault: "needs a file that is not packed",
      plant: all(first('import "./more.ts";'), file("more.ts", "")),
      check,
      says: /more\.ts/,
    },
    {
      fault: "needs a package that is not packed",
      plant: all(first('import "left";'), file("node_modules/left/index.js", "")),
      check,
      says: /left/,
    },
    { fault: "has types that Node cannot strip", plant: first("enum Colour { Red }"), check, says: /enum/i },
    { fault: "imports the SDK as if it were code", plant: edit("import type {", "import {"), check, says: /troupe/ },
    {
      fault: "throws when it is set up",
      plant: at("setup-throws"),
      check: "setup",
      says: /Broken at setup/,
    },
    { fault: "is never set up", plant: at("setup-never-ends"), check: "setup", says: late, samples: hasty },
    { fault: "gives no function hydrate", plant: at("no-hydrate"), check: "setup", says: /no function hydrate/ },
    {
      fault: "gets settings its schema does not allow",
      check: "settings",
      says: /config .*"\/resultsMax"/,
      samples: { ...readingList, config: { resultsMax: 0 } },
    },
    {
      fault: "gets secrets it does not declare",
      check: "settings",
      says: /secrets .*"\/key" is not allowed/,
      samples: { ...readingList, secrets: { key: "x" } },
    },
  ];
  test.concurrent.each(rows)("that $fault", (row) => requireFound("adapter", readingList, row));
});
