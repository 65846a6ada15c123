/** What the Python executor promises: the contract of test/executor/contract.ts, told in Python. */
import { expect, it } from "vitest";
import { codeCharactersMax } from "../../src/limits.ts";
import { ending, errorOf, megabyte, runProgram } from "./program.ts";
import { describePython } from "./python-machine.ts";

const kept: readonly (readonly [title: string, code: string, output: Record<string, unknown>])[] = [
  ["empty code gives an empty object", "", {}],
  ["a comment gives an empty object", "# nothing", {}],
  ["None gives what was captured", "output({'a': 1})\nreturn None", { a: 1 }],
  [
    "later keys win",
    "output({'a': 1, 'b': 1})\noutput({'b': 2, 'c': {'d': 1}})\noutput({'c': {'e': 2}})",
    { a: 1, b: 2, c: { e: 2 } },
  ],
  ["a returned dict is merged last", "output({'a': 1, 'b': 1})\nreturn {'b': 2}", { a: 1, b: 2 }],
  ["a text is stored as result", "return 'x'", { result: "x" }],
  ["a number is stored as result", "return 1.5", { result: 1.5 }],
  ["False is stored as result", "return False", { result: false }],
  ["a list is stored as result", "return [1, None]", { result: [1, null] }],
  ["a tuple is a list", "return (1, 2)", { result: [1, 2] }],
  ["keys that are numbers become texts", "output({1: 'a', None: 'b', 2.5: 'c'})", { "1": "a", null: "b", "2.5": "c" }],
  ["a subclass of dict is a dict", "import collections\nreturn collections.Counter('aab')", { a: 2, b: 1 }],
  [
    "a lone surrogate becomes a replacement character",
    "return {'a': '\\udfff', '\\ud800': 1}",
    { a: "\ufffd", "\ufffd": 1 },
  ],
  ["a surrogate pair becomes its character", "return {'a': '\\ud83d\\ude00'}", { a: "😀" }],
  ["NUL survives", "return {'a': 'x\\0y'}", { a: "x\0y" }],
  ["sys.exit() is a success", "output({'a': 1})\nimport sys\nsys.exit()", { a: 1 }],
  ["a return inside a loop ends the program", "for i in range(5):\n    if i == 3:\n        return i", { result: 3 }],
  ["env can be stored and is what was given", "return {**env, 'n': env['list'][1]}", { list: [1, 2], n: 2 }],
];

const refused: readonly (readonly [title: string, code: string])[] = [
  ["NaN", "return float('nan')"],
  ["infinity inside", "output({'a': 1, 'b': {'c': float('inf')}})"],
  ["bytes", "return b'x'"],
  ["a set", "return {'a': {1}}"],
  ["a circle", "o = {}\no['o'] = o\nreturn o"],
  ["a function", "return print"],
  ["a date", "import datetime\nreturn datetime.datetime(2020, 1, 1)"],
  ["a key that is a tuple", "return {(1, 2): 3}"],
  ["a text given to output", "output('x')"],
  ["a list given to output", "output([1])"],
  ["nothing given to output", "output()"],
  ["nesting of 600 levels", "o = {}\nfor _ in range(600): o = {'o': o}\nreturn o"],
  ["nesting of 100,000 levels", "o = {}\nfor _ in range(100000): o = {'o': o}\nreturn o"],
];

const thrown: readonly (readonly [code: string, error: string | RegExp])[] = [
  ["raise Exception('broken')", "broken"],
  ["raise ValueError('wrong')", "wrong"],
  ["raise ValueError()", "ValueError"],
  ["raise ValueError", "ValueError"],
  ["assert 1 == 2", "AssertionError"],
  ["{}['x']", "KeyError: 'x'"],
  ["1/0", "division by zero"],
  ["missing", /missing/],
  ["None.x", /NoneType/],
  ["import sys\nsys.exit(3)", "SystemExit: 3"],
  ["import sys\nsys.exit('bad')", "SystemExit: bad"],
  ["raise KeyboardInterrupt", "KeyboardInterrupt"],
  ["raise 5", /BaseException/],
  ["class E(Exception):\n    def __str__(self): raise E()\nraise E()", "E"],
  ["class E(Exception):\n    def __str__(self): return 5\nraise E()", "E"],
  [
    "class M(type):\n    def __getattribute__(c, n): raise ValueError()\nclass E(Exception, metaclass=M): pass\nraise E('x')",
    /./,
  ],
  ["def f(): f()\nf()", /recursion/],
  ["raise Exception('x' * 1000000)", /^x{1000,10000}$/],
  ["raise Exception('\\ud800')", "\ufffd"],
  ["raise Exception('😀' * 10000)", /^(😀){1000,5000}$/u],
  ["import nothing_of_that_name", /nothing_of_that_name/],
  ["env['a'] = 1", "env is read-only"],
  ["env['list'].append(1)", "env is read-only"],
  ["try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise ValueError('second') from e", "second"],
  ["raise ExceptionGroup('many', [ValueError('a'), KeyError('b')])", /many/],
];

