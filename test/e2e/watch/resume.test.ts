/**
 * Every stream of the control plane, cut off again and again in the middle of what it tells and gone on with from the last sequence taken:
 * nothing is lost, nothing comes twice, beside one that was never cut.
 */
import type { MessageShape } from "@bufbuild/protobuf";
import grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DevRegistry, startDevRegistry } from "../../../src/dev-registry/dev-registry.ts";
import { EventType, SnapshotReason, SubjectKind } from "../../../src/gen/troupe/v1/event_pb.ts";
import { LogLevel } from "../../../src/gen/troupe/v1/log_pb.ts";
import { ProcessExitState, ProcessState } from "../../../src/gen/troupe/v1/process_pb.ts";
import { ProcessChangeKind, ProcessEventKind } from "../../../src/gen/troupe/v1/process_service_pb.ts";
import { removeFolder, type Server, startServer } from "../server.ts";
import { newClient, openRelay, type Relay, rpcs, type Watcher, watch } from "./watcher.ts";

let server: Server;
let relay: Relay;
let straight: grpc.Client;
let registry: DevRegistry;

beforeAll(async () => {
  server = await startServer({ settings: { SERVICE_LOG_LEVEL: "debug" } });
  relay = await openRelay(server.grpc);
  straight = newClient(server.grpc);
  registry = await startDevRegistry({ id: "shelf" });
});

afterAll(async () => {
  straight.close();
  await Promise.all([relay.close(), registry.close()]);
  await server.kill("SIGTERM");
  await removeFolder(server.folder);
});

async function addRegistry(id: string): Promise<void> {
  const { status, text } = await server.post("/registries", { id, baseUrl: registry.url });
  expect(status, text).toBe(201);
}

/**
 * Takes until `isLast`; after every `stretch` messages the connection is cut, and a new one opened that goes on from the last message taken.
 */
async function takeWithCuts<Message>(
  open: (client: grpc.Client, after: bigint | undefined) => Watcher<Message>,
  sequenceOf: (message: Message) => bigint,
  isLast: (message: Message) => boolean,
  stretch: number,
): Promise<{ messages: Message[]; cuts: number }> {
  const messages: Message[] = [];
  for (let cuts = 0; ; cuts++) {
    const last = messages.at(-1);
    const client = newClient(relay.address);
    const watcher = open(client, last === undefined ? undefined : sequenceOf(last));
    await watcher.until((taken) => taken.length >= stretch || taken.some(isLast));
    relay.cut();
    await watcher.over;
    client.close();
    // What came beyond, in the same moment, is lost with the connection.
    messages.push(...watcher.messages.slice(0, stretch));
    if (messages.some(isLast)) return { messages, cuts };
  }
}

const isGrowing = (numbers: readonly bigint[]): boolean =>
  numbers.every((number, place) => place === 0 || number > (numbers[place - 1] ?? number));

