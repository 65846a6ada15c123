/** The test kit finds each of a table of faults planted in an environment, says where, and finds none where there is none. */
import { describe, expect, test } from "vitest";
import { checkModule, type ModuleSamples, type ProgramSamples } from "../../src/sdk/testkit.ts";
import { all, edit, faultsOf, hastyMs, type Planted, requireFound, scaffoldFolder } from "./planted.ts";

const programs: ProgramSamples = {
  prints: { code: '[{"print":"hello"},{"wait":20},{"print":"again"}]', stdout: "hello\nagain\n" },
  outputs: { code: '[{"output":{"a":1,"b":1}},{"wait":10},{"output":{"b":2}}]', output: { a: 1, b: 2 } },
  callsTool: {
    code: '[{"call":"petstore.findPets","with":{"limit":1},"as":"pets"}]',
    tools: { "petstore.findPets": (parameters) => [parameters] },
    output: { pets: [{ limit: 1 }] },
  },
  fails: { code: '[{"fail":"No more"}]', reason: "thrown", error: "Step 0: No more" },
  neverEnds: { code: '[{"wait":1000000}]' },
};
const samples: ModuleSamples = { programs };

function others(...others: NonNullable<ProgramSamples["others"]>): ModuleSamples {
  return { programs: { ...programs, others } };
}

describe("a sound environment", () => {
  test("passes every check, in order", async () => {
    const findings = await checkModule(scaffoldFolder("environment"), others({ code: "[]", stdout: "" }));
    expect(faultsOf(findings)).toEqual([]);
    expect(findings.map(({ check }) => check)).toEqual([
      ...["package", "load", "settings", "setup", "docs", "prints", "outputs", "calls a tool", "fails"],
      ...["other programs", "runs at once", "kill"],
    ]);
  });

  test("sees tools that fail and tools that are not there", async () => {
    const calls = (tool: string) => `[{"call":"petstore.${tool}"}]`;
    const tools = {
      "petstore.breaks": () => {
        throw new Error("The shop is closed");
      },
    };
    const given = others(
      { code: calls("breaks"), tools, reason: "thrown", error: "The shop is closed" },
      { code: calls("drop"), tools, reason: "thrown", error: 'There is no tool "petstore.drop"' },
      { code: calls("toString"), tools, reason: "thrown", error: "There is no tool" },
    );
    expect(faultsOf(await checkModule(scaffoldFolder("environment"), given))).toEqual([]);
  });
});

describe("an environment", () => {
  const keeping = edit("interface Step {", "let kept: ProgramRun;\ninterface Step {");
  const hasty = { ...samples, timeoutMs: hastyMs };
  const rows: readonly Planted[] = [
    {
      fault: "has no docs",
      plant: edit("docs: () => docs,", 'docs: () => " ",'),
      check: "docs",
      says: /The docs are empty/,
    },
    {
      fault: "has docs that are no text",
      plant: edit("docs: () => docs,", "docs: () => 1 as never,"),
      check: "docs",
      says: /no text/,
    },
    {
      fault: "cannot tell about tools",
      plant: edit("      toolDocs,\n", '      toolDocs: () => "",\n'),
      check: "docs",
      says: /docs of a tool are empty/,
    },
    {
      fault: "does not name the tool it tells about",
      plant: edit("      toolDocs,\n", '      toolDocs: () => "Call petstore",\n'),
      check: "docs",
      says: /do not name "findPets"/,
    },
    {
      fault: "gives no function kill",
      plant: edit("kill: (runId) =>", "stop: (runId: string) =>"),
      check: "setup",
      says: /no function kill/,
    },
    {
      fault: "prints nothing",
      plant: edit("if (step.print !== undefined)", "if (step.print === null)"),
      check: "prints",
      says: /stdout .* should be "hello/,
    },
    {
      fault: "prints something else",
      plant: edit("run.stdout(`", "run.stdout(`> "),
      check: "prints",
      says: /should be "hello\\nagain\\n" and is "> hello/,
    },
    {
      fault: "gives no output",
      plant: edit("run.output(step.output);", ";"),
      check: "outputs",
      says: /The output .* should be .* and is \{\}/,
    },
    {
      fault: "calls no tool",
      plant: edit("await Promise.race([run.callTool(serviceId, toolId, step.with), end(killed)])", "[step.with]"),
      check: "calls a tool",
      says: /called no tool/,
    },
    {
      fault: "calls with other parameters",
      plant: edit("run.callTool(serviceId, toolId, step.with)", "run.callTool(serviceId, toolId)"),
      check: "calls a tool",
      says: /The output/,
    },
    {
      fault: "calls a failure success",
      plant: edit(
        "    } catch (error) {\n      return {",
        '    } catch (error) {\n      return { status: "success" };\n      return {',
      ),
      check: "fails",
      says: /should be a failure and is success/,
    },
    {
      fault: "fails for another reason",
      plant: edit('reason: "thrown"', 'reason: "memory"'),
      check: "fails",
      says: /The reason .* should be "thrown" and is "memory"/,
    },
    {
      fault: "hides why a program failed",
      plant: edit("error: `Step", 'error: "It failed" || `Step'),
      check: "fails",
      says: /should hold "Step 0: No more" and is "It failed"/,
    },
    {
      fault: "throws where it should say how a program ended",
      plant: edit("    } catch (error) {\n      return {", "    } catch (error) {\n      throw error;\n      return {"),
      check: "fails",
      says: /The reason .* is "executor_crashed"/,
    },
    {
      fault: "says nothing about the end",
      plant: edit('return { status: "success" };', "return undefined as never;"),
      check: "prints",
      says: /executor_crashed/,
    },
    {
      fault: "never ends a program",
      plant: edit('return { status: "success" };', "return new Promise(() => {});"),
      check: "prints",
      says: new RegExp(`does not end within ${hastyMs} ms`),
      samples: hasty,
    },
    {
      fault: "does not do as another sample says",
      check: "other programs",
      says: /stderr .* should be "oh"/,
      samples: others({ code: "[]", stderr: "oh" }),
    },
    {
      fault: "mixes programs that run at once",
      plant: all(
        keeping,
        edit("  const steps = read(run.code, stepsMax);", "  kept = run;\n  const steps = read(run.code, stepsMax);"),
        edit("if (step.print !== undefined) run.stdout(", "if (step.print !== undefined) kept.stdout("),
      ),
      check: "runs at once",
      says: /stdout of the program/,
    },
    {
      fault: "does not kill",
      plant: edit("running.get(runId)?.abort()", "undefined"),
      check: "kill",
      says: /did not settle within a second/,
    },
    {
      fault: "ends its process to kill a program",
      plant: edit("running.get(runId)?.abort()", "process.exit(0)"),
      check: "kill",
      says: /did not settle within a second|process/,
    },
    {
      fault: "kills all programs together",
      plant: edit("running.get(runId)?.abort()", "running.forEach((run) => run.abort())"),
      check: "kill",
      says: /With one program another was killed/,
    },
    {
      fault: "ends a program that should never end",
      check: "kill",
      says: /ended by itself before it was killed/,
      samples: { programs: { ...programs, neverEnds: { code: "[]" } } },
    },
    {
      fault: "has no samples",
      check: "prints",
      says: /lack programs .*: prints, outputs, callsTool, fails, neverEnds$/,
      samples: {},
    },
    {
      fault: "has samples that leave something out",
      check: "prints",
      says: /lack programs .*: fails, neverEnds$/,
      samples: { programs: { ...programs, fails: undefined, neverEnds: undefined } as never },
    },
  ];
  test.concurrent.each(rows)("that $fault", (row) => requireFound("environment", samples, row));
});