const syntax: readonly (readonly [code: string, place: RegExp])[] = [
  ["x = (", /line 1, column 5\b/],
  ["a = 1\n\nb = = 2", /line 3, column 5\b/],
  ["if True:\nx = 1", /line 2\b/],
  ["return 'x", /line 1\b/],
  ["  x = 1\n y = 2", /line 1\b/],
  ["await services.a.b()", /line 1\b.*await/],
  ["yield 1", /yield/],
  ["x = [y async for y in z]", /./],
  ["break", /line 1\b.*break/],
  ["a\0b", /null/],
  ["from os import *", /line 1\b/],
  ["nonlocal x", /line 1\b/],
];

/** Ordinary code, which must not notice that it is the body of a function. */
const ordinary: readonly (readonly [title: string, code: string, result: unknown])[] = [
  ["global means a name of the program", "n = 0\ndef f():\n    global n\n    n += 1\nf()\nreturn n", 1],
  ["nonlocal means a name of the program", "n = 0\ndef f():\n    nonlocal n\n    n += 1\nf()\nreturn n", 1],
  [
    "an annotated name",
    "n: int = 0\nm: str\nif True:\n    k: int = 2\ndef f():\n    global n\n    n += k\nf()\nreturn n",
    2,
  ],
  [
    "a class with annotations",
    "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    y: int = 2\nreturn P(1).y",
    2,
  ],
  ["a comprehension in a class and in a function", "a = [1, 2]\nreturn [x for x in a if x in [y for y in a]]", [1, 2]],
  ["exec and eval see names", "x = 2\nexec('y = x + 1')\nreturn eval('x + y')", 5],
  ["an import from __future__", "from __future__ import annotations\nreturn 1", 1],
  ["a docstring", '"""What it does"""\nreturn 1', 1],
  ["a text over several lines keeps its indentation", 'def f():\n    return """a\n  b"""\nreturn f()', "a\n  b"],
  ["match", "match {'k': 1}:\n    case {'k': v}:\n        return v", 1],
  ["try with finally", "try:\n    return 1\nfinally:\n    print('x')", 1],
  ["carriage returns", "x = 1\r\nreturn x\r\n", 1],
  ["main is main", "return __name__", "__main__"],
  [
    "pickle of a class of the program",
    "import pickle\nclass A:\n    pass\nreturn type(pickle.loads(pickle.dumps([1]))).__name__",
    "list",
  ],
  [
    "libraries that are not loaded ahead",
    "import sqlite3, ipaddress, tomllib\nreturn ipaddress.ip_address('::1').version",
    6,
  ],
  [
    "time zones",
    "import zoneinfo, datetime\nreturn datetime.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin')).utcoffset().seconds",
    7200,
  ],
  [
    "hashes, decimals, patterns",
    "import hashlib, decimal, re\nreturn [hashlib.sha256(b'').hexdigest()[:6], str(decimal.Decimal('0.1') * 3), re.sub('a+', 'b', 'caat')]",
    ["e3b0c4", "0.3", "cbt"],
  ],
];