describe("a stream that is cut and gone on with", () => {
  it("WatchProcess tells every event of the run once", async () => {
    const code = `for (let n = 0; n < 200; n++) { console.log("line " + n); await new Promise((go) => setTimeout(go, 5)); } return { n: 200 };`;
    const { body } = await server.post("/processes", { code });
    const id = BigInt(body.id);
    const whole = watch(straight, rpcs.watchProcess, { id });
    const { messages, cuts } = await takeWithCuts(
      (client, fromSequence) =>
        watch(client, rpcs.watchProcess, { id, ...(fromSequence === undefined ? {} : { fromSequence }) }),
      ({ sequence }) => sequence,
      ({ state }) => state === ProcessState.IDLE,
      7,
    );
    expect(await whole.over).toBe(grpc.status.OK);
    expect(cuts).toBeGreaterThan(4);
    const lines = messages.filter(({ kind }) => kind === ProcessEventKind.STDOUT).map(({ text }) => text);
    expect(lines.join("")).toBe(Array.from({ length: 200 }, (_, n) => `line ${n}\n`).join(""));
    expect(isGrowing(messages.map(({ sequence }) => sequence))).toBe(true);
    expect(messages.slice(1).map(({ sequence }) => sequence)).toEqual(
      whole.messages.slice(1).map(({ sequence }) => sequence),
    );
  });

  it("WatchProcesses tells every change of those that match once, and of no other", async () => {
    const ref = "watched";
    const earlier = await server.run("return 1", { ref });
    const whole = watch(straight, rpcs.watchProcesses, { ref });
    await whole.until((messages) => messages.length > 0);
    const work = (async () => {
      for (let n = 0; n < 20; n++) {
        await Promise.all([server.run("return 1", { ref }), server.run("return 1", { ref: "other" })]);
      }
      await server.call("DELETE", `/processes/${earlier.id}`);
    })();
    const { messages, cuts } = await takeWithCuts(
      (client, fromSequence) =>
        watch(client, rpcs.watchProcesses, { ref, ...(fromSequence === undefined ? {} : { fromSequence }) }),
      ({ sequence }) => sequence,
      ({ kind }) => kind === ProcessChangeKind.REMOVED,
      7,
    );
    await work;
    await whole.until((all) => all.some(({ kind }) => kind === ProcessChangeKind.REMOVED));
    expect(cuts).toBeGreaterThan(4);
    expect(isGrowing(messages.map(({ sequence }) => sequence))).toBe(true);
    expect(messages.filter(({ kind }) => kind === ProcessChangeKind.SNAPSHOT)).toHaveLength(1);
    expect(whole.messages[0]?.snapshot?.items.map(({ id }) => Number(id))).toEqual([earlier.id]);
    // Its snapshot may have been taken a little later: what is in it is not told again.
    const first = messages[0]?.sequence ?? 0n;
    expect(messages.slice(1)).toEqual(whole.messages.filter(({ sequence }) => sequence > first));
    const lives = whole.messages.slice(1, -1).filter(({ process }) => process?.id !== BigInt(earlier.id));
    expect(lives.map(({ kind, process }) => [kind, process?.state, process?.exitState])).toEqual(
      Array.from({ length: 20 }, () => [
        [ProcessChangeKind.ADDED, ProcessState.QUEUED, undefined],
        [ProcessChangeKind.CHANGED, ProcessState.RUNNING, undefined],
        [ProcessChangeKind.CHANGED, ProcessState.IDLE, ProcessExitState.SUCCESS],
      ]).flat(),
    );
    await whole.leave();
  });

  it("WatchLogs tells every record once", async () => {
    const request = { levelMin: LogLevel.DEBUG, query: "GetProcess" };
    const whole = watch(straight, rpcs.watchLogs, request);
    const ask = newClient(server.grpc);
    const getProcess = (id: bigint): Promise<void> =>
      new Promise((resolve) => {
        const pass = (bytes: Buffer): Buffer => bytes;
        // Field 1, a varint.
        const bytes = Buffer.from([8, Number(id)]);
        ask.makeUnaryRequest("/troupe.v1.ProcessService/GetProcess", pass, pass, bytes, () => resolve());
      });
    while (whole.messages.length === 0) {
      await getProcess(1n);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    let isOver = false;
    const work = (async () => {
      while (!isOver) {
        await getProcess(1n);
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
    })();
    const from = whole.messages[0]?.record?.seq ?? 0n;
    const { messages, cuts } = await takeWithCuts(
      (client, fromSequence) => watch(client, rpcs.watchLogs, { ...request, fromSequence: fromSequence ?? from }),
      ({ record }) => record?.seq ?? 0n,
      ({ record }) => (record?.seq ?? 0n) > (whole.messages[150]?.record?.seq ?? 1n << 60n),
      20,
    );
    isOver = true;
    await work;
    ask.close();
    const last = messages.at(-1)?.record?.seq ?? 0n;
    await whole.until((all) => (all.at(-1)?.record?.seq ?? 0n) >= last);
    expect(cuts).toBeGreaterThan(4);
    const seqs = messages.map(({ record }) => record?.seq ?? 0n);
    expect(isGrowing(seqs)).toBe(true);
    expect(seqs).toEqual(
      whole.messages.map(({ record }) => record?.seq ?? 0n).filter((seq) => seq > from && seq <= last),
    );
    await whole.leave();
  });

  it("WatchEvents tells every change of the node once", async () => {
    const whole = watch(straight, rpcs.watchEvents, {});
    await whole.until((messages) => messages.length > 0);
    const snapshot = whole.messages[0]?.snapshot;
    expect(snapshot?.reason).toBe(SnapshotReason.START);
    expect(snapshot?.items).toContainEqual(
      expect.objectContaining({ kind: SubjectKind.MODULE, id: "javascript", state: "enabled" }),
    );
    expect(snapshot?.items.filter(({ kind }) => kind === SubjectKind.PROCESS)).toEqual([]);
    const work = (async () => {
      for (let n = 0; n < 8; n++) {
        await addRegistry(`r${n}`);
        await server.call("DELETE", `/registries/r${n}`);
        await server.run("return 1");
        await server.run("throw new Error('secret-of-a-program')");
      }
      for (const enabled of [false, true]) await server.post("/modules/openapi/enabled", { enabled });
      await addRegistry("last");
    })();
    const isLast = (message: MessageShape<typeof rpcs.watchEvents.output>): boolean => message.event?.id === "last";
    const { messages, cuts } = await takeWithCuts(
      (client, fromSequence) => watch(client, rpcs.watchEvents, fromSequence === undefined ? {} : { fromSequence }),
      ({ sequence }) => sequence,
      isLast,
      9,
    );
    await work;
    await whole.until((all) => all.some(isLast));
    expect(cuts).toBeGreaterThan(4);
    const first = messages[0]?.sequence ?? 0n;
    expect(messages.filter((message) => message.snapshot !== undefined)).toHaveLength(1);
    expect(messages.slice(1)).toEqual(whole.messages.slice(1).filter(({ sequence }) => sequence > first));
    expect(isGrowing(messages.map(({ sequence }) => sequence))).toBe(true);
    const said = whole.messages.slice(1).map(({ event }) => event);
    const told = (kind: SubjectKind, id: string) =>
      said.filter((event) => event?.kind === kind && event.id === id).map((event) => [event?.type, event?.state]);
    expect(told(SubjectKind.REGISTRY, "r3")).toEqual([
      [EventType.ADDED, undefined],
      [EventType.REMOVED, undefined],
    ]);
    expect(told(SubjectKind.MODULE, "openapi")).toEqual([
      [EventType.DISABLED, "disabled"],
      [EventType.ENABLED, "enabled"],
    ]);
    const failures = said.filter((event) => event?.kind === SubjectKind.PROCESS && event.type === EventType.FAILED);
    expect(failures.map((event) => event?.state)).toEqual(Array.from({ length: 8 }, () => "idle"));
    expect(JSON.stringify(said, (_, value) => (typeof value === "bigint" ? String(value) : value))).not.toContain(
      "secret-of-a-program",
    );
    await whole.leave();
  });

  it("keeps to the kinds that were asked for, and refuses those that are none", async () => {
    const watcher = watch(straight, rpcs.watchEvents, { kinds: [SubjectKind.REGISTRY] });
    await watcher.until((messages) => messages.length > 0);
    await server.run("return 1");
    await server.call("DELETE", "/registries/last");
    await watcher.until((messages) => messages.length > 1);
    expect(watcher.messages.map(({ snapshot, event }) => [snapshot?.items.length, event?.id])).toEqual([
      [1, undefined],
      [undefined, "last"],
    ]);
    await watcher.leave();
    const refused = watch(straight, rpcs.watchEvents, { kinds: [SubjectKind.UNSPECIFIED] });
    expect(await refused.over).toBe(grpc.status.INVALID_ARGUMENT);
  });

  it("starts over and says so where the change it names is none that is remembered", async () => {
    for (const fromSequence of [0n, 1n, 1n << 52n]) {
      for (const rpc of [rpcs.watchEvents, rpcs.watchProcesses] as const) {
        const watcher = watch(straight, rpc as typeof rpcs.watchEvents, { fromSequence });
        await watcher.until((messages) => messages.length > 0);
        expect(watcher.messages[0]?.snapshot?.reason).toBe(SnapshotReason.FORGOTTEN);
        await watcher.leave();
      }
    }
    for (const fromSequence of [-1n, 1n << 60n]) {
      expect(await watch(straight, rpcs.watchEvents, { fromSequence }).over).toBe(grpc.status.INVALID_ARGUMENT);
    }
  });
});
