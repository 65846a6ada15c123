/** Tool calls from inside a Python program. */
import { expect, it } from "vitest";
import { toolCallsInFlightMax } from "../../src/limits.ts";
import type { RunHandle, ToolAnswer, ToolCall } from "../../src/ports/executor.ts";
import { ending, errorOf, runProgram } from "./program.ts";
import { describePython } from "./python-machine.ts";

const echo = (call: ToolCall): ToolAnswer => ({ ok: true, value: call });

const spelling = "snake_case";
const addressed: readonly (readonly [code: string, call: Partial<ToolCall>])[] = [
  ["services.petstore.get_pet", { serviceId: "petstore", toolId: "get_pet", spelling }],
  ["services.petstore.getPet", { serviceId: "petstore", toolId: "getPet", spelling }],
  ["services.petstore.get_pet.invoke", { serviceId: "petstore", toolId: "get_pet", spelling }],
  ["services.petstore._hidden", { serviceId: "petstore", toolId: "_hidden", spelling }],
  ["services['pet-store'].get_pet", { serviceId: "pet-store", toolId: "get_pet", spelling }],
  ["services['pet-store']['get-pet']", { serviceId: "pet-store", toolId: "get-pet" }],
  ["services.petstore.tools['getPet']", { serviceId: "petstore", toolId: "getPet" }],
  ["services.petstore.tools['tools'].invoke", { serviceId: "petstore", toolId: "tools" }],
  ["services.petstore.tools['__class__'].invoke", { serviceId: "petstore", toolId: "__class__" }],
  ["services['__class__']['__init__']", { serviceId: "__class__", toolId: "__init__" }],
  ["services.petstore.tools['a b\\n😀'].invoke", { serviceId: "petstore", toolId: "a b\n😀" }],
];

