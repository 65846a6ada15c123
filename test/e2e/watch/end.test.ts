/**
 * The end of the server: every stream ends with UNAVAILABLE at once, while what runs still has its time; and after the next start the sequences go
 * on above all that were told.
 */
import grpc from "@grpc/grpc-js";
import { afterAll, describe, expect, it } from "vitest";
import { SnapshotReason, SubjectKind } from "../../../src/gen/troupe/v1/event_pb.ts";
import { ProcessState } from "../../../src/gen/troupe/v1/process_pb.ts";
import { newFolder, removeFolder, type Server, startServer } from "../server.ts";
import { newClient, rpcs, watch } from "./watcher.ts";

const folder = await newFolder();
let server: Server | undefined;
afterAll(async () => {
  await server?.kill();
  await removeFolder(folder);
});

describe("a drain", () => {
  it("ends all streams at once, also those nobody reads, and the next start counts on", async () => {
    server = await startServer({ folder, settings: { SERVICE_LOG_LEVEL: "debug" } });
    const client = newClient(server.grpc);
    const code = `for (let n = 0; n < 300; n++) console.log("x".repeat(2000)); await new Promise((go) => setTimeout(go, 1500)); return 1;`;
    const { body } = await server.post("/processes", { code, ref: "long" });
    const id = BigInt(body.id);
    const watchers = [
      watch(client, rpcs.watchProcess, { id }),
      watch(client, rpcs.watchProcesses, { state: ProcessState.RUNNING }),
      watch(client, rpcs.watchLogs, { fromSequence: 0n }),
      watch(client, rpcs.watchEvents, {}),
    ] as const;
    const stalling = newClient(server.grpc);
    const stalled = Array.from({ length: 20 }, () => watch(stalling, rpcs.watchProcess, { id }));
    for (const watcher of stalled) watcher.pause();
    await Promise.all(watchers.map((watcher) => watcher.until((messages: readonly unknown[]) => messages.length > 0)));
    await watchers[1].until((messages) => messages.some(({ snapshot, process }) => process ?? snapshot?.items[0]));
    const [, , , events] = watchers;
    const asked = performance.now();
    const ended = server.kill("SIGTERM").then((code) => [code, performance.now() - asked] as const);
    expect(await Promise.all(watchers.map(({ over }) => over))).toEqual(watchers.map(() => grpc.status.UNAVAILABLE));
    const toldAfter = performance.now() - asked;
    const [exit, endedAfter] = await ended;
    for (const watcher of stalled) watcher.resume();
    const stalledEnds = await Promise.all(stalled.map(({ over }) => over));
    console.info(`streams ended after ${toldAfter.toFixed(0)} ms, the server after ${endedAfter.toFixed(0)} ms`);
    expect(exit).toBe(0);
    expect(new Set(stalledEnds)).toEqual(new Set([grpc.status.UNAVAILABLE]));
    client.close();
    stalling.close();

    server = await startServer({ folder });
    const again = newClient(server.grpc);
    const last = events.messages.at(-1)?.sequence ?? 0n;
    const goesOn = watch(again, rpcs.watchEvents, { fromSequence: last });
    await goesOn.until((messages) => messages.length > 0);
    expect(goesOn.messages[0]?.snapshot?.reason).toBe(SnapshotReason.FORGOTTEN);
    expect(goesOn.messages[0]?.sequence).toBeGreaterThan(last);
    const { id: next } = await server.run("return 1");
    await goesOn.until((messages) => messages.some(({ event }) => event?.state === "idle"));
    expect(goesOn.messages.slice(1).map(({ event }) => [event?.kind, event?.id, event?.state])).toEqual(
      ["queued", "running", "idle"].map((state) => [SubjectKind.PROCESS, String(next), state]),
    );
    expect(await server.get(`/processes/${body.id}`)).toMatchObject({ body: { exitState: "success" } });
    await goesOn.leave();
    again.close();
  });
});
