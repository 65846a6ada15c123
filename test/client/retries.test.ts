/** What is tried again and what is not: a control plane that fails as it is told to, and counts. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { afterEach, expect, it } from "vitest";
import { createTroupeClient, type TroupeClient, TroupeError } from "../../src/client/client.ts";
import { toConnectError } from "../../src/control-plane/connect-error.ts";
import { Failure, type FailureKind } from "../../src/errors/failure.ts";
import { ProcessService } from "../../src/gen/troupe/v1/process_service_pb.ts";

let server: Server | undefined;
let client: TroupeClient | undefined;
let calls = 0;

afterEach(() => {
  client?.close();
  server?.closeAllConnections();
  server?.close();
});

/** Fails `failures` times, then answers. */
async function open(failures: number, fail: () => never): Promise<TroupeClient> {
  calls = 0;
  const answer = <Output>(output: Output): Output => {
    calls += 1;
    return calls <= failures ? fail() : output;
  };
  const handler = connectNodeAdapter({
    routes: (router) =>
      router.service(ProcessService, {
        getProcess: () => answer({}),
        createProcess: () => answer({ id: 7n }),
      }),
  });
  server = createServer(handler).listen(0, "127.0.0.1");
  await new Promise((resolve) => server?.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  client = createTroupeClient({ baseUrl: `http://127.0.0.1:${port}` });
  return client;
}

const failure = (kind: FailureKind, retryAfterSeconds?: number) => (): never => {
  const details = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  throw toConnectError(new Failure(kind, "Not now", details));
};
const dropped = (): never => {
  server?.closeAllConnections();
  throw new ConnectError("nobody reads this", Code.Internal);
};

const fates: [what: string, fail: () => never, read: number, create: number][] = [
  ["unavailable", failure("unavailable"), 2, 1],
  ["overloaded", failure("overloaded", 1), 2, 1],
  ["queue_full", failure("queue_full", 1), 2, 1],
  ["rate_limit_exceeded", failure("rate_limit_exceeded", 1), 2, 2],
  ["rate_limit_exceeded for longer than anybody waits", failure("rate_limit_exceeded", 31), 1, 1],
  ["a lost connection", dropped, 2, 1],
  ["internal", failure("internal"), 1, 1],
  ["not_found", failure("not_found"), 1, 1],
  ["upstream_failed", failure("upstream_failed"), 1, 1],
  ["timeout", failure("timeout"), 1, 1],
];

it.each(fates)("after %s a read is tried as often as it should, and a creation", async (_what, fail, read, create) => {
  const reading = await open(1, fail);
  await reading.processes.getProcess({ id: 1n }).catch((error: unknown) => expect(error).toBeInstanceOf(TroupeError));
  expect(calls).toBe(read);
  reading.close();
  const creating = await open(1, fail);
  await creating.processes.createProcess({ code: "1" }).catch((error: unknown) => {
    expect(error).toBeInstanceOf(TroupeError);
  });
  expect(calls).toBe(create);
});

it("a call is tried four times at most, and rejects with the last refusal", async () => {
  const troubled = await open(99, failure("unavailable"));
  await expect(troubled.processes.getProcess({ id: 1n })).rejects.toMatchObject({ code: "unavailable" });
  expect(calls).toBe(4);
});

it("the wait that a refusal asks for is told", async () => {
  const troubled = await open(99, failure("rate_limit_exceeded", 40));
  await expect(troubled.processes.createProcess({ code: "1" })).rejects.toMatchObject({
    code: "rate_limit_exceeded",
    message: "Not now",
    retryAfterSeconds: 40,
  });
});

it("the deadline of a call spans all its tries", async () => {
  const troubled = await open(99, failure("rate_limit_exceeded", 20));
  const before = performance.now();
  await expect(troubled.processes.getProcess({ id: 1n }, { timeoutMs: 300 })).rejects.toMatchObject({
    code: "timeout",
  });
  expect(performance.now() - before).toBeLessThan(10_000);
});
