/** SIGTERM under load, several rounds: exit 0 within the limit, and what was acknowledged is there afterwards. */
import { afterAll, describe, expect, it } from "vitest";
import { newFolder, removeFolder, startServer } from "./server.ts";

const rounds = 3;
const folder = await newFolder();
afterAll(() => removeFolder(folder));

describe("draining under load", () => {
  it("loses no acknowledged write and cuts no call that was admitted", { timeout: 180_000 }, async () => {
    const acknowledged: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const server = await startServer({ folder });
      let stopping = false;
      const cut: unknown[] = [];
      const writers = Array.from({ length: 16 }, async () => {
        while (!stopping) {
          try {
            const { status, body } = await server.post("/processes", { code: "return 1" });
            if (status === 200) acknowledged.push(body.id);
            else expect(status).toBe(503);
          } catch (error) {
            // A connection refused because nobody listens any more was never admitted; one that was reset may have been.
            const code = (error as { cause?: { code?: string } }).cause?.code;
            if (code === "ECONNREFUSED") return;
            cut.push(code);
          }
        }
      });
      await new Promise((resolve) => setTimeout(resolve, 500));
      const started = Date.now();
      const code = await server.kill("SIGTERM");
      expect(code, server.lines.slice(-15).join("\n")).toBe(0);
      stopping = true;
      await Promise.all(writers);
      expect(Date.now() - started).toBeLessThan(20_000);
      // Keep-alive connections end with the server; the request a client was about to send on one is not an admitted call.
      expect(cut.filter((code) => code !== "ECONNRESET" && code !== "UND_ERR_SOCKET")).toEqual([]);
    }
    const server = await startServer({ folder });
    for (const id of acknowledged) expect((await server.get(`/processes/${id}?wait=30`)).status).toBe(200);
    expect(acknowledged.length).toBeGreaterThan(rounds * 10);
    await server.kill("SIGTERM");
  });

  it("ends event streams at once, and does not wait for whoever follows them", { timeout: 60_000 }, async () => {
    const server = await startServer();
    const { body } = await server.post("/processes", { code: "return 1", autorun: false });
    const streams = await Promise.all(
      [`/processes/${body.id}/events`, "/logs/stream"].map((path) => fetch(server.http + path)),
    );
    const ends = Promise.all(streams.map((stream) => stream.text()));
    const started = Date.now();
    expect(await server.kill("SIGTERM")).toBe(0);
    expect(Date.now() - started).toBeLessThan(5_000);
    for (const text of await ends) expect(text).toMatch(/event: error\ndata: \{"error":"The server is shutting down"/);
  });
});
