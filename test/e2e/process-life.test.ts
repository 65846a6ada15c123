/** The life of processes over REST, against the real server: real children, real LevelDB. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { removeFolder, type Server, startServer } from "./server.ts";

let server: Server;

beforeAll(async () => {
  server = await startServer();
});

afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolder(server.folder);
});

const endless = "for (;;) {}";

async function runningProcess(code = endless, more = {}): Promise<number> {
  const { body } = await server.post("/processes", { code, timeoutMs: null, ...more });
  for (let look = 0; look < 200; look++) {
    if ((await server.get(`/processes/${body.id}`)).body.state === "running") return body.id;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error("The process does not start");
}

describe("POST /processes", () => {
  it("answers exactly the id, and later ids are larger", async () => {
    const first = await server.post("/processes", { code: "output({ a: 1 })" });
    expect(first.status).toBe(200);
    expect(Object.keys(first.body)).toEqual(["id"]);
    const second = await server.post("/processes", { code: "" });
    expect(second.body.id).toBeGreaterThan(first.body.id);
  });

  const refused: Record<string, unknown> = {
    "without code": {},
    "with a number as code": { code: 123 },
    "with 102,401 characters": { code: "a".repeat(102_401) },
    "with a blank ref": { code: "", ref: "   " },
    "with an empty ref": { code: "", ref: "" },
    "with a number as ref": { code: "", ref: 42 },
    "with a lone surrogate in ref": '{"code":"","ref":"\\ud800"}',
    "with NUL in ref": { code: "", ref: "a\u0000b" },
    "with NUL in code": { code: "1;\u0000" },
    "with a lone surrogate in code": '{"code":"\\udfff"}',
    "with timeoutMs 0": { code: "", timeoutMs: 0 },
    "with timeoutMs -1": { code: "", timeoutMs: -1 },
    "with timeoutMs as text": { code: "", timeoutMs: "1000" },
    "with timeoutMs true": { code: "", timeoutMs: true },
    "with envConfig as text": { code: "", envConfig: "x" },
    "with envConfig as array": { code: "", envConfig: [] },
    "with envConfig null": { code: "", envConfig: null },
    "with autorun as text": { code: "", autorun: "yes" },
    "with an array as body": [],
    "with a text as body": '"code"',
    "with null as body": "null",
    "with broken JSON": '{"code":',
    "with nothing": "",
  };
  for (const [what, body] of Object.entries(refused)) {
    it(`${what} is 400 in the envelope`, async () => {
      const { status, body: answer } = await server.post("/processes", body);
      expect(status, JSON.stringify(answer)).toBe(400);
      expect(answer).toEqual({ error: expect.stringMatching(/^[A-Z].*[^.]$/), code: "invalid_request" });
    });
  }

  it("names the field at fault", async () => {
    expect((await server.post("/processes", { code: 1 })).body.error).toContain("code");
    expect((await server.post("/processes", { code: "", ref: " " })).body.error).toContain("ref");
  });

  it("ignores unknown keys", async () => {
    expect((await server.post("/processes", { code: "", colour: "red" })).status).toBe(200);
  });

  it.each([
    ["102,400 ASCII characters", "a".repeat(102_398)],
    ["102,400 accented characters", "é".repeat(102_398)],
    ["102,400 astral characters", "𝒳".repeat(102_398)],
  ])("takes %s", async (_, text) => {
    const process = await server.run(`"${text}"`);
    expect(process.exitState).toBe("success");
  });

  it("takes 102,400 characters written as JSON escapes", async () => {
    const body = `{"code":"${"\\u0020".repeat(102_400)}"}`;
    expect((await server.post("/processes", body)).status).toBe(200);
  });

  it.each([2_147_483_647, 2_147_483_648, 3_000_000_000, 1e12, 1.7e308, null])(
    "a timeout of %s does not end a short program",
    async (timeoutMs) => {
      expect((await server.run("await new Promise((r) => setTimeout(r, 50))", { timeoutMs })).exitState).toBe(
        "success",
      );
    },
  );

  it.each([0.4, 1.5, 50])("a timeout of %s ms ends an endless program, which stays timed out", async (timeoutMs) => {
    const process = await server.run(endless, { timeoutMs });
    expect(process).toMatchObject({ state: "idle", exitState: "timeout" });
    expect(process.error).toContain(`${timeoutMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect((await server.get(`/processes/${process.id}`)).body).toMatchObject({ exitState: "timeout" });
  });

  it("keeps the code byte for byte, readable in any state", async () => {
    const code = "// line one\r\nreturn 'é𝒳'\n";
    const { body } = await server.post("/processes", { code, autorun: false });
    const answer = await server.get(`/processes/${body.id}/code`);
    expect(answer.text).toBe(code);
    expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  });
});

describe("a snapshot", () => {
  it("has the fields of the API document and no others", async () => {
    const process = await server.run("", { ref: "  job-1 " });
    expect(Object.keys(process).sort()).toEqual(
      ["completedAt", "createdAt", "error", "exitState", "id", "pid", "ref", "state"].sort(),
    );
    expect(process.ref).toBe("job-1");
    expect(Date.parse(process.completedAt)).toBeGreaterThanOrEqual(Date.parse(process.createdAt));
    expect("ref" in (await server.run(""))).toBe(false);
  });

  it.each(["0", "-1", "abc", "%20", "12abc", "1.0", "01", "1e3", "9007199254740993"])("of id %s is 400", async (id) => {
    expect((await server.get(`/processes/${id}`)).status).toBe(400);
  });

  it("of an unknown process is 404 on every route", async () => {
    for (const [method, path] of [
      ["GET", ""],
      ["GET", "/output"],
      ["GET", "/code"],
      ["GET", "/stdout"],
      ["GET", "/stderr"],
      ["DELETE", ""],
      ["POST", "/signals/run"],
      ["POST", "/signals/kill"],
      ["POST", "/signals/unload"],
    ] as const) {
      const answer = await server.call(method, `/processes/999999${path}`, method === "POST" ? {} : undefined);
      expect([path, answer.status, answer.body.code]).toEqual([path, 404, "not_found"]);
    }
  });
});

describe("a process that waits for its run signal", () => {
  it("is idle with empty results, runs once told to, and needs force to run again", async () => {
    const { body } = await server.post("/processes", { code: "output({ n: Math.random() })", autorun: false });
    const path = `/processes/${body.id}`;
    expect((await server.get(path)).body).toMatchObject({
      state: "idle",
      exitState: null,
      error: null,
      completedAt: null,
    });
    expect((await server.get(`${path}/output`)).body).toEqual({});
    expect((await server.get(`${path}/stdout`)).text).toBe("");
    const ran = await server.post(`${path}/signals/run`);
    expect(ran.status).toBe(200);
    expect(["queued", "running"]).toContain(ran.body.state);
    expect((await server.get(`${path}?wait=30`)).body.exitState).toBe("success");
    const first = (await server.get(`${path}/output`)).body;
    const again = await server.post(`${path}/signals/run`);
    expect([again.status, again.body.code]).toEqual([400, "refused"]);
    const forced = await server.post(`${path}/signals/run`, { force: true });
    expect(forced.body).toMatchObject({ exitState: null, error: null, completedAt: null });
    await server.get(`${path}?wait=30`);
    expect((await server.get(`${path}/output`)).body).not.toEqual(first);
  });

  it("that failed without output needs force too", async () => {
    const process = await server.run("throw new Error('boom')");
    expect((await server.post(`/processes/${process.id}/signals/run`)).status).toBe(400);
  });

  it.each([{ force: "yes" }, "text", [1]])("is not run by a body of %j", async (body) => {
    const { body: created } = await server.post("/processes", { code: "", autorun: false });
    expect((await server.post(`/processes/${created.id}/signals/run`, JSON.stringify(body))).status).toBe(400);
  });
});

describe("a running process", () => {
  it("shows what it printed so far, and refuses to be run, deleted or unloaded, and to show output", async () => {
    const id = await runningProcess("console.log('so far'); await new Promise((r) => setTimeout(r, 60000))");
    for (let look = 0; look < 100 && (await server.get(`/processes/${id}/stdout`)).text === ""; look++) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect((await server.get(`/processes/${id}/stdout`)).text).toBe("so far\n");
    expect((await server.get(`/processes/${id}/output`)).status).toBe(409);
    expect((await server.post(`/processes/${id}/signals/run`)).status).toBe(409);
    expect((await server.post(`/processes/${id}/signals/unload`)).status).toBe(409);
    expect((await server.call("DELETE", `/processes/${id}`)).status).toBe(409);
    const killed = await server.post(`/processes/${id}/signals/kill`);
    expect(killed.body.state).toBe("terminating");
    const ended = (await server.get(`/processes/${id}?wait=10`)).body;
    expect(ended).toMatchObject({ state: "idle", exitState: "canceled", error: null });
    expect((await server.get(`/processes/${id}/stdout`)).text).toBe("so far\n");
    expect((await server.post(`/processes/${id}/signals/kill`)).status).toBe(409);
  });

  it("that never yields is killed all the same, within the bound", async () => {
    const id = await runningProcess();
    const started = Date.now();
    await server.post(`/processes/${id}/signals/kill`);
    expect((await server.get(`/processes/${id}?wait=10`)).body.exitState).toBe("canceled");
    expect(Date.now() - started).toBeLessThan(5_000);
  });
});

describe("memory and records", () => {
  it("unload keeps the record and gives up the pid; a later run gets a new one", async () => {
    const process = await server.run("output({ kept: true })");
    const path = `/processes/${process.id}`;
    const unloaded = await server.post(`${path}/signals/unload`);
    expect([unloaded.status, unloaded.body.pid]).toEqual([200, null]);
    expect((await server.get(path)).body.pid).toBeNull();
    expect((await server.get(`${path}/output`)).body).toEqual({ kept: true });
    expect((await server.post(`${path}/signals/unload`)).status).toBe(409);
    const again = await server.post(`${path}/signals/run`, { force: true });
    expect(again.body.pid).toBeGreaterThan(process.pid);
    await server.get(`${path}?wait=30`);
  });

  it("delete answers the last snapshot, and then it is gone with everything", async () => {
    const process = await server.run("output({ a: 1 })");
    const deleted = await server.call("DELETE", `/processes/${process.id}`);
    expect([deleted.status, deleted.body]).toEqual([200, process]);
    expect((await server.get(`/processes/${process.id}`)).status).toBe(404);
    expect((await server.get(`/processes/${process.id}/output`)).status).toBe(404);
  });
});

describe("the list of processes", () => {
  it("is newest first, walks every process once in pages of any size, and filters", async () => {
    const ref = "listed";
    const ids: number[] = [];
    for (let number = 0; number < 12; number++) {
      ids.unshift((await server.post("/processes", { code: "", ref, autorun: false })).body.id);
    }
    for (const limit of [1, 5, 100]) {
      const seen: number[] = [];
      let cursor: string | null = null;
      do {
        const at: string = cursor === null ? "" : `&cursor=${cursor}`;
        const { body } = await server.get(`/processes?ref=${ref}&limit=${limit}${at}`);
        expect(body.hasMore).toBe(body.nextCursor !== null);
        seen.push(...body.items.map(({ id }: { id: number }) => id));
        cursor = body.nextCursor;
      } while (cursor !== null);
      expect(seen).toEqual(ids);
    }
    const { body: finished } = await server.get("/processes?exitState=success&limit=100");
    expect(new Set(finished.items.map(({ exitState }: { exitState: string }) => exitState))).toEqual(
      new Set(["success"]),
    );
    const { body: never } = await server.get(`/processes?exitState=null&ref=${ref}&limit=100`);
    expect(never.items).toHaveLength(12);
    expect((await server.get(`/processes?state=running&ref=${ref}`)).body.items).toEqual([]);
  });

  it.each([
    "state=bogus",
    "exitState=bogus",
    "ref=",
    "ref=%20",
    "limit=0",
    "limit=1e2",
    "limit=-1",
    "limit=",
    "state=idle&state=idle",
  ])("with %s is 400", async (query) => {
    expect((await server.get(`/processes?${query}`)).status).toBe(400);
  });

  it("clamps a large limit and tells apart broken and foreign cursors", async () => {
    expect((await server.get("/processes?limit=100000")).status).toBe(200);
    expect((await server.get("/processes?cursor=%25%25")).body.code).toBe("invalid_cursor");
    const foreign = Buffer.from('{"v":2,"k":[1,2]}').toString("base64url");
    expect((await server.get(`/processes?cursor=${foreign}`)).body.code).toBe("cursor_expired");
  });
});

describe("waiting", () => {
  it("returns as soon as the process is idle, or after the seconds, and never disturbs the run", async () => {
    const id = await runningProcess("await new Promise((r) => setTimeout(r, 1500)); return 1");
    const early = await server.get(`/processes/${id}?wait=0`);
    expect(early.body.state).toBe("running");
    const aborted = new AbortController();
    const gone = fetch(`${server.http}/processes/${id}?wait=30`, { signal: aborted.signal }).catch(() => "gone");
    setTimeout(() => aborted.abort(), 100);
    expect(await gone).toBe("gone");
    const started = Date.now();
    expect((await server.get(`/processes/${id}?wait=30`)).body.exitState).toBe("success");
    expect(Date.now() - started).toBeLessThan(10_000);
    expect((await server.get(`/processes/${id}/output?wait=5`)).body).toEqual({ result: 1 });
  });

  it.each(["abc", "-1", "1.5"])("of %s seconds is 400", async (seconds) => {
    expect((await server.get(`/processes/1?wait=${seconds}`)).status).toBe(400);
  });
});
