/**
 * The page an agent reads before it writes process code. What it promises is held by the executor contract and by
 * test/examples; the numbers that settings can change are parameters.
 */
import { type EnvironmentBounds, failureTable, limitsSection } from "../page-sections.ts";
import { declarations } from "./declarations.ts";

export type { EnvironmentBounds };

/** As long as no setting says otherwise. */
const environmentBoundsDefault: EnvironmentBounds = {
  timeoutMs: 30_000,
  memoryMb: 128,
  outputBytes: 1_048_576,
  toolTimeoutMs: 30_000,
};

/** Markdown. */
export function environmentDocs(bounds: EnvironmentBounds = environmentBoundsDefault): string {
  return [introduction, globals, outputRules, limitsSection(bounds), errors, examples].join("\n");
}

const introduction = `\
# Writing process code (environment \`javascript\`)

A process is JavaScript or TypeScript that runs as the body of an async function: \`await\` and \`return\` work at the top
level. TypeScript types are stripped, not checked. Every run starts in a fresh context: nothing is left over from another run.

Create one with \`POST /processes {"code": "…"}\`, wait with \`GET /processes/{id}?wait=30\`, and read
\`GET /processes/{id}/output\`. What the code prints is at \`/processes/{id}/stdout\` and \`/processes/{id}/stderr\`.

There is no network, no file system, no \`process\`, no \`require\` and no \`import\`: the outside world is reached only through
the tools of installed services. \`GET /tools\` lists them, and \`GET /tools/{serviceId}/{toolId}/docs\` says how to call each one.
`;

const globals = `\
## Globals

Standard ECMAScript, and:

\`\`\`ts
${declarations}\`\`\`

As on the web: \`TextEncoder\`, \`TextDecoder\`, \`URL\`, \`URLSearchParams\`, \`AbortController\`. Missing: \`Intl\` and
\`WebAssembly\`.
`;

const outputRules = `\
## Output

- \`output(object)\` may be called many times; the objects are shallow-merged and later keys win.
- An object that the code returns is merged last. Any other returned value is stored as \`{"result": value}\`.
- Code that outputs and returns nothing succeeds with \`{}\`.
- A value that JSON cannot hold (a BigInt, a circle) fails the run. What was output before is kept.
`;

const errors = `\
## Errors

A tool call that fails throws an Error with \`message\`, \`code\` and \`status\`:

${failureTable}

An uncaught error fails the process: its message becomes \`error\` of the snapshot, and the stack with your line numbers goes to
stderr. A run also fails with a syntax error (line and column are in the message), over a limit, and at once when it waits for
something that can never happen. A run over its time ends with exitState \`timeout\`.
`;

const examples = `\
## Examples

Call several tools at the same time and return a result:

\`\`\`ts
const [pets, stats] = await Promise.all([
  services.petstore.listPets({ query: { status: "available" } }),
  services.petstore.getStats({}),
]);
return { names: pets.body.map((pet: { name: string }) => pet.name), total: stats.body.pets };
\`\`\`

Handle a failed call and go on:

\`\`\`ts
try {
  const answer = await services.petstore.getPet({ path: { petId: 7 } });
  output(answer.status === 200 ? { pet: answer.body } : { missing: true });
} catch (error) {
  const { code, message } = error as ToolError;
  output({ failed: code, message });
}
\`\`\`

Report progress, and keep what is done if time runs out:

\`\`\`ts
const names: string[] = [];
for (const petId of env.petIds ?? [1, 2, 3]) {
  const { body } = await services.petstore.getPet({ path: { petId } });
  names.push(body.name);
  console.log("read", petId);
  output({ names });
}
\`\`\`
`;
