/**
 * SIGTERM under load over both faces, several rounds: exit 0 within the limit, what was acknowledged is there afterwards, and nothing that is
 * there went unacknowledged. TROUPE_DRAIN_ROUNDS sets the number of rounds (2 here; the long script runs 50).
 */
import grpc from "@grpc/grpc-js";
import { afterAll, describe, expect, it } from "vitest";
import { openForeignClient } from "./foreign-client.ts";
import { newFolder, removeFolder, type Server, startServer } from "./server.ts";

const rounds = Number(process.env.TROUPE_DRAIN_ROUNDS ?? 2);
const folder = await newFolder();
afterAll(() => removeFolder(folder));

describe("draining under load", () => {
  it("loses no acknowledged write and cuts no call that was admitted", { timeout: rounds * 60_000 }, async () => {
    const acknowledged = new Set<number>();
    for (let round = 0; round < rounds; round++) {
      const server = await startServer({ folder });
      const client = await openForeignClient(server.grpc);
      let stopping = false;
      const broken: unknown[] = [];
      const overRest = async (): Promise<boolean> => {
        try {
          const { status, body } = await server.post("/processes", { code: "return 1" });
          if (status === 200) acknowledged.add(body.id);
          else expect(status).toBe(503);
          return true;
        } catch (error) {
          const code = (error as { cause?: { code?: string } }).cause?.code;
          if (code === "ECONNREFUSED") return false;
          // A kept connection ended while a request was being sent on it; whether it was admitted shows in what is stored.
          if (code !== "ECONNRESET" && code !== "UND_ERR_SOCKET") broken.push(error);
          return true;
        }
      };
      const overGrpc = async (): Promise<boolean> => {
        try {
          const { id } = (await client.call("ProcessService", "CreateProcess", { code: "return 1" })) as { id: string };
          acknowledged.add(Number(id));
          return true;
        } catch (error) {
          if ((error as grpc.ServiceError).code !== grpc.status.UNAVAILABLE) broken.push(error);
          return false;
        }
      };
      const writers = Array.from({ length: 16 }, async (_, writer) => {
        const write = writer % 2 === 0 ? overRest : overGrpc;
        while (!stopping && (await write()));
      });
      await new Promise((resolve) => setTimeout(resolve, 500));
      const started = Date.now();
      const code = await server.kill("SIGTERM");
      expect(code, server.lines.slice(-15).join("\n")).toBe(0);
      stopping = true;
      await Promise.all(writers);
      client.close();
      expect(Date.now() - started).toBeLessThan(20_000);
      expect(broken).toEqual([]);
    }
    const server = await startServer({ folder });
    const stored = new Set(await storedIds(server));
    expect([...acknowledged].filter((id) => !stored.has(id))).toEqual([]);
    // Stored and not acknowledged: it was admitted, and its answer was cut off.
    expect([...stored].filter((id) => !acknowledged.has(id))).toEqual([]);
    expect(acknowledged.size).toBeGreaterThan(rounds * 10);
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

async function storedIds(server: Server): Promise<readonly number[]> {
  const ids: number[] = [];
  for (let cursor = ""; ; ) {
    const { body } = await server.get(`/processes?limit=200${cursor}`);
    ids.push(...body.items.map(({ id }: { id: number }) => id));
    if (body.nextCursor === null || body.nextCursor === undefined) return ids;
    cursor = `&cursor=${encodeURIComponent(body.nextCursor)}`;
  }
}
