/** Connections whose client is gone, silent or only sitting there. Time is mocked; connections, with and without TLS, are real. */
import { once } from "node:events";
import http2 from "node:http2";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { makeCertificates } from "../../src/certs/make-certificates.ts";
import { listenForRpcs, type RpcServer } from "../../src/control-plane/rpc-server.ts";
import { sessionIdleMs, sessionPingAnsweredMs, sessionQuietMs } from "../../src/limits.ts";
import { filesIn, newFolder } from "../certs/certificate-files.ts";
import { flags, frame, frameTypes, openConnection } from "../e2e/grpc/raw-http2.ts";
import { ManualClock } from "../runtime/manual-clock.ts";
import { until } from "../until.ts";

interface Tls {
  readonly cert: string;
  readonly key: string;
}

let tls: Tls;
beforeAll(async () => {
  const folder = newFolder();
  await makeCertificates({ folder });
  const files = filesIn(folder);
  tls = { cert: files.text("server.crt"), key: files.text("server.key") };
});

let clock: ManualClock;
let server: RpcServer;
/** Answers the latest request. */
let answer: (() => void) | undefined;
/** Pauses between two looks at a connection that is asked and answers. */
const looks = Math.ceil(sessionIdleMs / sessionQuietMs) + 1;

async function listen(given?: Tls): Promise<string> {
  clock = new ManualClock();
  answer = undefined;
  server = await listenForRpcs({
    host: "127.0.0.1",
    port: 0,
    tls: given,
    clock,
    stream: () => false,
    handler: (_request, response) => {
      answer = () => void response.end("answered");
    },
  });
  return `127.0.0.1:${server.address.port}`;
}

afterEach(async () => {
  const closed = server.close(0);
  await clock.advance(1);
  await closed;
});

/** The clock goes on while frames really travel. */
async function passQuiet(times: number, isOver = () => false): Promise<void> {
  for (let time = 0; time < times && !isOver(); time++) {
    await clock.advance(sessionQuietMs);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe("a client that says nothing any more", () => {
  it("is asked, and cut when no answer comes in time", async () => {
    const connection = await openConnection(await listen());
    const asked = () => connection.has(frameTypes.ping, 0);
    await clock.advance(sessionQuietMs); // what it said at first was news
    await clock.advance(sessionQuietMs - 1);
    expect(asked()).toBe(false);
    await clock.advance(1);
    expect(await connection.until(asked)).toBe(true);
    await clock.advance(sessionPingAnsweredMs - 1);
    expect(connection.isClosed).toBe(false);
    await clock.advance(1);
    expect(await connection.until(() => connection.isClosed)).toBe(true);
    expect(clock.timers).toBe(0);
  });

  it("is not asked while it sends something", async () => {
    const connection = await openConnection(await listen());
    for (let time = 0; time < 3; time++) {
      await clock.advance(sessionQuietMs / 2);
      const before = connection.frames.length;
      await connection.send(frame(frameTypes.ping, 0, 0, Buffer.from("of ours!")));
      expect(await connection.until(() => connection.frames.length > before)).toBe(true);
    }
    expect(connection.frames.filter(({ type, flags: bits }) => type === frameTypes.ping && bits !== flags.ack)).toEqual(
      [],
    );
    connection.close();
  });
});

describe.each([
  ["plain text", false],
  ["TLS", true],
])("a client that answers, over %s,", (_title, isSecure) => {
  async function connect(): Promise<{ session: http2.ClientHttp2Session; pings: () => number }> {
    const address = await listen(isSecure ? tls : undefined);
    const session = isSecure
      ? http2.connect(`https://${address}`, { rejectUnauthorized: false })
      : http2.connect(`http://${address}`);
    let pings = 0;
    session.on("ping", () => {
      pings += 1;
    });
    session.on("error", () => undefined);
    await once(session, "remoteSettings");
    await clock.advance(sessionQuietMs); // what it said at first was news
    return { session, pings: () => pings };
  }

  it("is kept, and told to come again when it only sits there", async () => {
    const { session, pings } = await connect();
    let isToldToGo = false;
    session.once("goaway", (code) => {
      isToldToGo = code === http2.constants.NGHTTP2_NO_ERROR;
    });
    const closed = once(session, "close");
    await passQuiet(3);
    await until(() => pings() >= 1);
    expect(session.closed).toBe(false);
    await passQuiet(looks, () => isToldToGo);
    await closed;
    expect(isToldToGo).toBe(true);
  });

  it("has its call answered, however long that takes", async () => {
    const { session } = await connect();
    const stream = session.request({ ":path": "/" });
    await until(() => answer !== undefined);
    await passQuiet(2 * looks, () => session.closed);
    await until(() => session.closed);
    expect(stream.destroyed).toBe(false);
    answer?.();
    stream.setEncoding("utf8");
    let text = "";
    for await (const chunk of stream) text += chunk;
    expect(text).toBe("answered");
    await until(() => session.destroyed);
  });
});
