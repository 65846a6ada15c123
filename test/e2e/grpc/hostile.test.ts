/**
 * and their relatives: a client that floods, stalls, breaks off or unfolds. Whatever it does, the server stays up and small, and
 * others are served meanwhile.
 */
import { readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ServerReflection } from "../../../src/gen/grpc/reflection/v1/reflection_pb.ts";
import { ProcessService } from "../../../src/gen/troupe/v1/process_service_pb.ts";
import { bodyBytesMax, rpcAnswerBytesMax } from "../../../src/limits.ts";
import { removeFolder, type Server, startServer } from "../server.ts";
import { jsPeer, pathOf } from "./js-peer.ts";
import type { Peer, Told } from "./peer.ts";
import {
  envelope,
  errorNames,
  flags,
  frame,
  frameTypes,
  grpcHeaders,
  type HeaderList,
  headerBlock,
  openConnection,
  openSocket,
  preface,
  type RawConnection,
  setting,
  u32,
} from "./raw-http2.ts";

let server: Server;
let other: Peer;
const open: RawConnection[] = [];
let rssBefore: number;
/** A process that has printed a megabyte, and one that has printed more than an answer may hold. */
const megabyteProcess = 1;
const excessiveProcess = 2;

beforeAll(async () => {
  server = await startServer({
    settings: {
      SERVICE_PROCESS_OUTPUT_BYTES: String(32 * 1024 * 1024),
      SERVICE_PROCESS_MEMORY_MB: "256",
      SERVICE_TRUSTED_PROXIES: "127.0.0.1",
    },
  });
  await server.run(`console.log("x".repeat(1024 * 1024))`);
  await server.run(`for (let at = 0; at < 17; at++) console.log("x".repeat(1024 * 1024))`);
  other = jsPeer(server.grpc, { "grpc.max_receive_message_length": -1 });
  for (let at = 0; at < 100; at += 1) await served();
});

beforeEach(async () => {
  rssBefore = await rssMb();
});

afterEach(async () => {
  for (const connection of open.splice(0)) connection.close();
  // The same process still serves others, and has nothing to say against itself.
  expect((await served()).code).toBe(0);
  expect(server.child.exitCode).toBeNull();
  expect(server.lines.filter((line) => line.includes('"level":"error"'))).toEqual([]);
});

afterAll(async () => {
  other.close();
  await server.kill();
  await removeFolder(server.folder);
});

