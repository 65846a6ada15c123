/**
 * What RFC 9113 and RFC 7541 (HPACK) demand of a server, as bytes to send and what must come back: the rules that h2spec looks at. A
 * rule is about framing only: what the server answers to a well-formed request is not looked at.
 */
import {
  flags,
  frame,
  type HeaderList,
  headerBlock,
  preface,
  type RawConnection,
  setting,
  frameTypes as type,
  u32,
} from "./raw-http2.ts";

/**
 * connection: GOAWAY, or the connection is closed. stream: that, or RST_STREAM, or a refusal of this request alone. ignored: a PING after
 * it is acknowledged, and nothing is said against it. answered: the request on stream 1 gets its whole answer.
 */
export type Demand = "connection" | "stream" | "ignored" | "answered";

export interface Rule {
  readonly title: string;
  readonly demand: Demand;
  /** Without a greeting: the rule is about the greeting itself. */
  readonly bare?: boolean;
  send(connection: RawConnection, request: Request): Promise<void>;
}

export interface Request {
  /** Headers of a request that would be answered. */
  fields(more?: HeaderList, without?: readonly string[]): HeaderList;
  /** The same as a block. */
  block(more?: HeaderList, without?: readonly string[]): Buffer;
}

export function requestTo(authority: string): Request {
  const fields = (more: HeaderList = [], without: readonly string[] = []): HeaderList => {
    const ordinary: HeaderList = [
      [":method", "POST"],
      [":scheme", "http"],
      [":path", "/nothing.Service/Nothing"],
      [":authority", authority],
    ];
    return [...ordinary.filter(([name]) => !without.includes(name)), ...more];
  };
  return { fields, block: (more, without) => headerBlock(fields(more, without)) };
}

const { endHeaders, endStream, padded, ack } = flags;
const whole = endHeaders | endStream;

/** A request whose head is as given and that has no body. */
const head = (more: HeaderList, without: readonly string[] = []): Rule["send"] => {
  return (connection, request) => connection.send(frame(type.headers, whole, 1, request.block(more, without)));
};
const bytes = (...parts: Buffer[]): Rule["send"] => {
  return (connection) => connection.send(...parts);
};
/** A request that is open, and then the bytes. */
const opened = (...parts: Buffer[]): Rule["send"] => {
  return (connection, request) => connection.send(frame(type.headers, endHeaders, 1, request.block()), ...parts);
};
/** A request that is sent to its end, and then the bytes. */
const ended = (...parts: Buffer[]): Rule["send"] => {
  return (connection, request) => connection.send(frame(type.headers, whole, 1, request.block()), ...parts);
};
const rule = (title: string, demand: Demand, send: Rule["send"], bare = false): Rule => ({ title, demand, send, bare });

const opaque = Buffer.from("opaque!!");
const kilobytes = (count: number): Buffer => Buffer.alloc(count * 1024);

