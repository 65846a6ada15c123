/** Bodies cut into pieces at any place come out as whole messages; what is too long is handed on at once, and leaving is not held up. */
import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { wholeMessages } from "../../src/control-plane/whole-messages.ts";
import { CreateProcessRequestSchema } from "../../src/gen/troupe/v1/process_service_pb.ts";
import { envelope, flags, frame, frameTypes, grpcHeaders, headerBlock, openConnection } from "../e2e/grpc/raw-http2.ts";
import { openTwoFaces, type TwoFaces } from "./two-faces.ts";

const messageBytesMax = 1_000;

function filled(length: number, declared = length): Buffer {
  return envelope(Buffer.alloc(length, length % 251), { declared });
}

async function* pieces(all: Buffer, sizes: () => number): AsyncIterable<Uint8Array> {
  for (let at = 0; at < all.length; ) {
    const end = Math.min(all.length, at + sizes());
    yield all.subarray(at, end);
    at = end;
  }
}

async function handedOn(all: Buffer, sizes: () => number, isEnveloped = true): Promise<Buffer[]> {
  const found: Buffer[] = [];
  for await (const piece of wholeMessages(pieces(all, sizes), { isEnveloped, messageBytesMax })) {
    found.push(Buffer.from(piece));
  }
  return found;
}

const byByte = () => 1;

/** Where each of these ends. */
function ends(lengths: readonly number[]): number[] {
  let at = 0;
  return lengths.map((length) => {
    at += length;
    return at;
  });
}

describe("a stream of messages", () => {
  it("comes out as it was, in whole messages, wherever it was cut", async () => {
    const lengths = fc.array(fc.nat(40), { maxLength: 6 });
    const cuts = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1 });
    await fc.assert(
      fc.asyncProperty(lengths, cuts, async (messages, sizes) => {
        const all = Buffer.concat(messages.map((length) => filled(length)));
        let cut = 0;
        const found = await handedOn(all, () => sizes[cut++ % sizes.length] ?? 1);
        expect(Buffer.concat(found).equals(all)).toBe(true);
        expect(ends(messages.map((length) => length + 5))).toEqual(
          expect.arrayContaining(ends(found.map(({ length }) => length))),
        );
      }),
    );
  });

  it.each<[string, Buffer, readonly number[]]>([
    ["nothing", Buffer.alloc(0), []],
    ["one empty message", filled(0), [5]],
    ["three of them", Buffer.concat([filled(0), filled(0), filled(0)]), [5, 5, 5]],
    ["one of the greatest length", filled(messageBytesMax), [messageBytesMax + 5]],
    ["one that breaks off", filled(7, 8), [12]],
    ["a prefix that breaks off", Buffer.from([0, 0, 0]), [3]],
    ["one and a piece of another", Buffer.concat([filled(3), Buffer.from([0, 0])]), [8, 2]],
  ])("sent byte by byte, %s", async (_title, all, lengths) => {
    expect((await handedOn(all, byByte)).map(({ length }) => length)).toEqual(lengths);
  });

  it.each([messageBytesMax + 1, 0x7fff_ffff, 0xffff_ffff])(
    "a message of %s bytes is handed on as soon as it says so",
    async (declared) => {
      const source = pieces(Buffer.concat([filled(2), filled(3, declared)]), byByte);
      const found: number[] = [];
      for await (const piece of wholeMessages(source, { isEnveloped: true, messageBytesMax })) found.push(piece.length);
      expect(found).toEqual([7, 5, 1, 1, 1]);
    },
  );
});

describe("a body of one message", () => {
  it("comes at once when it has ended", async () => {
    expect((await handedOn(Buffer.alloc(messageBytesMax, 7), byByte, false)).map(({ length }) => length)).toEqual([
      messageBytesMax,
    ]);
  });

  it("is handed on as soon as it is too long", async () => {
    const found = await handedOn(Buffer.alloc(messageBytesMax + 3, 7), byByte, false);
    expect(found.map(({ length }) => length)).toEqual([messageBytesMax + 1, 1, 1]);
  });
});

it("whoever wants no more is not kept waiting for the next piece", async () => {
  let isLeft = false;
  const silent: AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise<never>(() => undefined),
      async return() {
        isLeft = true;
        return { done: true, value: undefined };
      },
    }),
  };
  const iterator = wholeMessages(silent, { isEnveloped: true, messageBytesMax })[Symbol.asyncIterator]();
  void iterator.next();
  await iterator.return?.();
  expect(isLeft).toBe(true);
});

describe("a call whose message comes in tiny frames", () => {
  let faces: TwoFaces;
  beforeAll(async () => {
    faces = await openTwoFaces();
  });
  afterAll(() => faces.close());

  const code = "x".repeat(90_000);
  const message = toBinary(CreateProcessRequestSchema, create(CreateProcessRequestSchema, { code }));
  const prefixed = envelope(message);

  it.each([
    ["gRPC", "application/grpc", prefixed],
    ["gRPC by Connect", "application/gRPC", prefixed],
    ["gRPC-Web", "application/grpc-web+proto", prefixed],
    ["Connect", "application/proto", Buffer.from(message)],
  ])("is answered over %s", async (_title, contentType, bytes) => {
    const address = faces.rpc.replace("http://", "");
    const connection = await openConnection(address);
    const path = "/troupe.v1.ProcessService/CreateProcess";
    const head = grpcHeaders(address, path).map(([name, value]) =>
      name === "content-type" ? ([name, contentType] as const) : ([name, value] as const),
    );
    await connection.send(frame(frameTypes.headers, flags.endHeaders, 1, headerBlock(head)));
    // A window has room for 65,535 bytes until the server opens it further.
    for (let at = 0; at < bytes.length; at += 30_000) {
      const part = bytes.subarray(at, at + 30_000);
      const frames = Array.from(part, (byte) => frame(frameTypes.data, 0, 1, Buffer.from([byte])));
      await connection.send(...frames);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await connection.send(frame(frameTypes.data, flags.endStream, 1));
    expect(await connection.until(() => connection.has(frameTypes.data, 1), 20_000)).toBe(true);
    expect(faces.domain.seen.at(-1)?.input).toMatchObject({ code });
    connection.close();
  });
});