async function rssMb(): Promise<number> {
  const status = await readFile(`/proc/${server.child.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

function served(): Promise<Told> {
  return other.ask({ method: ProcessService.method.getProcess, request: { id: megabyteProcess }, deadlineMs: 20_000 });
}

async function grownMb(): Promise<number> {
  return (await rssMb()) - rssBefore;
}

async function connect(settings?: Uint8Array): Promise<RawConnection> {
  const connection = await openConnection(server.grpc, settings);
  open.push(connection);
  return connection;
}

const getProcess = pathOf(ProcessService.method.getProcess);
const getProcessStdout = pathOf(ProcessService.method.getProcessStdout);
/** By way of a proxy: what this client has coming to it is not counted as the others'. */
const head = (path: string, more: HeaderList = []): Buffer =>
  headerBlock(grpcHeaders(server.grpc, path, [["x-forwarded-for", "203.0.113.1"], ...more]));
/** `id` is 1 to 127. */
const idMessage = (id: number): Buffer => envelope(Buffer.from([0x08, id]));

/** Served while `flood` lasts, each within the ceiling. */
async function othersAreServedDuring(flood: Promise<unknown>): Promise<void> {
  let isOver = false;
  void flood.finally(() => {
    isOver = true;
  });
  const waits: number[] = [];
  while (!isOver) {
    const began = performance.now();
    expect((await served()).code).toBe(0);
    waits.push(performance.now() - began);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await flood;
  waits.sort((one, another) => one - another);
  expect(waits.at(-1) ?? 0).toBeLessThan(10_000);
  console.info(
    `${expect.getState().currentTestName}: others waited ${Math.round(waits[Math.floor(waits.length / 2)] ?? 0)} ms, at most ${Math.round(waits.at(-1) ?? 0)} ms; grown ${Math.round(await grownMb())} MB; ${floodEnd}`,
  );
}

/** How far the latest flood came. */
let floodEnd = "";

/** The same bytes over and over, until `times` or the server has had enough. */
async function flood(
  connection: RawConnection,
  times: number,
  part: (at: number) => Buffer,
  isReading = true,
): Promise<void> {
  if (!isReading) connection.socket.pause();
  const together = 200;
  const deadline = performance.now() + 10_000;
  let at = 0;
  const end = (): void => {
    const code = connection.frames.find(({ type }) => type === frameTypes.goaway)?.payload.readUInt32BE(4);
    floodEnd = `after ${at} of ${times} ${connection.isClosed ? "closed" : "open"} ${code === undefined ? "" : errorNames[code]}`;
  };
  for (; at < times && !connection.isClosed && performance.now() < deadline; at += together) {
    const parts = Array.from({ length: Math.min(together, times - at) }, (_, more) => part(at + more));
    await Promise.race([connection.send(...parts), new Promise((resolve) => setTimeout(resolve, 2_000))]);
    if (!isReading && connection.socket.writableNeedDrain) return end(); // the server reads no further: it is held
    await new Promise((resolve) => setImmediate(resolve)); // the others' calls are made by this process too
  }
  end();
}

const ping = frame(frameTypes.ping, 0, 0, Buffer.from("flooding"));

describe("floods", () => {
  const floods: Readonly<Record<string, (connection: RawConnection) => Promise<void>>> = {
    "R-097: streams that are opened and reset": (connection) =>
      flood(connection, 100_000, (at) =>
        Buffer.concat([
          frame(frameTypes.headers, flags.endHeaders, 1 + 2 * at, head(getProcess)),
          frame(frameTypes.rstStream, 0, 1 + 2 * at, u32(8)),
        ]),
      ),
    "whole calls that are reset before their answer": (connection) =>
      flood(connection, 20_000, (at) =>
        Buffer.concat([
          frame(frameTypes.headers, flags.endHeaders, 1 + 2 * at, head(getProcess)),
          frame(frameTypes.data, flags.endStream, 1 + 2 * at, idMessage(megabyteProcess)),
          frame(frameTypes.rstStream, 0, 1 + 2 * at, u32(8)),
        ]),
      ),
    "requests that the server has to reset": (connection) =>
      flood(connection, 20_000, (at) =>
        frame(frameTypes.headers, flags.endHeaders | flags.endStream, 1 + 2 * at, head(getProcess, [["Bad", "1"]])),
      ),
    "R-098: a header block that never ends": async (connection) => {
      await connection.send(frame(frameTypes.headers, 0, 1, head(getProcess)));
      const continuation = frame(
        frameTypes.continuation,
        0,
        1,
        headerBlock(Array(100).fill(["x-more", "a".repeat(100)])),
      );
      await flood(connection, 100_000, () => continuation);
      expect(connection.isClosed).toBe(true);
    },
    "R-098: a header block that never ends, of empty parts": async (connection) => {
      await connection.send(frame(frameTypes.headers, 0, 1, head(getProcess)));
      await flood(connection, 100_000, () => frame(frameTypes.continuation, 0, 1));
    },
    "PINGs whose answers are not read": (connection) => flood(connection, 500_000, () => ping, false),
    "PINGs whose answers are read": (connection) => flood(connection, 100_000, () => ping),
    "SETTINGS whose answers are not read": (connection) =>
      flood(connection, 200_000, () => frame(frameTypes.settings, 0, 0, setting(3, 100)), false),
    "SETTINGS of a thousand entries": (connection) =>
      flood(connection, 2_000, () =>
        frame(frameTypes.settings, 0, 0, Buffer.concat(Array(1_000).fill(setting(0xf0, 1)))),
      ),
    "PRIORITY of streams that are not there": (connection) =>
      flood(connection, 200_000, (at) => frame(frameTypes.priority, 0, 1 + 2 * at, Buffer.from([0, 0, 0, 0, 15]))),
    "empty DATA without an end": async (connection) => {
      await connection.send(frame(frameTypes.headers, flags.endHeaders, 1, head(getProcess)));
      await flood(connection, 200_000, () => frame(frameTypes.data, 0, 1));
    },
    "windows opened byte by byte": async (connection) => {
      await connection.send(frame(frameTypes.headers, flags.endHeaders, 1, head(getProcess)));
      await flood(connection, 200_000, () => frame(frameTypes.windowUpdate, 0, 1, u32(1)));
    },
    "frames of a type that nobody knows": (connection) =>
      flood(connection, 2_000, () => frame(0xf0, 0, 0, Buffer.alloc(16_000))),
  };

  it.each(Object.keys(floods))("%s cost others nothing", async (name) => {
    const connection = await connect();
    await othersAreServedDuring(floods[name]?.(connection) ?? expect.unreachable(name));
    expect(await grownMb()).toBeLessThan(64);
  });

  it("R-098: a thousand connections cut within a header block", async () => {
    const cut = async (): Promise<void> => {
      const connection = await openSocket(server.grpc);
      await connection.send(
        preface,
        frame(frameTypes.settings, 0, 0),
        frame(frameTypes.headers, 0, 1, head(getProcess)),
      );
      connection.socket.resetAndDestroy();
    };
    await othersAreServedDuring(
      (async () => {
        for (let at = 0; at < 20; at += 1) await Promise.all(Array.from({ length: 50 }, cut));
      })(),
    );
    expect(await grownMb()).toBeLessThan(64);
  });
});

describe("headers that unfold", () => {
  it("one large table entry named ten thousand times is refused", async () => {
    const connection = await connect();
    const entry = Buffer.concat([Buffer.from([0x40, 1, 0x78, 0x7f, 0xa1, 0x1e]), Buffer.alloc(4_000, 0x61)]);
    await connection.send(
      frame(frameTypes.headers, flags.endHeaders | flags.endStream, 1, Buffer.concat([head(getProcess), entry])),
    );
    const again = Buffer.concat([head(getProcess), Buffer.alloc(10_000, 0x80 | 62)]);
    for (let id = 3; id < 200; id += 2) {
      await connection.send(frame(frameTypes.headers, flags.endHeaders | flags.endStream, id, again));
    }
    await connection.until(() => connection.isClosed || connection.has(frameTypes.rstStream, 3), 3_000);
    expect(connection.isClosed || connection.has(frameTypes.rstStream, 3)).toBe(true);
    expect(await grownMb()).toBeLessThan(32);
  });

  it.each([
    ["a thousand small headers", Array.from({ length: 1_000 }, (_, at) => [`x-${at}`, "1"] as const)],
    ["one header of 15 KB", [["x-long", "a".repeat(15_000)] as const]],
    ["a cookie in three hundred crumbs", Array.from({ length: 300 }, () => ["cookie", "a=b"] as const)],
  ])("%s are refused or served, and the next call is served", async (_title, more) => {
    const connection = await connect();
    const block = head(getProcess, more);
    await connection.send(frame(frameTypes.headers, 0, 1, block.subarray(0, 16_000)));
    await connection.send(frame(frameTypes.continuation, flags.endHeaders, 1, block.subarray(16_000)));
    await connection.send(frame(frameTypes.data, flags.endStream, 1, idMessage(megabyteProcess)));
    const isTold = (): boolean =>
      connection.isClosed ||
      connection.has(frameTypes.rstStream, 1) ||
      connection.has(frameTypes.headers, 1, flags.endStream);
    expect(await connection.until(isTold)).toBe(true);
  });
});

describe("clients that stall", () => {
  it("streams left half open hold nobody else up, and one connection has no more than its share", async () => {
    const connection = await connect();
    for (let at = 0; at < 300; at += 1) {
      await connection.send(frame(frameTypes.headers, flags.endHeaders, 1 + 2 * at, head(getProcess)));
    }
    expect(await connection.until(() => connection.has(frameTypes.rstStream, 1 + 2 * 299) || connection.isClosed)).toBe(
      true,
    );
    expect((await served()).code).toBe(0);
    expect(await grownMb()).toBeLessThan(64);
  });

  it.each([
    ["that open no window", setting(4, 0), true],
    ["that open windows and read nothing", setting(4, 0x7fff_ffff), false],
  ])("clients %s are not answered from ever more memory", async (_title, settings, isReading) => {
    const ask = async (): Promise<RawConnection[]> => {
      const connections = await Promise.all(Array.from({ length: 2 }, () => connect(settings)));
      for (const connection of connections) {
        if (!isReading) {
          await connection.send(frame(frameTypes.windowUpdate, 0, 0, u32(0x7000_0000)));
          connection.socket.pause();
        }
        for (let at = 0; at < 32; at += 1) {
          await connection.send(
            frame(frameTypes.headers, flags.endHeaders, 1 + 2 * at, head(getProcessStdout)),
            frame(frameTypes.data, flags.endStream, 1 + 2 * at, idMessage(megabyteProcess)),
          );
        }
      }
      await new Promise((resolve) => setTimeout(resolve, 500));
      expect((await served()).code).toBe(0);
      return connections;
    };
    const grown: number[] = [];
    for (let round = 0; round < 10; round += 1) {
      const connections = await ask();
      grown.push(await grownMb());
      for (const connection of connections) connection.close();
    }
    console.info(`64 answers of 1 MiB not taken: grown by ${grown.map(Math.round)} MB`);
    // What was kept for those who left is free again, if not at once: were it not, each round would add 64 MB and what sending costs.
    expect(Math.min(...grown.slice(-3)) - Math.min(...grown.slice(2, 5))).toBeLessThan(200);
  });

  it("bytes that are no protocol at all end their connection and nothing else", async () => {
    const noise = [
      "\0\0\0\0",
      "PRI",
      "PRI * HTTP/2.0\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
      "GET",
      "\r\n\r\n",
    ];
    for (let at = 0; at < 60; at += 1) {
      const connection = await openSocket(server.grpc);
      open.push(connection);
      await connection.send(Buffer.from(noise[at % noise.length] as string, "latin1"));
    }
    expect((await served()).code).toBe(0);
  });
});

describe("R-096: messages", () => {
  const gibibyte = 1024 * 1024 * 1024;
  const refuse = async (
    path: string,
    more: HeaderList,
    body: (connection: RawConnection) => Promise<void>,
  ): Promise<RawConnection> => {
    const connection = await connect(setting(4, 1024 * 1024));
    await connection.send(frame(frameTypes.headers, flags.endHeaders, 1, head(path, more)));
    await body(connection);
    const isTold = (): boolean =>
      connection.isClosed ||
      connection.has(frameTypes.headers, 1, flags.endStream) ||
      connection.has(frameTypes.rstStream, 1);
    expect(await connection.until(isTold, 10_000)).toBe(true);
    return connection;
  };
  const inFrames = async (connection: RawConnection, bytes: Buffer, isEnd = true): Promise<void> => {
    for (let at = 0; at < bytes.length && !connection.isClosed; at += 16_384) {
      const part = bytes.subarray(at, at + 16_384);
      const end = isEnd && at + part.length === bytes.length ? flags.endStream : 0;
      await connection.send(frame(frameTypes.data, end, 1, part));
    }
  };

  it.each([
    ["of 5 MB", envelope(Buffer.alloc(5_000_000))],
    ["that says it has 5 MB and has not", envelope(Buffer.alloc(10), { declared: 5_000_000 })],
    ["that says it has 4 GB and has not", envelope(Buffer.alloc(10), { declared: 0xffff_ffff })],
    ["of one byte more than is allowed", envelope(Buffer.alloc(bodyBytesMax + 1))],
    ["followed by a hundred thousand empty ones", Buffer.concat([idMessage(1), Buffer.alloc(500_000)])],
  ])("one %s is refused without reading on", async (_title, bytes) => {
    const connection = await refuse(getProcess, [], (own) => inFrames(own, bytes));
    expect(await grownMb()).toBeLessThan(64);
    if (connection.isClosed) return;
    await connection.send(
      frame(frameTypes.headers, flags.endHeaders, 3, head(getProcess)),
      frame(frameTypes.data, flags.endStream, 3, idMessage(megabyteProcess)),
    );
    expect(await connection.until(() => connection.has(frameTypes.headers, 3, flags.endStream), 5_000)).toBe(true);
  });

  it("one that unfolds to a gibibyte is refused, and takes no memory", async () => {
    // Parts of a gzip stream unfold one after the other.
    const folded = Buffer.concat(Array(16).fill(gzipSync(Buffer.alloc(gibibyte / 16))));
    const bomb = envelope(folded, { flag: 1 });
    await refuse(getProcess, [["grpc-encoding", "gzip"]], (own) => inFrames(own, bomb));
    expect(await grownMb()).toBeLessThan(64);
  });

  it("a hundred thousand empty ones on a stream of reflection leave the server small", async () => {
    const connection = await connect(setting(4, 0x7fff_ffff));
    await connection.send(frame(frameTypes.windowUpdate, 0, 0, u32(0x7000_0000)));
    const path = pathOf(ServerReflection.method.serverReflectionInfo);
    await connection.send(frame(frameTypes.headers, flags.endHeaders, 1, head(path)));
    await othersAreServedDuring(inFrames(connection, Buffer.alloc(500_000)));
    expect(await grownMb()).toBeLessThan(128);
  });

  it("answers beyond the limit are refused by the server, and those below reach whoever takes them", async () => {
    const ask = (id: number): Promise<Told> =>
      other.ask({ method: ProcessService.method.getProcessStdout, request: { id } });
    const { code, message } = await ask(excessiveProcess);
    expect(code).toBe(8);
    expect(message).toContain(String(rpcAnswerBytesMax));
    expect((await ask(megabyteProcess)).code).toBe(0);
  });

  it("the same limits by name: a client of another stack is told RESOURCE_EXHAUSTED and goes on", async () => {
    const told = await other.ask({
      method: ProcessService.method.createProcess,
      request: { code: "x".repeat(bodyBytesMax) },
    });
    expect(told.code).toBe(8);
    expect((await served()).code).toBe(0);
  });
});
