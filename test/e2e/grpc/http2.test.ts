/**
 * HTTP/2 as h2spec looks at it, from frames made by hand, against our server and against Node's own HTTP/2 server in the same minute: we add a
 * sniffer and a way around Node's request objects, and neither may break a rule that Node keeps.
 */
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { removeFolder, type Server, startServer } from "../server.ts";
import { type Request, type Rule, requestTo, rules } from "./http2-rules.ts";
import { errorNames, flags, frame, frameTypes, openConnection, openSocket, type RawConnection } from "./raw-http2.ts";

let server: Server;
let bare: http2.Http2Server;
const ours = new Map<Rule, string>();
const bares = new Map<Rule, string>();

beforeAll(async () => {
  bare = http2.createServer({ settings: { maxConcurrentStreams: 256 } }, (request, response) => {
    request.resume();
    request.on("end", () => response.end("answer"));
  });
  bare.on("sessionError", () => undefined);
  await new Promise<void>((resolve) => bare.listen(0, "127.0.0.1", resolve));
  server = await startServer();
  const bareAddress = `127.0.0.1:${(bare.address() as AddressInfo).port}`;
  for (let at = 0; at < rules.length; at += togetherMax) {
    await Promise.all(
      rules.slice(at, at + togetherMax).map(async (rule) => {
        ours.set(rule, await outcome(server.grpc, rule));
        bares.set(rule, await outcome(bareAddress, rule));
      }),
    );
  }
});

afterAll(async () => {
  bare.close();
  await server.kill("SIGTERM");
  await removeFolder(server.folder);
});

const togetherMax = 16;
/** How long a fault may go unnoticed after a PING sent behind it was answered, and how long an answer may take. */
const graceMs = 1_000;
const answerMs = 5_000;

/** nghttp2 passes over what it cannot or need not judge, or drops the header; an acknowledgement nobody asked for ends Node's session. */
const knownBroken = [
  "DATA after a reset",
  "HEADERS after a reset",
  "a stream of a lower number than one before",
  "PRIORITY on stream 0",
  "an acknowledgement of a PING that was not sent",
  "a header name with a space",
  "a header value with NUL",
  "a header value with a line break",
];
const marker = Buffer.from("marker!!");

/** "kept", or what came back in its place. */
async function outcome(address: string, rule: Rule): Promise<string> {
  const request: Request = requestTo(address);
  const connection = rule.bare === true ? await openSocket(address) : await openConnection(address);
  try {
    await rule.send(connection, request);
    if (rule.demand === "answered") {
      const isAnswered = (): boolean =>
        connection.has(frameTypes.headers, 1, flags.endStream) || connection.has(frameTypes.data, 1, flags.endStream);
      await connection.until(() => isAnswered() || isOver(connection), answerMs);
      return isAnswered() ? "kept" : said(connection);
    }
    // A server that reads the rest of a frame waits for it: the marker is then part of the fault.
    await connection.send(frame(frameTypes.ping, 0, 0, marker));
    const isMarked = (): boolean =>
      connection.frames.some((one) => one.type === frameTypes.ping && one.payload.equals(marker));
    const isRefused = (): boolean =>
      isOver(connection) || (rule.demand === "stream" && connection.frames.some(isStreamRefusal));
    if (rule.demand === "ignored") {
      await connection.until(() => isMarked() || isOver(connection), answerMs);
      return isMarked() && !isOver(connection) ? "kept" : said(connection);
    }
    await connection.until(() => isRefused() || isMarked(), answerMs);
    if (!isRefused()) await connection.until(isRefused, graceMs);
    return isRefused() ? "kept" : said(connection);
  } finally {
    connection.close();
  }
}

function isOver(connection: RawConnection): boolean {
  return connection.isClosed || connection.frames.some(({ type }) => type === frameTypes.goaway);
}

function isStreamRefusal({ type }: { type: number }): boolean {
  return type === frameTypes.rstStream;
}

function said(connection: RawConnection): string {
  const names = Object.keys(frameTypes);
  const frames = connection.frames.map(({ type, streamId, payload }) => {
    const code =
      type === frameTypes.goaway ? payload.readUInt32BE(4) : payload.length === 4 ? payload.readUInt32BE() : 0;
    const why = type === frameTypes.rstStream || type === frameTypes.goaway ? ` ${errorNames[code]}` : "";
    return `${names[type]} ${streamId}${why}`;
  });
  return [...frames, ...(connection.isClosed ? ["closed"] : [])].join(", ");
}

describe("HTTP/2 is kept to as Node keeps to it, with ", () => {
  it.each(rules.map((rule) => [rule.title, rule] as const))("%s", (_title, rule) => {
    if (bares.get(rule) === "kept") expect(ours.get(rule)).toBe("kept");
    else expect(ours.get(rule)).toBeDefined();
  });

  it("all rules but those that Node is known not to keep", () => {
    const broken = rules.filter((rule) => ours.get(rule) !== "kept").map(({ title }) => title);
    expect(knownBroken).toEqual(expect.arrayContaining(broken));
    expect(server.lines.filter((line) => line.includes('"level":"error"'))).toEqual([]);
  });
});