describePython("Python tool calls", (current) => {
  it.each(addressed)("%s reaches its tool", async (code, call) => {
    const result = await runProgram(current(), `return ${code}({'a': [1, 'é']})`, { tool: echo });
    expect(result.output).toEqual({ callId: 1, parameters: { a: [1, "é"] }, ...call });
  });

  it.each([
    ["keyword arguments", "path={'id': 1}, query={}", { path: { id: 1 }, query: {} }],
    ["one dict", "{'path': {'id': 1}}", { path: { id: 1 } }],
    ["an empty dict", "{}", {}],
    ["None", "None", null],
    ["a tuple inside", "a=(1, 2)", { a: [1, 2] }],
    ["env", "env", { n: 1 }],
  ])("%s become the parameters", async (_title, given, parameters) => {
    const result = await runProgram(current(), `services.a.b(${given})`, { tool: echo, env: { n: 1 } });
    expect(result.calls.map((call) => call.parameters)).toEqual([parameters]);
  });

  it("a call without an argument has no parameters", async () => {
    const result = await runProgram(current(), "services.a.b()", { tool: echo });
    expect(result.calls).toEqual([{ callId: 1, serviceId: "a", toolId: "b", parameters: undefined, spelling }]);
  });

  it.each([
    ["null", null],
    ["text", "x\0y\u2028"],
    ["a number", -1.5e300],
    ["an object with odd keys", JSON.parse('{"__proto__": 1, "": 2, "then": 3}')],
    ["1 MB", "x".repeat(1_000_000)],
  ])("an answer of %s arrives as it is", async (_title, value) => {
    const result = await runProgram(current(), "return {'v': services.a.b()}", {
      tool: () => ({ ok: true, value }),
      limits: { outputBytes: 2_000_000 },
    });
    expect(result.output).toEqual({ v: value });
  });

  it("an answer of nothing is None", async () => {
    const result = await runProgram(current(), "return services.a.b() is None", {
      tool: () => ({ ok: true, value: undefined }),
    });
    expect(result.output).toEqual({ result: true });
  });

  it("a failed call raises ToolError with code, status and message", async () => {
    const tool = (): ToolAnswer => ({ ok: false, message: 'No "x"', code: "not_found", status: 404 });
    const code =
      "try:\n    services.a.b()\nexcept ToolError as e:\n    return [isinstance(e, Exception), str(e), e.message, e.code, e.status]";
    const result = await runProgram(current(), code, { tool });
    expect(result.output).toEqual({ result: [true, 'No "x"', 'No "x"', "not_found", 404] });
    const uncaught = await runProgram(current(), "\nservices.a.b()", { tool });
    expect([ending(uncaught), errorOf(uncaught)]).toEqual(["thrown", 'No "x"']);
    expect(uncaught.stderr).toMatch(/line 2, in <module>\n.*\n(.*\n)?ToolError: No "x"\n$|ToolError: No "x"/);
  });

  it("calls that were started run concurrently and may be answered in any order", async () => {
    const waiting: (() => void)[] = [];
    const tool = (call: ToolCall, handle: RunHandle): undefined => {
      waiting.push(() => handle.answer(call.callId, { ok: true, value: call.toolId }));
      if (waiting.length === 3) for (const answer of waiting.reverse()) answer();
    };
    const code =
      "s = services.s\nc = s.c.start()\nreturn gather(s.a.start(), s.b.start(x=1)) + [c.result(), c.result()]";
    const result = await runProgram(current(), code, { tool });
    expect(result.output).toEqual({ result: ["a", "b", "c", "c"] });
  });

  it("gather takes a list too, waits for all and then raises the first failure", async () => {
    const tool = ({ toolId }: ToolCall): ToolAnswer =>
      toolId === "good" ? { ok: true, value: 1 } : { ok: false, message: toolId, code: "timeout", status: 504 };
    const code =
      "s = services.s\ntry:\n    gather([s.good.start(), s.bad.start(), s.worse.start()])\nexcept ToolError as e:\n    return e.message";
    expect((await runProgram(current(), code, { tool })).output).toEqual({ result: "bad" });
    const wrong = await runProgram(current(), "gather(services.s.good(), 1)", { tool });
    expect(errorOf(wrong)).toMatch(/start/);
  });

  it("more calls than may be in flight are refused with a code, the others go through", async () => {
    const waiting: (() => void)[] = [];
    const tool = (call: ToolCall, handle: RunHandle): undefined => {
      waiting.push(() => handle.answer(call.callId, { ok: true, value: 1 }));
      if (waiting.length === toolCallsInFlightMax) setTimeout(() => waiting.forEach((answer) => void answer()), 20);
    };
    const code = `calls, codes = [], set()
for i in range(1000):
    try:
        calls.append(services.s.t.start())
    except ToolError as e:
        codes.add((e.code, e.status))
return [sum(gather(calls)), list(codes)]`;
    const result = await runProgram(current(), code, { tool });
    expect(result.output).toEqual({ result: [toolCallsInFlightMax, [["overloaded", 429]]] });
    expect(result.calls.length).toBe(toolCallsInFlightMax);
  });

  it.each([
    ["a circle", "o = {}\no['o'] = o\nservices.a.b(o)"],
    ["bytes", "services.a.b(a=b'x')"],
    ["NaN", "services.a.b(a=float('nan'))"],
    ["30 MB", "services.a.b(a='x' * 30_000_000)"],
    ["nesting of 600 levels", "o = {}\nfor _ in range(600): o = {'o': o}\nservices.a.b(o)"],
    ["a dict and keywords", "services.a.b({}, a=1)"],
    ["two values", "services.a.b(1, 2)"],
  ])("parameters with %s are refused in the program", async (_title, code) => {
    const result = await runProgram(current(), code, { tool: echo, limits: { memoryMb: 128 } });
    expect([ending(result), result.calls.length]).toEqual(["thrown", 0]);
  });

  it("looking at services calls no tool", async () => {
    const code = `import copy, json, pprint
seen = [repr(services), repr(services.a), repr(services.a.b), hasattr(services, '__len__')]
for action in (lambda: list(services), lambda: json.dumps(services), lambda: copy.deepcopy(services.a), lambda: services[1], lambda: pprint.pformat(services)):
    try:
        action()
    except Exception:
        pass
return seen`;
    const result = await runProgram(current(), code, { tool: echo });
    expect([ending(result), result.calls]).toEqual(["success", []]);
    expect(result.output.result).toEqual(["<services>", "<service a>", "<tool a.b>", false]);
  });

  it("an answer nobody waits for is nothing", async () => {
    const tool = (call: ToolCall, handle: RunHandle): ToolAnswer => {
      handle.answer(call.callId + 1000, { ok: true, value: "wrong" });
      handle.answer(call.callId, { ok: true, value: "right" });
      return { ok: true, value: "again" };
    };
    expect((await runProgram(current(), "return services.a.b()", { tool })).output).toEqual({ result: "right" });
  });

  it("runs that end with calls in flight lose nothing, whenever the answers come", async () => {
    const code = "for i in range(20): services.a.b.start(n=i)\nprint('x' * 100000)\nreturn {'done': env['n']}";
    const tool = (call: ToolCall, handle: RunHandle): ToolAnswer | undefined => {
      if (call.callId % 2 === 0) return { ok: true, value: "x".repeat(20_000) };
      setTimeout(() => handle.answer(call.callId, { ok: true, value: 1 }), call.callId % 5);
      return undefined;
    };
    const results = await Promise.all(
      Array.from({ length: 60 }, (_, n) => runProgram(current(), code, { tool, env: { n } })),
    );
    expect(results.filter((result, n) => result.output.done !== n || result.stdout.length !== 100_001)).toEqual([]);
  });

  it("1,000 calls one after another all come back", async () => {
    const code = "return sum(services.a.b(i=i)['parameters']['i'] for i in range(1000))";
    expect((await runProgram(current(), code, { tool: echo })).output).toEqual({ result: 499_500 });
  });
});
