/** Connections whose client is gone, silent or only sitting there. Time is mocked; connections, with and without TLS, are real. */
import { once } from "node:events";
import http2 from "node:http2";
import net from "node:net";
import tls from "node:tls";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { makeCertificates } from "../../src/certs/make-certificates.ts";
import { listenForRpcs, type RpcServer, type TlsOptions } from "../../src/control-plane/rpc-server.ts";
import { sessionIdleMs, sessionPingAnsweredMs, sessionQuietMs } from "../../src/limits.ts";
import { filesIn, newFolder } from "../certs/certificate-files.ts";
import {
  flags,
  frame,
  frameTypes,
  grpcHeaders,
  headerBlock,
  openConnection,
  preface,
  RawConnection,
} from "../e2e/grpc/raw-http2.ts";
import { ManualClock } from "../runtime/manual-clock.ts";
import { until } from "../until.ts";

interface Pair {
  readonly cert: string;
  readonly key: string;
}

let pair: Pair;
beforeAll(async () => {
  const folder = newFolder();
  await makeCertificates({ folder });
  const files = filesIn(folder);
  pair = { cert: files.text("server.crt"), key: files.text("server.key") };
});

let clock: ManualClock;
let server: RpcServer;
/** Answers the latest request. */
let answer: (() => void) | undefined;
/** Pauses between two looks at a connection that is asked and answers. */
const looks = Math.ceil(sessionIdleMs / sessionQuietMs) + 1;

async function listen(given?: TlsOptions): Promise<string> {
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
    const address = await listen(isSecure ? pair : undefined);
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

/** Whoever is told, or says, that its session is over, and keeps its end of the connection open: stopped, broken or ill-meaning. */
describe.each([
  ["plain text", false],
  ["TLS", true],
])("a client that does not leave, over %s,", (_title, isSecure) => {
  let renew: () => void;

  async function connect(): Promise<RawConnection> {
    const onRenewed: TlsOptions["onRenewed"] = (use) => {
      renew = () => use({ ...pair, clientCa: pair.cert });
      return () => undefined;
    };
    const { hostname: host, port } = new URL(`http://${await listen(isSecure ? { ...pair, onRenewed } : undefined)}`);
    const held = { host, port: Number(port), allowHalfOpen: true };
    const plain = net.connect(held);
    const socket = isSecure ? tls.connect({ socket: plain, ALPNProtocols: ["h2"], rejectUnauthorized: false }) : plain;
    const connection = new RawConnection(socket);
    await once(socket, isSecure ? "secureConnect" : "connect");
    await connection.send(preface, frame(frameTypes.settings, 0, 0));
    await connection.until(() => connection.frames.length > 0);
    await clock.advance(sessionQuietMs); // what it said at first was news
    return connection;
  }

  const heads = (id: number) =>
    frame(frameTypes.headers, flags.endHeaders | flags.endStream, id, headerBlock(grpcHeaders("localhost", "/")));
  const goAway = frame(frameTypes.goaway, 0, 0, Buffer.alloc(8));
  const answerPings = (connection: RawConnection): void => {
    let answered = 0;
    connection.socket.on("data", () => {
      const asked = connection.frames.filter(({ type, flags: bits }) => type === frameTypes.ping && bits === 0);
      for (const { payload } of asked.slice(answered))
        void connection.send(frame(frameTypes.ping, flags.ack, 0, payload));
      answered = asked.length;
    });
  };

  type End = (connection: RawConnection) => Promise<void>;
  const ends: readonly (readonly [title: string, end: End])[] = [
    ["it says GOAWAY", (connection) => connection.send(goAway)],
    ["it says GOAWAY twice", (connection) => connection.send(goAway, goAway)],
    [
      "it says GOAWAY while it is asked",
      async (connection) => {
        await clock.advance(sessionQuietMs);
        await connection.until(() => connection.has(frameTypes.ping, 0));
        await connection.send(goAway);
      },
    ],
    [
      "it says GOAWAY, and takes its last answer",
      async (connection) => {
        await connection.send(heads(1), goAway);
        await until(() => answer !== undefined);
        answer?.();
        await connection.until(() => connection.has(frameTypes.data, 1));
      },
    ],
    [
      "it says GOAWAY, and is silent while its call goes on",
      async (connection) => {
        await connection.send(heads(1), goAway);
        await until(() => answer !== undefined);
      },
    ],
    ["it breaks the protocol", (connection) => connection.send(frame(frameTypes.data, 0, 0))],
    [
      "it only sits there, and answers whenever asked",
      async (connection) => {
        answerPings(connection);
        await passQuiet(looks);
      },
    ],
    ...(isSecure ? ([["the authorities of clients have changed", async () => renew()]] satisfies [string, End][]) : []),
  ];

  it.each(ends)("is cut when %s", async (_how, end) => {
    const connection = await connect();
    await end(connection);
    await passQuiet(4);
    // The server's end alone is not the end of the connection: whoever writes to one that was cut is told by a reset.
    await until(() => {
      connection.socket.write(frame(frameTypes.ping, 0, 0, Buffer.from("anybody?")));
      return connection.socket.destroyed;
    }, 2_000);
    expect(clock.timers).toBe(0);
  });
});
