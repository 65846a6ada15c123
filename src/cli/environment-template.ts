/** The environment that `troupe module new` writes: programs are JSON lists of steps. Small, and every part of the contract is in it. */

export const environmentMain = `/**
 * An environment whose programs are JSON: a list of steps, done one after the other.
 *
 *   [
 *     { "print": "Looking for pets" },
 *     { "call": "petstore.findPets", "with": { "limit": 3 }, "as": "pets" },
 *     { "output": { "done": true } },
 *     { "wait": 100 },
 *     { "fail": "That is all" }
 *   ]
 */
import type { EnvironmentModule, ProgramEnd, ProgramRun, ToolToDocument } from "troupe/sdk";

interface Step {
  readonly print?: string;
  /** serviceId.toolId; the answer becomes output under the name \`as\`. */
  readonly call?: string;
  readonly with?: unknown;
  readonly as?: string;
  readonly output?: Record<string, unknown>;
  /** Milliseconds. */
  readonly wait?: number;
  readonly fail?: string;
}

const module: EnvironmentModule = {
  type: "environment",
  configSchema: {
    type: "object",
    properties: { stepsMax: { type: "integer", minimum: 1, default: 1000, description: "Steps of one program" } },
    additionalProperties: false,
  },
  setup: ({ config }) => {
    /** What ends each run that is alive. */
    const running = new Map<string, AbortController>();
    return {
      async execute(run) {
        const killed = new AbortController();
        running.set(run.runId, killed);
        try {
          return await execute(run, config.stepsMax as number, killed.signal);
        } finally {
          running.delete(run.runId);
        }
      },
      kill: (runId) => running.get(runId)?.abort(),
      docs: () => docs,
      toolDocs,
    };
  },
};

export default module;

async function execute(run: ProgramRun, stepsMax: number, killed: AbortSignal): Promise<ProgramEnd> {
  const steps = read(run.code, stepsMax);
  if (typeof steps === "string") return { status: "failed", reason: "syntax", error: steps };
  for (const [index, step] of steps.entries()) {
    try {
      await perform(step, run, killed);
    } catch (error) {
      return { status: "failed", reason: "thrown", error: \`Step \${index}: \${messageOf(error)}\` };
    }
  }
  return { status: "success" };
}

async function perform(step: Step, run: ProgramRun, killed: AbortSignal): Promise<void> {
  killed.throwIfAborted();
  if (step.print !== undefined) run.stdout(\`\${step.print}\\n\`);
  if (step.output !== undefined) run.output(step.output);
  if (step.wait !== undefined) await pause(step.wait, killed);
  if (step.fail !== undefined) throw new Error(step.fail);
  if (step.call === undefined) return;
  const [serviceId = "", toolId = ""] = step.call.split(".");
  // Rejects with an Error that has code and status. A call in flight is not waited for once the run is killed.
  const answer = await Promise.race([run.callTool(serviceId, toolId, step.with), end(killed)]);
  if (step.as !== undefined) run.output({ [step.as]: answer });
}

function pause(ms: number, killed: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    killed.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new Error("The run was killed"));
    });
  });
}

function end(killed: AbortSignal): Promise<never> {
  return new Promise((_, reject) => killed.addEventListener("abort", () => reject(new Error("The run was killed"))));
}

/** The steps, or why there are none. */
function read(code: string, stepsMax: number): readonly Step[] | string {
  let program: unknown;
  try {
    program = JSON.parse(code);
  } catch (error) {
    return \`The program is not JSON: \${messageOf(error)}\`;
  }
  if (!Array.isArray(program)) return "The program must be a list of steps";
  if (program.length > stepsMax) return \`The program has more than \${stepsMax} steps\`;
  const odd = program.findIndex((step) => typeof step !== "object" || step === null || Array.isArray(step));
  return odd === -1 ? program : \`Step \${odd} must be an object\`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What agents read before they write a program. */
const docs = \`# Programs are lists of steps

A program is a JSON array. Its steps are done one after the other; each is an object with one of

- \\\`print\\\`: a line of stdout
- \\\`call\\\`: a tool, as \\\`serviceId.toolId\\\`, with the parameters \\\`with\\\`; the answer becomes output under the name \\\`as\\\`
- \\\`output\\\`: an object, merged into the structured output
- \\\`wait\\\`: milliseconds
- \\\`fail\\\`: ends the program with this message
\`;

function toolDocs({ serviceId, id, description, inputSchema }: ToolToDocument): string {
  const step = JSON.stringify({ call: \`\${serviceId}.\${id}\`, with: {}, as: id });
  return \`# \${serviceId}.\${id}\\n\\n\${description}\\n\\n    \${step}\\n\\n\\\`with\\\` must be valid against:\\n\\n    \${JSON.stringify(inputSchema)}\\n\`;
}
`;

export const environmentTest = `import { test } from "node:test";
import { requireSoundModule } from "troupe/sdk/testkit";

test("keeps the contract of modules, in a process of its own as on a server", async () => {
  await requireSoundModule(import.meta.dirname, {
    config: { stepsMax: 10 },
    programs: {
      prints: { code: '[{"print":"hello"}]', stdout: "hello\\n" },
      outputs: { code: '[{"output":{"a":1}},{"output":{"b":2}}]', output: { a: 1, b: 2 } },
      callsTool: {
        code: '[{"call":"petstore.findPets","with":{"limit":1},"as":"pets"}]',
        tools: { "petstore.findPets": () => [{ name: "Tapir Tom" }] },
        output: { pets: [{ name: "Tapir Tom" }] },
      },
      fails: { code: '[{"fail":"No more"}]', reason: "thrown", error: "Step 0: No more" },
      neverEnds: { code: '[{"wait":1000000}]' },
      others: [
        { code: "[", reason: "syntax" },
        { code: "[1]", reason: "syntax", error: "Step 0 must be an object" },
      ],
    },
  });
});
`;

export const environmentReadme = `An environment module for Troupe: its programs are JSON lists of steps that print, call tools and give output.

Settings of the module: \`stepsMax\`. Replace all of this with the language you want to offer; \`main.ts\` shows each part of the
contract once.
`;