export const rules: readonly Rule[] = [
  // Greeting and frames
  rule(
    "something else in place of the preface",
    "connection",
    bytes(Buffer.from("PRO * HTTP/2.0\r\n\r\nSM\r\n\r\n")),
    true,
  ),
  rule(
    "a preface that goes wrong at its end",
    "connection",
    bytes(Buffer.from("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n")),
    true,
  ),
  rule("a preface and no SETTINGS after it", "connection", bytes(preface, frame(type.ping, 0, 0, opaque)), true),
  rule("a frame of a type that nobody knows", "ignored", bytes(frame(0xf0, 0, 0, opaque))),
  rule("flags that nobody knows", "ignored", bytes(frame(type.ping, 0x16, 0, opaque))),
  rule("the reserved bit", "ignored", bytes(frame(type.ping, 0, 0x8000_0000, opaque))),
  rule("DATA of the greatest size", "answered", opened(frame(type.data, endStream, 1, kilobytes(16)))),
  rule("DATA beyond the greatest size", "stream", opened(frame(type.data, endStream, 1, Buffer.alloc(16_385)))),
  rule("HEADERS beyond the greatest size", "connection", (connection, request) =>
    connection.send(frame(type.headers, whole, 1, Buffer.concat([request.block(), kilobytes(17)]))),
  ),
  rule(
    "a header block that is none",
    "connection",
    bytes(frame(type.headers, whole, 1, Buffer.from("ffffffffff01", "hex"))),
  ),
  rule("PRIORITY within a header block", "connection", (connection, request) =>
    connection.send(
      frame(type.headers, endStream, 1, request.block()),
      frame(type.priority, 0, 1, Buffer.from([0, 0, 0, 0, 255])),
    ),
  ),
  rule("HEADERS of another stream within a header block", "connection", (connection, request) =>
    connection.send(frame(type.headers, endStream, 1, request.block()), frame(type.headers, whole, 3, request.block())),
  ),
  rule("a frame that nobody knows within a header block", "connection", (connection, request) =>
    connection.send(frame(type.headers, endStream, 1, request.block()), frame(0xf0, 0, 1, opaque)),
  ),

  // States of a stream
  rule("DATA on an idle stream", "connection", bytes(frame(type.data, endStream, 1, opaque))),
  rule("RST_STREAM on an idle stream", "connection", bytes(frame(type.rstStream, 0, 1, u32(8)))),
  rule("WINDOW_UPDATE on an idle stream", "connection", bytes(frame(type.windowUpdate, 0, 1, u32(100)))),
  rule("CONTINUATION on an idle stream", "connection", bytes(frame(type.continuation, endHeaders, 1, opaque))),
  rule("DATA after the end of the stream", "stream", ended(frame(type.data, endStream, 1, opaque))),
  rule("HEADERS after the end of the stream", "stream", (connection, request) =>
    connection.send(frame(type.headers, whole, 1, request.block()), frame(type.headers, whole, 1, request.block())),
  ),
  rule("CONTINUATION after the end of the stream", "stream", ended(frame(type.continuation, endHeaders, 1, opaque))),
  rule(
    "DATA after a reset",
    "stream",
    opened(frame(type.rstStream, 0, 1, u32(8)), frame(type.data, endStream, 1, opaque)),
  ),
  rule("HEADERS after a reset", "stream", (connection, request) =>
    connection.send(
      frame(type.headers, endHeaders, 1, request.block()),
      frame(type.rstStream, 0, 1, u32(8)),
      frame(type.headers, whole, 1, request.block()),
    ),
  ),
  rule(
    "CONTINUATION after a reset",
    "connection",
    opened(frame(type.rstStream, 0, 1, u32(8)), frame(type.continuation, endHeaders, 1, opaque)),
  ),
  rule(
    "WINDOW_UPDATE and RST_STREAM after the end of the stream",
    "ignored",
    ended(frame(type.windowUpdate, 0, 1, u32(1)), frame(type.rstStream, 0, 1, u32(8))),
  ),
  rule("a stream of an even number", "connection", (connection, request) =>
    connection.send(frame(type.headers, whole, 2, request.block())),
  ),
  rule("a stream of a lower number than one before", "connection", (connection, request) =>
    connection.send(frame(type.headers, whole, 5, request.block()), frame(type.headers, whole, 3, request.block())),
  ),
  rule("more streams than are allowed", "stream", async (connection, request) => {
    const most = 257;
    for (let at = 0; at < most; at += 1)
      await connection.send(frame(type.headers, endHeaders, 1 + 2 * at, request.block()));
  }),
  rule("GOAWAY and the end after a fault", "connection", bytes(frame(type.ping, 0, 0, Buffer.alloc(4)))),

  // DATA
  rule("DATA on stream 0", "connection", bytes(frame(type.data, endStream, 0, opaque))),
  rule(
    "DATA with more padding than there is",
    "connection",
    opened(frame(type.data, endStream | padded, 1, Buffer.from([200, 1, 2]))),
  ),
  rule("DATA with padding", "answered", opened(frame(type.data, endStream | padded, 1, Buffer.from([2, 1, 0, 0])))),

  // HEADERS
  rule("HEADERS on stream 0", "connection", (connection, request) =>
    connection.send(frame(type.headers, whole, 0, request.block())),
  ),
  rule("HEADERS with more padding than there is", "connection", (connection, request) =>
    connection.send(
      frame(type.headers, whole | padded, 1, Buffer.concat([Buffer.from([255]), request.block().subarray(0, 20)])),
    ),
  ),
  rule("HEADERS with padding", "answered", (connection, request) =>
    connection.send(
      frame(type.headers, whole | padded, 1, Buffer.concat([Buffer.from([3]), request.block(), Buffer.alloc(3)])),
    ),
  ),
  rule("HEADERS with a priority", "answered", (connection, request) =>
    connection.send(
      frame(type.headers, whole | flags.priority, 1, Buffer.concat([Buffer.from([0, 0, 0, 0, 15]), request.block()])),
    ),
  ),

  // PRIORITY
  rule("PRIORITY on stream 0", "connection", bytes(frame(type.priority, 0, 0, Buffer.from([0, 0, 0, 1, 255])))),
  rule("PRIORITY of four bytes", "stream", bytes(frame(type.priority, 0, 1, Buffer.from([0, 0, 0, 1])))),
  rule("PRIORITY of an idle stream", "ignored", bytes(frame(type.priority, 0, 1, Buffer.from([0, 0, 0, 0, 15])))),

  // RST_STREAM
  rule("RST_STREAM on stream 0", "connection", bytes(frame(type.rstStream, 0, 0, u32(8)))),
  rule("RST_STREAM of three bytes", "connection", opened(frame(type.rstStream, 0, 1, Buffer.alloc(3)))),
  rule("RST_STREAM for a reason that nobody knows", "ignored", opened(frame(type.rstStream, 0, 1, u32(0xff)))),

  // SETTINGS
  rule("SETTINGS", "ignored", bytes(frame(type.settings, 0, 0, setting(3, 100)))),
  rule(
    "an acknowledgement of SETTINGS with a payload",
    "connection",
    bytes(frame(type.settings, ack, 0, setting(3, 100))),
  ),
  rule("SETTINGS on a stream", "connection", bytes(frame(type.settings, 0, 1, setting(3, 100)))),
  rule("SETTINGS of a broken length", "connection", bytes(frame(type.settings, 0, 0, Buffer.alloc(3)))),
  rule("ENABLE_PUSH of 2", "connection", bytes(frame(type.settings, 0, 0, setting(2, 2)))),
  rule("INITIAL_WINDOW_SIZE beyond 31 bits", "connection", bytes(frame(type.settings, 0, 0, setting(4, 0x8000_0000)))),
  rule("MAX_FRAME_SIZE below the least", "connection", bytes(frame(type.settings, 0, 0, setting(5, 16_383)))),
  rule("MAX_FRAME_SIZE beyond 24 bits", "connection", bytes(frame(type.settings, 0, 0, setting(5, 1 << 24)))),
  rule("a setting that nobody knows", "ignored", bytes(frame(type.settings, 0, 0, setting(0xff, 1)))),
  rule("the same setting twice", "answered", (connection, request) =>
    connection.send(
      frame(type.settings, 0, 0, Buffer.concat([setting(4, 100), setting(4, 65_535)])),
      frame(type.headers, whole, 1, request.block()),
    ),
  ),

  // PUSH_PROMISE
  rule("PUSH_PROMISE from a client", "connection", (connection, request) =>
    connection.send(
      frame(type.headers, endHeaders, 1, request.block()),
      frame(type.pushPromise, endHeaders, 1, Buffer.concat([u32(2), request.block()])),
    ),
  ),

  // PING
  rule("PING", "ignored", bytes(frame(type.ping, 0, 0, opaque))),
  rule("an acknowledgement of a PING that was not sent", "ignored", bytes(frame(type.ping, ack, 0, opaque))),
  rule("PING on a stream", "connection", bytes(frame(type.ping, 0, 1, opaque))),
  rule("PING of six bytes", "connection", bytes(frame(type.ping, 0, 0, Buffer.alloc(6)))),

  // GOAWAY
  rule("GOAWAY on a stream", "connection", bytes(frame(type.goaway, 0, 1, Buffer.alloc(8)))),

  // WINDOW_UPDATE and flow control
  rule("WINDOW_UPDATE by nothing on the connection", "connection", bytes(frame(type.windowUpdate, 0, 0, u32(0)))),
  rule("WINDOW_UPDATE by nothing on a stream", "stream", opened(frame(type.windowUpdate, 0, 1, u32(0)))),
  rule("WINDOW_UPDATE of three bytes", "connection", bytes(frame(type.windowUpdate, 0, 0, Buffer.alloc(3)))),
  rule(
    "a window of the connection beyond 31 bits",
    "connection",
    bytes(frame(type.windowUpdate, 0, 0, u32(0x7fff_ffff)), frame(type.windowUpdate, 0, 0, u32(0x7fff_ffff))),
  ),
  rule(
    "a window of a stream beyond 31 bits",
    "stream",
    opened(frame(type.windowUpdate, 0, 1, u32(0x7fff_ffff)), frame(type.windowUpdate, 0, 1, u32(0x7fff_ffff))),
  ),
  rule(
    "a window that SETTINGS bring beyond 31 bits",
    "connection",
    opened(frame(type.windowUpdate, 0, 1, u32(0x7fff_0000)), frame(type.settings, 0, 0, setting(4, 0x7fff_ffff))),
  ),
  rule("a window of nothing that is opened later", "answered", async (connection, request) => {
    await connection.send(frame(type.settings, 0, 0, setting(4, 0)), frame(type.headers, whole, 1, request.block()));
    await connection.send(frame(type.settings, 0, 0, setting(4, 65_535)));
  }),

  // CONTINUATION
  rule("a header block in three parts", "answered", (connection, request) => {
    const block = request.block();
    return connection.send(
      frame(type.headers, endStream, 1, block.subarray(0, 5)),
      frame(type.continuation, 0, 1, block.subarray(5, 20)),
      frame(type.continuation, endHeaders, 1, block.subarray(20)),
    );
  }),
  rule("a header block with empty parts", "answered", (connection, request) =>
    connection.send(
      frame(type.headers, endStream, 1),
      frame(type.continuation, 0, 1),
      frame(type.continuation, endHeaders, 1, request.block()),
    ),
  ),
  rule("DATA between the parts of a header block", "connection", (connection, request) =>
    connection.send(frame(type.headers, 0, 1, request.block()), frame(type.data, endStream, 1, opaque)),
  ),
  rule("CONTINUATION on stream 0", "connection", (connection, request) =>
    connection.send(frame(type.headers, endStream, 1, request.block()), frame(type.continuation, endHeaders, 0)),
  ),
  rule(
    "CONTINUATION after a whole header block",
    "connection",
    opened(frame(type.continuation, endHeaders, 1, opaque)),
  ),
  rule(
    "CONTINUATION after DATA",
    "connection",
    opened(frame(type.data, 0, 1, opaque), frame(type.continuation, endHeaders, 1, opaque)),
  ),

  // Requests
  rule("a request without a body", "answered", head([])),
  rule("a request with a body", "answered", opened(frame(type.data, endStream, 1, opaque))),
  rule("a request with trailers", "answered", (connection, request) =>
    connection.send(
      frame(type.headers, endHeaders, 1, request.block()),
      frame(type.data, 0, 1, opaque),
      frame(type.headers, whole, 1, headerBlock([["x-trailer", "end"]])),
    ),
  ),
  rule("a second header block that does not end the stream", "stream", (connection, request) =>
    connection.send(
      frame(type.headers, endHeaders, 1, request.block()),
      frame(type.headers, endHeaders, 1, request.block()),
    ),
  ),
  rule("a header name with a capital letter", "stream", head([["X-Test", "a"]])),
  rule("a header name with a space", "stream", head([["x test", "a"]])),
  rule("a header value with NUL", "stream", head([["x-test", "a\u0000b"]])),
  rule("a header value with a line break", "stream", head([["x-test", "a\r\nb: c"]])),
  rule("a pseudo-header that nobody knows", "stream", head([[":test", "a"]])),
  rule("a pseudo-header of answers", "stream", head([[":status", "200"]])),
  rule(
    "a pseudo-header after others",
    "stream",
    head(
      [
        ["x-test", "a"],
        [":path", "/"],
      ],
      [":path"],
    ),
  ),
  rule("a pseudo-header among trailers", "stream", (connection, request) =>
    connection.send(
      frame(type.headers, endHeaders, 1, request.block()),
      frame(type.data, 0, 1, opaque),
      frame(type.headers, whole, 1, headerBlock([[":method", "POST"]])),
    ),
  ),
  ...["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"].map((name) =>
    rule(`the header ${name}`, "stream", head([[name, "keep-alive"]])),
  ),
  rule("a TE that is not trailers", "stream", head([["te", "trailers, deflate"]])),
  rule("a TE of trailers", "answered", head([["te", "trailers"]])),
  rule("an empty path", "stream", head([[":path", ""]], [":path"])),
  ...[":method", ":scheme", ":path"].map((name) => rule(`no ${name}`, "stream", head([], [name]))),
  ...(
    [
      [":method", "POST"],
      [":scheme", "http"],
      [":path", "/"],
    ] as const
  ).map(([name, value]) => rule(`two of ${name}`, "stream", head([[name, value]]))),
  rule("a content-length that is not the body's", "stream", (connection, request) =>
    connection.send(
      frame(type.headers, endHeaders, 1, request.block([["content-length", "1"]])),
      frame(type.data, endStream, 1, opaque),
    ),
  ),
  rule("a content-length that is not that of two parts", "stream", (connection, request) =>
    connection.send(
      frame(type.headers, endHeaders, 1, request.block([["content-length", "1"]])),
      frame(type.data, 0, 1, opaque),
      frame(type.data, endStream, 1, opaque),
    ),
  ),
  rule("a content-length and no body", "stream", head([["content-length", "4"]])),

  // HPACK
  rule("an index that no table has", "connection", (connection, request) =>
    connection.send(frame(type.headers, whole, 1, Buffer.concat([request.block(), Buffer.from([0xc6])]))),
  ),
  rule("a name by an index that no table has", "connection", (connection, request) =>
    connection.send(
      frame(type.headers, whole, 1, Buffer.concat([request.block(), Buffer.from([0x7f, 0x10, 1, 0x61])])),
    ),
  ),
  rule("the index 0", "connection", (connection, request) =>
    connection.send(frame(type.headers, whole, 1, Buffer.concat([request.block(), Buffer.from([0x80])]))),
  ),
  rule("a new size of the table at the end of a block", "connection", (connection, request) =>
    connection.send(frame(type.headers, whole, 1, Buffer.concat([request.block(), Buffer.from([0x20])]))),
  ),
  rule("a size of the table beyond what is allowed", "connection", (connection, request) =>
    connection.send(
      frame(type.headers, whole, 1, Buffer.concat([Buffer.from([0x3f, 0xe1, 0xff, 0x03]), request.block()])),
    ),
  ),
  rule("an integer that does not end", "connection", (connection, request) =>
    connection.send(frame(type.headers, whole, 1, Buffer.concat([request.block(), Buffer.alloc(20, 0xff)]))),
  ),
  rule("a Huffman text padded by more than seven bits", "connection", huffman([0xff, 0xff])),
  rule("a Huffman text padded by zeros", "connection", huffman([0x18])),
  rule("a Huffman text with the end of text in it", "connection", huffman([0xff, 0xff, 0xff, 0xff])),
  rule("a text that is longer than its block", "connection", (connection, request) =>
    connection.send(
      frame(type.headers, whole, 1, Buffer.concat([request.block(), Buffer.from([0, 1, 0x78, 100, 0x61])])),
    ),
  ),
];

/** A header `x` whose value is these bytes, said to be in Huffman's code; `a` is 00011, and padding has to be ones. */
function huffman(value: readonly number[]): Rule["send"] {
  const field = Buffer.from([0, 1, 0x78, 0x80 | value.length, ...value]);
  return (connection, request) =>
    connection.send(frame(type.headers, whole, 1, Buffer.concat([request.block(), field])));
}