describePython("Python executor", (current) => {
  it.each(kept)("%s", async (_title, code, output) => {
    const result = await runProgram(current(), code, { env: { list: [1, 2] } });
    expect([ending(result), result.output, result.started, result.ends]).toEqual(["success", output, 1, 1]);
  });

  it.each(ordinary)("ordinary code: %s", async (_title, code, value) => {
    const result = await runProgram(current(), code);
    expect([errorOf(result), result.output]).toEqual(["", { result: value }]);
  });

  it.each(refused)("%s fails with a reason, and what was captured before stays", async (_title, code) => {
    const result = await runProgram(current(), `output({'before': 1})\n${code}`);
    expect([ending(result), result.output, result.stderr]).toEqual(["thrown", { before: 1 }, expect.any(String)]);
    expect(errorOf(result)).toMatch(/^[A-Z]|output\(\)/);
  });

  it.each(thrown)("%j fails as thrown", async (code, error) => {
    const result = await runProgram(current(), code, { env: { list: [1] } });
    expect([ending(result), result.started, result.ends]).toEqual(["thrown", 1, 1]);
    if (typeof error === "string") expect(errorOf(result)).toBe(error);
    else expect(errorOf(result)).toMatch(error);
  });

  it.each(syntax)("%j fails as syntax, naming the place", async (code, place) => {
    const result = await runProgram(current(), code);
    expect(ending(result)).toBe("syntax");
    expect(errorOf(result)).toMatch(place);
  });

  it.each([
    ["parentheses", "("],
    ["brackets", "["],
    ["lambdas", "lambda:"],
    ["negations", "-"],
    ["nots", "not "],
    ["powers", "1**"],
    ["calls", "f(*"],
    ["attributes", "a."],
    ["conditions", "1 if 1 else "],
    ["formatted texts", "f'{"],
    ["additions", "1+"],
  ])("source nested with %s ends its own run only", async (_title, piece) => {
    const code = `${piece.repeat(Math.floor((codeCharactersMax - 1) / piece.length))}1`;
    const [bomb, beside] = await Promise.all([
      runProgram(current(), code, { stopAfterMs: 5_000 }),
      runProgram(current(), "import time\ntime.sleep(0.3)\nreturn 1"),
    ]);
    expect(["syntax", "stopped", "memory", "success", "thrown"]).toContain(ending(bomb));
    expect(beside.output).toEqual({ result: 1 });
  });

  it("a traceback names the submitter's own lines, and no file of ours", async () => {
    const code = "\n\ndef inner():\n    raise ValueError('deep')\n\ninner()";
    const result = await runProgram(current(), code);
    expect(result.stderr).toMatch(
      /^Traceback .*\n {2}File "<process>", line 6, in <module>\n.*\n(?:.*\n)? {2}File "<process>", line 4, in inner\n/,
    );
    expect(result.stderr).toContain("raise ValueError('deep')");
    expect(result.stderr).not.toMatch(/troupe|zygote|program\.py/);
    const called = await runProgram(current(), "output({'a': {1}})");
    expect(called.stderr).toMatch(
      /^Traceback .*\n {2}File "<process>", line 1, in <module>\n.*\n.*\n?TypeError: Cannot store/,
    );
  });

  it("a traceback longer than what is left of stderr does not become the reason", async () => {
    const code = "import sys\nsys.stderr.write('x' * 900)\nraise ValueError('y' * 300)";
    const result = await runProgram(current(), code, { limits: { outputBytes: 1000 } });
    expect([ending(result), result.stderr.length]).toEqual(["thrown", 1000]);
  });

  it("code of the largest size runs, whatever its characters", async () => {
    for (const character of ["a", "é", "𝒳"]) {
      const result = await runProgram(current(), `return len('${character.repeat(codeCharactersMax - 20)}')`);
      expect(result.output).toEqual({ result: codeCharactersMax - 20 });
    }
  });

  it("print goes to stdout and sys.stderr to stderr, as text comes", async () => {
    const result = await runProgram(
      current(),
      "import sys\nprint('a', 1)\nprint('b', file=sys.stderr)\nprint('é😀', end='')",
    );
    expect([result.stdout, result.stderr]).toEqual(["a 1\né😀", "b\n"]);
  });

  it("what a stopped program gave so far is kept", async () => {
    const code = "import sys\noutput({'a': 1})\nprint('x')\nprint('y', file=sys.stderr)\nwhile True: pass";
    const result = await runProgram(current(), code, { stopAfterMs: 150 });
    expect([ending(result), result.output, result.stdout, result.stderr]).toEqual(["stopped", { a: 1 }, "x\n", "y\n"]);
  });

  it("stdout over its limit is cut between characters and ends the run", async () => {
    const result = await runProgram(current(), "print('é' * 600)", { limits: { outputBytes: 1001 } });
    expect([ending(result), result.stdout]).toEqual(["output_too_large", "é".repeat(500)]);
  });

  it("stderr and output have the same limit, each of its own", async () => {
    const limits = { outputBytes: 1000 };
    const fits = "import sys\nprint('x' * 900)\nprint('y' * 900, file=sys.stderr)\nreturn {'z': 'z' * 900}";
    expect(ending(await runProgram(current(), fits, { limits }))).toBe("success");
    const error = await runProgram(current(), "import sys\nprint('y' * 1001, file=sys.stderr)", { limits });
    expect([ending(error), error.stderr.length]).toEqual(["output_too_large", 1000]);
    const output = await runProgram(current(), "output({'a': 1})\noutput({'b': 'x' * 1000})", { limits });
    expect([ending(output), output.output]).toEqual(["output_too_large", { a: 1 }]);
    const many = await runProgram(current(), "output({'a': 1})\noutput({'b': 'x' * 600})\noutput({'c': 'x' * 600})", {
      limits,
    });
    expect([ending(many), Object.keys(many.output)]).toEqual(["output_too_large", ["a", "b"]]);
  });

  it("catching everything does not escape from an output that is too large", async () => {
    const code = "try:\n    output({'a': 'x' * 2000})\nexcept BaseException:\n    pass\nreturn 1";
    const result = await runProgram(current(), code, { limits: { outputBytes: 1000 } });
    expect([ending(result), result.output]).toEqual(["output_too_large", {}]);
  });

  it("a structured output of 200 MB is refused", async () => {
    const result = await runProgram(current(), "return {'a': 'x' * 200_000_000}", { limits: { memoryMb: 128 } });
    expect(["output_too_large", "memory"]).toContain(ending(result));
  });

  it("a hundred thousand prints arrive in order", async () => {
    const result = await runProgram(current(), "for i in range(100000): print(i)", {
      limits: { outputBytes: 2 * megabyte },
    });
    expect(result.stdout).toBe(Array.from({ length: 100_000 }, (_, line) => `${line}\n`).join(""));
  });

  it("a flood of prints is capped, and the server does not grow with it", async () => {
    const before = process.memoryUsage().rss;
    const result = await runProgram(current(), "while True: print('x' * 1000)", { stopAfterMs: 15_000 });
    expect([ending(result), result.stdout.length]).toEqual(["output_too_large", megabyte]);
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * megabyte);
  });

  it("100 runs that print 1 MB and end at once lose nothing", async () => {
    const code = "output({'n': env['n']})\nprint('x' * 1000000)\nreturn {'done': True}";
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        runProgram(current(), code, { env: { n }, limits: { outputBytes: 2 * megabyte } }),
      ),
    );
    expect(
      results.filter(({ stdout, output }, n) => stdout.length !== 1e6 + 1 || output.n !== n || output.done !== true),
    ).toEqual([]);
  }, 60_000);

  it("random is seeded by the host, and a seed gives the same run again", async () => {
    const code = "import random\nreturn [random.random(), random.randint(1, 10**9)]";
    const [one, same, other] = await Promise.all([7, 7, 8].map((seed) => runProgram(current(), code, { seed })));
    expect(one?.output).toEqual(same?.output);
    expect(one?.output).not.toEqual(other?.output);
    const uuids = await Promise.all([1, 1].map(() => runProgram(current(), "import uuid\nreturn str(uuid.uuid4())")));
    expect(uuids[0]?.output).not.toEqual(uuids[1]?.output);
  });

  it("nothing is left over from another run", async () => {
    const first =
      "import builtins, json, sys\nbuiltins.left = 1\njson.left = 2\nsys.modules['left'] = 3\nenv_left = 4\nreturn 1";
    await runProgram(current(), first);
    const second =
      "import builtins, json, sys\nreturn [hasattr(builtins, 'left'), hasattr(json, 'left'), 'left' in sys.modules, 'env_left' in globals()]";
    expect((await runProgram(current(), second)).output).toEqual({ result: [false, false, false, false] });
  });

  it("a limit of CPU time ends a program that computes, not one that waits", async () => {
    const limits = { cpuMs: 300 };
    for (const busy of ["while True: pass", "9**9**8", "import signal\nsignal.setitimer(signal.ITIMER_PROF, 0)"]) {
      const result = await runProgram(current(), `${busy}\nwhile True: pass`, { limits, stopAfterMs: 15_000 });
      expect([ending(result), errorOf(result)]).toEqual(["thrown", expect.stringMatching(/CPU|permitted/)]);
    }
    const idle = await runProgram(current(), "import time\ntime.sleep(0.6)\nreturn 1", { limits });
    expect(ending(idle)).toBe("success");
  });
});
