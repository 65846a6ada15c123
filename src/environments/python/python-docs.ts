/** The page an agent reads before it writes process code in Python. Its promises are held by test/executor/python*.test.ts. */
import { type EnvironmentBounds, failureTable, limitsSection } from "../page-sections.ts";

/** Markdown. */
export function pythonDocs(bounds: EnvironmentBounds): string {
  return [introduction, globals, outputRules, limitsSection(bounds), errors, examples].join("\n");
}

const introduction = `\
# Writing process code (environment \`python\`)

A process is Python 3 that runs as the body of a function: \`return\` works at the top level, and everything else is as in a
module. Every run starts in a fresh process: nothing is left over from another run. Calls wait for their answer; there is
no \`await\`.

Create one with \`POST /processes {"code": "…"}\`, wait with \`GET /processes/{id}?wait=30\`, and read
\`GET /processes/{id}/output\`. What the code prints is at \`/processes/{id}/stdout\` and \`/processes/{id}/stderr\`.

The standard library can be imported, and nothing else. There is no network, no file of the machine, nothing to write to, no
thread (so no \`asyncio\`) and no subprocess: the outside world is reached only through the tools of installed services.
\`GET /tools\` lists them, and \`GET /tools/{serviceId}/{toolId}/docs\` says how to call each one.
`;

const globals = `\
## Globals

| name | what it is |
|---|---|
| \`output(part)\` | adds a dict to the output of the process |
| \`env\` | the envConfig of the process, read-only; \`{}\` when none was given |
| \`services\` | installed services by id, see below |
| \`gather(call, …)\` | waits for calls that were started; a list of their results |
| \`ToolError\` | what a failed tool call raises |

Tools are called with keyword arguments or one dict:

| code | what it does |
|---|---|
| \`services.petstore.get_pet(path={"petId": 7})\` | calls the tool and returns its result as plain data |
| \`services.petstore.get_pet.start(path={"petId": 7})\` | starts the call; \`.result()\` waits for it |
| \`services["pet-store"].tools["getPet"](path={"petId": 7})\` | the same for any id, exactly as it is listed |

\`get_pet\` finds the tool \`getPet\`, \`get-pet\` or \`get_pet\`.
`;

const outputRules = `\
## Output

- \`output(part)\` may be called many times; the dicts are shallow-merged and later keys win.
- A dict that the code returns is merged last. Any other returned value but \`None\` is stored as \`{"result": value}\`.
- Code that outputs and returns nothing succeeds with \`{}\`; so does \`sys.exit()\`.
- A value that JSON cannot hold (a set, bytes, a date, NaN, a circle) fails the run. What was output before is kept.
`;

const errors = `\
## Errors

A tool call that fails raises \`ToolError\` with \`message\`, \`code\` and \`status\`:

${failureTable}

An uncaught exception fails the process: its message becomes \`error\` of the snapshot, and the traceback with your line numbers
goes to stderr. A run also fails with a syntax error (line and column are in the message) and over a limit. A run over its
time ends with exitState \`timeout\`.
`;

const examples = `\
## Examples

Call several tools at the same time and return a result:

\`\`\`python
petstore = services.petstore
pets, stats = gather(
    petstore.list_pets.start(query={"status": "available"}),
    petstore.get_stats.start(),
)
return {"names": [pet["name"] for pet in pets["body"]], "total": stats["body"]["pets"]}
\`\`\`

Handle a failed call and go on:

\`\`\`python
try:
    answer = services.petstore.get_pet(path={"petId": 7})
    output({"pet": answer["body"]} if answer["status"] == 200 else {"missing": True})
except ToolError as error:
    output({"failed": error.code, "message": error.message})
\`\`\`

Report progress, and keep what is done if time runs out:

\`\`\`python
names = []
for pet_id in env.get("petIds", [1, 2, 3]):
    answer = services.petstore.get_pet(path={"petId": pet_id})
    names.append(answer["body"]["name"])
    print("read", pet_id)
    output({"names": names})
\`\`\`
`;
