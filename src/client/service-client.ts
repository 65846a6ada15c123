/** A client of one service whose calls reject with TroupeError, and with nothing else. */
import type { DescMessage, DescService } from "@bufbuild/protobuf";
import { type CallOptions, type Client, createClient, type Transport } from "@connectrpc/connect";
import { toTroupeError } from "./troupe-error.ts";

type Unary = (request: unknown, options?: CallOptions) => Promise<unknown>;
type ServerStream = (request: unknown, options?: CallOptions) => AsyncIterable<unknown>;

export function serviceClient<Service extends DescService>(service: Service, transport: Transport): Client<Service> {
  const plain = createClient(service, transport) as Readonly<Record<string, Unary & ServerStream>>;
  const methods = service.methods.map(({ localName, methodKind, input }) => {
    const call = plain[localName];
    if (call === undefined) throw new Error(`There is no call "${localName}"`);
    return [localName, methodKind === "unary" ? unary(call, input) : stream(call, input)];
  });
  return Object.fromEntries(methods) as Client<Service>;
}

function unary(call: Unary, input: DescMessage): Unary {
  return async (request, options) => {
    try {
      return await call(request, wholeMs(options));
    } catch (error) {
      throw toTroupeError(error, options?.signal?.aborted === true, input);
    }
  };
}

function stream(call: ServerStream, input: DescMessage): ServerStream {
  return async function* (request, options) {
    try {
      yield* call(request, wholeMs({ timeoutMs: noTimeout, ...options }));
    } catch (error) {
      throw toTroupeError(error, options?.signal?.aborted === true, input);
    }
  };
}

/** A stream goes on for as long as there is something to tell. */
const noTimeout = 0;

/** On the wire a timeout has no fractions. */
function wholeMs(options: CallOptions | undefined): CallOptions | undefined {
  return options?.timeoutMs === undefined ? options : { ...options, timeoutMs: Math.ceil(options.timeoutMs) };
}
