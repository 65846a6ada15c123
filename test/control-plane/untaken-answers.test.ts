/**
 * Callers that ask for much and read nothing, over each way in: they are refused before more is done for them, nobody else is, they are
 * served again once they have read, and what they leave for too long is given up. Time is mocked: the long wait is a short one.
 */
import http from "node:http";
import http2 from "node:http2";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { StatusSchema } from "../../src/gen/google/rpc/status_pb.ts";
import { GetProcessRequestSchema } from "../../src/gen/troupe/v1/process_service_pb.ts";
import { answerTakenMs, untakenAnswerBytesMax } from "../../src/limits.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { envelope } from "../e2e/grpc/raw-http2.ts";
import { largeAnswerBytes, largeId } from "./fake-processes.ts";
import { openTwoFaces, realClock, type TwoFaces } from "./two-faces.ts";

const greedy = "g".repeat(32);
const modest = "m".repeat(32);
/** With what is around them, so many answers are more than may be left. */
const enough = untakenAnswerBytesMax / largeAnswerBytes;

/** Large answers are given up when this is called, and not before. */
let passTakenTime: () => void;
function steeredClock(): Clock {
  const waiting = new Set<() => void>();
  passTakenTime = () => {
    for (const action of waiting) action();
  };
  return {
    ...realClock,
    after(delayMs, action) {
      if (delayMs !== answerTakenMs) return realClock.after(delayMs, action);
      waiting.add(action);
      return () => waiting.delete(action);
    },
  };
}

let faces: TwoFaces;
beforeEach(async () => {
  faces = await openTwoFaces({ keys: `greedy:agent:${greedy},modest:agent:${modest}`, clock: steeredClock() });
});
afterEach(() => faces.close());

/** One call whose answer is read only when asked for. */
interface Asked {
  /** Refusal, or undefined once the answer began to arrive. */
  readonly refusal: Promise<string | undefined>;
  /** Bytes of the answer; rejects when it is broken off. */
  read(): Promise<number>;
}

interface Way {
  ask(key: string, id: number): Asked;
  close(): void;
}

function overHttp2(path: string, headers: http2.OutgoingHttpHeaders, body: (id: number) => Uint8Array): Way {
  const sessions = new Map<string, http2.ClientHttp2Session>();
  return {
    ask(key, id) {
      const session = sessions.get(key) ?? http2.connect(faces.rpc);
      sessions.set(key, session);
      const stream = session.request({
        ":method": "POST",
        ":path": path,
        authorization: `Bearer ${key}`,
        ...headers,
      });
      stream.end(body(id));
      const over = new Promise<void>((resolve, reject) => {
        stream.once("error", reject);
        stream.once("aborted", () => reject(new Error("aborted")));
        stream.once("close", () => (stream.rstCode === 0 ? resolve() : reject(new Error("reset"))));
      });
      over.catch(() => undefined);
      return {
        refusal: new Promise((resolve, reject) => {
          const seeFailure = (head: http2.IncomingHttpHeaders): void => {
            const details = head["grpc-status-details-bin"];
            if (details !== undefined) resolve(statusOf(String(details)));
          };
          stream.once("trailers", seeFailure);
          stream.once("response", (head) => {
            seeFailure(head);
            if (head[":status"] !== 200) resolve(String(head[":status"]));
            stream.once("readable", () => {
              if (stream.readableLength > 0) resolve(undefined);
            });
          });
          stream.once("error", reject);
        }),
        async read() {
          let bytes = 0;
          stream.on("data", (chunk: Buffer) => {
            bytes += chunk.length;
          });
          stream.resume();
          await over;
          return bytes;
        },
      };
    },
    close() {
      for (const session of sessions.values()) session.destroy();
    },
  };
}

