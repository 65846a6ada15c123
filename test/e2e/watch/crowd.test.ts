/**
 * Many watchers, watchers that do not read, and watchers that leave: what each of them gets, what they cost the server, and that no run is
 * any slower for them.
 */
import { readFileSync } from "node:fs";
import type { MessageShape } from "@bufbuild/protobuf";
import grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ProcessState } from "../../../src/gen/troupe/v1/process_pb.ts";
import { ProcessEventKind } from "../../../src/gen/troupe/v1/process_service_pb.ts";
import { listAll } from "../log-follower.ts";
import { removeFolder, type Server, startServer } from "../server.ts";
import { newClient, openRelay, rpcs, watch } from "./watcher.ts";

let server: Server;

beforeAll(async () => {
  server = await startServer({ settings: { SERVICE_LOG_LEVEL: "debug" } });
});

afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolder(server.folder);
});

/** Resident memory of the server, MiB. */
function residentMb(): number {
  const status = readFileSync(`/proc/${server.child.pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
}

const printing = (lines: number, text: string, everyMs: number): string =>
  `for (let n = 0; n < ${lines}; n++) { console.log(n + ${JSON.stringify(text)}); if (${everyMs} > 0) await new Promise((go) => setTimeout(go, ${everyMs})); } return { done: true };`;

describe("a crowd of watchers", () => {
  it("of one process: each of 500 gets every event in order", async () => {
    const lines = 40;
    const code = printing(lines, " of a line that is printed", 20);
    const { body } = await server.post("/processes", { code, autorun: false });
    const before = residentMb();
    const clients = Array.from({ length: 5 }, () => newClient(server.grpc));
    const watchers = Array.from({ length: 500 }, (_, n) =>
      watch(clients[n % clients.length] as grpc.Client, rpcs.watchProcess, { id: BigInt(body.id) }),
    );
    await Promise.all(watchers.map((watcher) => watcher.until((messages) => messages.length > 0)));
    const joined = residentMb();
    await server.post(`/processes/${body.id}/signals/run`);
    expect(new Set(await Promise.all(watchers.map(({ over }) => over)))).toEqual(new Set([grpc.status.OK]));
    const after = residentMb();
    for (const client of clients) client.close();
    const [first] = watchers;
    expect(printedIn(first?.messages ?? [])).toBe(
      Array.from({ length: lines }, (_, n) => `${n} of a line that is printed\n`).join(""),
    );
    const told = new Set(watchers.map(({ messages }) => messages.map(toldIn).join()));
    expect([...told]).toEqual([first?.messages.map(toldIn).join()]);
    console.info(
      `500 watchers: ${before.toFixed(0)} MiB before, ${joined.toFixed(0)} with them, ${after.toFixed(0)} at the end`,
    );
    // Most of it is garbage that waits for a collection: rounds of another 500 come to an end at twice this.
    expect(after - before).toBeLessThan(300);
  });
});

describe("a watcher that does not read", () => {
  it("slows no run, costs next to no memory, and finds everything in order once it reads", async () => {
    // What cannot be compressed: the windows of HTTP/2 count bytes as sent. All stop reading in the first part, and the second is measured.
    const code = `
      const print = (lines) => {
        for (let n = 0; n < lines; n++) { let line = ""; while (line.length < 2000) line += crypto.randomUUID(); console.log(line); }
      };
      print(150);
      console.log("half");
      await new Promise((go) => setTimeout(go, env.waitMs));
      const started = Date.now();
      print(300);
      return { ms: Date.now() - started };`;
    const lone = await server.run(code, { envConfig: { waitMs: 1 } });
    const alone = (await server.output(lone.id)).ms as number;
    const { body } = await server.post("/processes", { code, autorun: false, envConfig: { waitMs: 3_000 } });
    const id = BigInt(body.id);
    const [client, reading] = [newClient(server.grpc), newClient(server.grpc)];
    const stalled = Array.from({ length: 200 }, () => watch(client, rpcs.watchProcess, { id }));
    const others = [
      watch(client, rpcs.watchProcesses, {}),
      watch(client, rpcs.watchEvents, {}),
      watch(client, rpcs.watchLogs, {}),
    ];
    await Promise.all(stalled.map((watcher) => watcher.until((messages) => messages.length > 0)));
    for (const watcher of [...stalled, ...others]) watcher.pause();
    const before = residentMb();
    const reader = watch(reading, rpcs.watchProcess, { id });
    await server.post(`/processes/${body.id}/signals/run`);
    await reader.until((messages) => messages.some(({ text }) => text?.includes("half\n")));
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    const stuck = residentMb();
    expect(await reader.over).toBe(grpc.status.OK);
    const after = residentMb();
    const { ms } = await server.output(body.id);
    console.info(
      `200 watchers that do not read: ${before.toFixed(0)} MiB before, ${stuck.toFixed(0)} when stuck, ${after.toFixed(0)} after 600 KB more; printing them took ${ms} ms, ${alone} alone`,
    );
    // That for each of them would be 120 MB and more.
    expect(after - stuck).toBeLessThan(60);
    expect(ms).toBeLessThan(10 * alone + 2_000);
    const readers = stalled.slice(0, 5);
    await Promise.all(stalled.slice(5).map((watcher) => watcher.leave()));
    for (const watcher of readers) watcher.resume();
    expect(new Set(await Promise.all(readers.map(({ over }) => over)))).toEqual(new Set([grpc.status.OK]));
    const { text } = await server.get(`/processes/${body.id}/stdout`);
    expect(text.length).toBeGreaterThan(900_000);
    for (const { messages } of readers) {
      expect(printedIn(messages)).toBe(text);
      expect(messages.at(-1)?.state).toBe(ProcessState.IDLE);
    }
    client.close();
    reading.close();
  });
});

describe("a watcher that goes away", () => {
  it("leaves no call behind, whether it says goodbye or is cut off", async () => {
    const { body } = await server.post("/processes", { code: "return 1", autorun: false });
    const relay = await openRelay(server.grpc);
    const name = `gone-${Date.now()}`;
    for (const way of ["leave", "cut", "stall and cut"] as const) {
      const client = newClient(relay.address);
      const metadata = new grpc.Metadata();
      metadata.set("x-request-id", `${name}:${way.replaceAll(" ", "-")}`);
      const watchers = [
        watch(client, rpcs.watchProcess, { id: BigInt(body.id) }, metadata),
        watch(client, rpcs.watchProcesses, {}, metadata),
        watch(client, rpcs.watchEvents, {}, metadata),
        watch(client, rpcs.watchLogs, {}, metadata),
      ];
      // The log tells what this very request does, so there is something for each.
      await Promise.all(watchers.slice(0, 3).map((watcher) => watcher.until((messages) => messages.length > 0)));
      await server.run("return 1");
      if (way === "leave") await Promise.all(watchers.map((watcher) => watcher.leave()));
      else {
        if (way === "stall and cut") for (const watcher of watchers) watcher.pause();
        relay.cut();
        for (const watcher of watchers) watcher.resume();
        await Promise.all(watchers.map(({ over }) => over));
      }
      client.close();
      // Its last line of the log is written when nothing works for a call any more.
      const ended = async () =>
        (await listAll(server, `&event=rpc&requestId=${name}:${way.replaceAll(" ", "-")}`)).map(
          ({ message }) => message,
        );
      for (const end = Date.now() + 10_000; (await ended()).length < 4 && Date.now() < end; ) {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      expect((await ended()).sort()).toEqual([
        expect.stringContaining("WatchEvents cancelled"),
        expect.stringContaining("WatchLogs cancelled"),
        expect.stringContaining("WatchProcess cancelled"),
        expect.stringContaining("WatchProcesses cancelled"),
      ]);
    }
    await relay.close();
  });
});

type ProcessMessage = MessageShape<typeof rpcs.watchProcess.output>;

const toldIn = ({ sequence, kind, text }: ProcessMessage): string => `${sequence} ${kind} ${text}`;

const printedIn = (messages: readonly ProcessMessage[]): string =>
  messages.map(({ kind, text }) => (kind === ProcessEventKind.STDOUT ? text : "")).join("");
