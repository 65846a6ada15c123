/** `troupe processes` against a real server: what it prints for people and for programs, on terminals and into files, and how it ends. */

import { writeFile } from "node:fs/promises";
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CliBench, openCliBench } from "./cli-bench.ts";

let bench: CliBench;

beforeAll(async () => {
  bench = await openCliBench();
});

afterAll(() => bench.close());

describe("processes", () => {
  it("run gives what the program returns, and what it prints apart", async () => {
    const hello = bench.file("hello.ts");
    await writeFile(
      hello,
      "console.log('thinking'); console.error('doubting'); return { hello: env.name, more: env.more };",
    );
    const answer = await bench.troupe([
      "processes",
      "run",
      hello,
      "--env",
      "name=a=b",
      "--env-config",
      '{"more":[1]}',
      "--ref",
      "greeting",
    ]);
    expect(answer).toEqual({
      exitCode: 0,
      stdout: '{\n  "hello": "a=b",\n  "more": [\n    1\n  ]\n}\n',
      stderr: "thinking\ndoubting\n",
    });
    const whole = await bench.troupe(["processes", "run", "-", "--json"], {
      stdin: "console.log('in'); return { is: 'stdin' };",
    });
    expect(JSON.parse(whole.stdout)).toMatchObject({
      process: { id: 2, exitState: "success" },
      output: { is: "stdin" },
      stdout: "in\n",
      stderr: "",
    });
    expect(whole.stderr).toBe("");
  });

  it("run ends with 2 when the program fails or is out of time, and says why", async () => {
    const failed = await bench.troupe(["processes", "run", "-"], { stdin: "throw new Error('no luck')" });
    expect(failed.exitCode).toBe(2);
    expect(failed.stderr).toMatch(/Process 3 ended with failed: .*no luck/);
    const late = await bench.troupe(["processes", "run", "-", "--timeout", "100ms"], {
      stdin: "await new Promise((done) => setTimeout(done, 120_000))",
    });
    expect(late).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("ended with timeout") });
  });

  it("run --watch tells what happens as it happens", async () => {
    const code =
      "console.log('one'); await new Promise((done) => setTimeout(done, 50)); console.log('two'); return { three: 3 };";
    const watched = await bench.troupe(["processes", "run", "-", "--watch"], { stdin: code });
    expect(watched).toMatchObject({ exitCode: 0, stdout: '{\n  "three": 3\n}\n' });
    expect(watched.stderr).toMatch(/^· process 5\n[\s\S]*· running\none\ntwo\n[\s\S]*· idle\n$/);
    const lines = (await bench.troupe(["processes", "run", "-", "--watch", "--json"], { stdin: code })).stdout
      .trim()
      .split("\n");
    const events = lines.map((line) => JSON.parse(line));
    expect(events.map(({ kind }) => kind)).toContain("output");
    expect(events.at(-1)).toMatchObject({ kind: "state", state: "idle" });
  });

  it("are listed, newest first, filtered and limited, for people and for programs", async () => {
    const table = (await bench.said("processes list --limit 2")).trimEnd().split("\n");
    expect(table[0]).toMatch(/^ID +STATE +EXIT +CREATED +REF +ERROR$/);
    expect(table).toHaveLength(3);
    expect((await bench.json("processes list --exit-state failed")).map(({ id }: { id: number }) => id)).toEqual([3]);
    expect(await bench.json("processes list --ref greeting --state idle")).toHaveLength(1);
    expect(await bench.said("processes list --ref nothing --json")).toBe("[]\n");
    expect(await bench.troupe("processes list --ref nothing")).toEqual({
      exitCode: 0,
      stdout: "",
      stderr: "Nothing to list\n",
    });
  });

  it("are listed over more than a page", async () => {
    const ids = Array.from({ length: 130 }, (_, at) => at);
    for (const part of [ids.slice(0, 65), ids.slice(65)]) {
      await Promise.all(part.map(() => bench.post("/processes", { code: "", ref: "many", autorun: false })));
    }
    const listed = await bench.json("processes list --ref many");
    expect(new Set(listed.map(({ id }: { id: number }) => id)).size).toBe(130);
    expect(await bench.json("processes list --ref many --limit 110")).toHaveLength(110);
  });

  it("are shown: get, output, code, logs", async () => {
    expect(await bench.said("processes get 1")).toMatch(/^id +1\n[\s\S]*exit state +success\n/);
    expect(await bench.json("processes get 3 --wait 1")).toMatchObject({
      id: 3,
      exitState: "failed",
      error: expect.stringContaining("no luck"),
    });
    expect(JSON.parse(await bench.said("processes output 1 --wait 5"))).toEqual({ hello: "a=b", more: [1] });
    expect(await bench.said("processes code 2")).toContain("return { is: 'stdin' };");
    expect(await bench.troupe("processes logs 1")).toEqual({ exitCode: 0, stdout: "thinking\n", stderr: "doubting\n" });
    expect(await bench.json("processes logs 1")).toEqual({ id: 1, stdout: "thinking\n", stderr: "doubting\n" });
    expect(await bench.troupe("processes logs 1 --follow")).toEqual({
      exitCode: 0,
      stdout: "thinking\n",
      stderr: "doubting\n",
    });
  });

  it("are left alone, followed until Ctrl-C, killed, started, unloaded and deleted", async () => {
    const endless = "console.log('begun'); await new Promise((done) => setTimeout(done, 120_000))";
    const id = (
      await bench.said(["processes", "run", "-", "--detach", "--timeout", "none"], { stdin: endless })
    ).trim();
    const followed = await bench.troupe(`processes logs ${id} --follow`, { interruptAt: /begun/ });
    expect(followed).toEqual({ exitCode: 130, stdout: "begun\n", stderr: "" });
    expect(await bench.said(`processes kill ${id}`)).toBe(`Process ${id} is killed\n`);
    expect(await bench.json(`processes get ${id} --wait 10`)).toMatchObject({ state: "idle", exitState: "canceled" });
    expect(await bench.said(`processes start ${id} --force`)).toBe(`Process ${id} is started\n`);
    expect(await bench.json(`processes kill ${id}`)).toMatchObject([{ id: Number(id) }]);
    await bench.said(`processes get ${id} --wait 10`);
    expect(await bench.said(`processes unload ${id}`)).toBe(`Process ${id} is unloaded\n`);
    expect(await bench.said(`processes delete ${id} 3`)).toBe(`Process ${id} is deleted\nProcess 3 is deleted\n`);
    expect(await bench.troupe(`processes get ${id}`)).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: `There is no process ${id} (not_found)\n`,
    });
  });

  it("are left running by a Ctrl-C while they are waited for, which says so", async () => {
    const code = "console.log('x'); await new Promise((done) => setTimeout(done, 120_000))";
    const { exitCode, stderr } = await bench.troupe(["processes", "run", "-", "--watch", "--json"], {
      stdin: code,
      interruptAt: /"stdout"/,
    });
    expect(exitCode).toBe(130);
    const [, id] = /^Process (\d+) goes on; `troupe processes kill \1` ends it\n$/.exec(stderr) ?? [];
    expect((await bench.json(`processes get ${id}`)).state).toBe("running");
    await bench.said(`processes kill ${id}`);
  });

  it("are watched, with each change", async () => {
    const watching = bench.troupe("processes list --ref watched --watch", { interruptAt: /changed.* idle +success/ });
    const { exitCode, stdout, stderr } = await bench.repeating(
      () => bench.post("/processes", { code: "", ref: "watched" }),
      watching,
    );
    expect({ exitCode, stderr }).toEqual({ exitCode: 130, stderr: "" });
    expect(stdout).toMatch(/^CHANGE +ID +STATE/);
  });

  it("print nothing on a terminal that it would obey, and everything as it is into a file", async () => {
    const code = "console.log('\\u001b]0;owned\\u0007\\u009b2J'); return { text: '\\u001b[31m\\u009b' };";
    const shown = await bench.troupe(["processes", "run", "-"], {
      stdin: code,
      columns: 80,
      environment: { NO_COLOR: "1" },
    });
    expect(shown.stderr).toContain("\\x1b]0;owned\\x07\\x9b2J\n");
    expect(shown.stdout + shown.stderr).not.toMatch(/[\p{Cc}--\n]/v);
    const [{ id }] = await bench.json("processes list --limit 1");
    expect(await bench.said(`processes logs ${id}`)).toBe("\u001b]0;owned\u0007\u009b2J\n");
  });

  it.each([["status"], ["diagnostics"], ["processes list"], ["modules list"], ["logs --lines 5"]])(
    "has its styles as styles on a terminal, also one that does not know its width: %s",
    async (line) => {
      for (const columns of [0, 80]) {
        const said = await bench.said(line, { columns });
        expect(said).toContain("\u001b[");
        expect(said).not.toContain("\\x1b");
        expect(stripVTControlCharacters(said)).not.toMatch(/^…/m);
      }
    },
  );

  it("are in colour on a terminal that wants it, and cut to its width", async () => {
    const coloured = await bench.said("processes list --limit 3", { columns: 40 });
    expect(coloured.startsWith("\u001b[1m")).toBe(true);
    const plain = await bench.said("processes list --limit 3", { columns: 40, environment: { NO_COLOR: "1" } });
    for (const line of plain.split("\n")) expect(line.length).toBeLessThanOrEqual(40);
    expect(plain).not.toContain("\u001b");
  });
});