function overHttp1(request: (id: number) => { readonly url: string; readonly body?: string }): Way {
  const agent = new http.Agent({ maxSockets: Number.POSITIVE_INFINITY });
  const sent: http.ClientRequest[] = [];
  return {
    ask(key, id) {
      const { url, body } = request(id);
      const asked = http.request(url, {
        agent,
        method: body === undefined ? "GET" : "POST",
        headers: {
          authorization: `Bearer ${key}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
      });
      sent.push(asked);
      asked.end(body);
      const answered = new Promise<http.IncomingMessage>((resolve, reject) => {
        asked.once("response", resolve);
        asked.on("error", reject);
      });
      return {
        refusal: answered.then(({ statusCode }) => (statusCode === 200 ? undefined : String(statusCode))),
        async read() {
          let bytes = 0;
          for await (const chunk of (await answered) as AsyncIterable<Buffer>) bytes += chunk.length;
          return bytes;
        },
      };
    },
    close() {
      for (const request of sent) request.destroy();
      agent.destroy();
    },
  };
}

function statusOf(details: string): string {
  const status = fromBinary(StatusSchema, Buffer.from(details, "base64"));
  return `${status.code} ${status.details.map(({ typeUrl }) => typeUrl.replace(/.*\./, "")).join(" ")}`;
}

const path = "/troupe.v1.ProcessService/GetProcess";
const grpcBody = (id: number): Uint8Array => {
  const message = toBinary(GetProcessRequestSchema, create(GetProcessRequestSchema, { id: BigInt(id) }));
  return envelope(message);
};
const jsonBody = (id: number): Uint8Array => Buffer.from(JSON.stringify({ id: String(id) }));

const ways: readonly (readonly [title: string, open: () => Way, refused: string])[] = [
  ["gRPC", () => overHttp2(path, { "content-type": "application/grpc" }, grpcBody), "8 ErrorInfo RetryInfo"],
  ["gRPC by Connect", () => overHttp2(path, { "content-type": "application/gRPC" }, grpcBody), "8 ErrorInfo RetryInfo"],
  ["Connect over HTTP/2", () => overHttp2(path, { "content-type": "application/json" }, jsonBody), "429"],
  [
    "Connect over HTTP/1.1",
    () => overHttp1((id) => ({ url: faces.rpc + path, body: JSON.stringify({ id: String(id) }) })),
    "429",
  ],
  ["REST", () => overHttp1((id) => ({ url: `${faces.rest}/processes/${id}` })), "429"],
];

describe.each(ways)("answers that are not taken, over %s", (_title, open, refused) => {
  let way: Way;
  beforeEach(() => {
    way = open();
  });
  afterEach(() => way.close());

  async function askForMuch(): Promise<readonly Asked[]> {
    const asked = Array.from({ length: enough }, () => way.ask(greedy, largeId));
    expect(await Promise.all(asked.map(({ refusal }) => refusal))).toEqual(asked.map(() => undefined));
    return asked;
  }

  it("keep further calls of the same caller out, until they are read", async () => {
    const asked = await askForMuch();
    const before = faces.domain.seen.length;
    expect(await way.ask(greedy, 1).refusal).toBe(refused);
    expect(faces.domain.seen.length).toBe(before);
    expect(await way.ask(modest, 1).refusal).toBeUndefined();
    for (const bytes of await Promise.all(asked.map((one) => one.read()))) {
      expect(bytes).toBeGreaterThan(largeAnswerBytes);
    }
    await expect.poll(() => way.ask(greedy, 1).refusal).toBeUndefined();
  });

  it("are no more for calls that came all at once", async () => {
    const asked = Array.from({ length: 2 * enough }, () => way.ask(greedy, largeId));
    const refusals = await Promise.all(asked.map(({ refusal }) => refusal));
    expect(refusals.filter((refusal) => refusal === undefined)).toHaveLength(enough);
    expect([...new Set(refusals)].filter((refusal) => refusal !== undefined)).toEqual([refused]);
    await Promise.all(asked.map((one) => one.read()));
    await expect.poll(() => way.ask(greedy, 1).refusal).toBeUndefined();
  });

  it("are given up after a while", async () => {
    const asked = await askForMuch();
    passTakenTime();
    for (const one of asked) await expect(one.read()).rejects.toThrow();
    expect(await way.ask(greedy, 1).refusal).toBeUndefined();
  });
});
