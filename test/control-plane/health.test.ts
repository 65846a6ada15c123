/** grpc.health.v1: the node and each service follow readiness; watches tell every change and end when the server closes. */
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../src/gen/grpc/health/v1/health_pb.ts";
import { openTwoFaces, type TwoFaces } from "./two-faces.ts";

let faces: TwoFaces;
beforeEach(async () => {
  faces = await openTwoFaces({ keys: "a:agent:key" });
});
afterEach(() => faces.close());

const health = () => createClient(Health, createGrpcTransport({ baseUrl: faces.rpc }));

describe("check and list", () => {
  it.each(["", "troupe.v1.ProcessService", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"])(
    "%j follows readiness",
    async (service) => {
      expect((await health().check({ service })).status).toBe(Status.SERVING);
      faces.readiness.set(false);
      expect((await health().check({ service })).status).toBe(Status.NOT_SERVING);
      faces.readiness.set(true);
      expect((await health().check({ service })).status).toBe(Status.SERVING);
    },
  );

  it("an unknown service is NOT_FOUND", async () => {
    const error = await health().check({ service: "troupe.v1.Nothing" }).catch(ConnectError.from);
    expect((error as ConnectError).code).toBe(Code.NotFound);
  });

  it("list has the node and every service", async () => {
    const { statuses } = await health().list({});
    expect(Object.keys(statuses)).toEqual(
      expect.arrayContaining(["", "troupe.v1.ProcessService", "troupe.v1.ToolService", "grpc.health.v1.Health"]),
    );
    expect(new Set(Object.values(statuses).map(({ status }) => status))).toEqual(new Set([Status.SERVING]));
  });
});

describe("watch", () => {
  it("tells the present state, each change, and leaves nothing behind when the client goes", async () => {
    const stop = new AbortController();
    const seen: Status[] = [];
    const watching = (async () => {
      for await (const { status } of health().watch({ service: "" }, { signal: stop.signal })) seen.push(status);
    })().catch(ConnectError.from);
    await expect.poll(() => seen).toEqual([Status.SERVING]);
    faces.readiness.set(true);
    faces.readiness.set(false);
    await expect.poll(() => seen).toEqual([Status.SERVING, Status.NOT_SERVING]);
    faces.readiness.set(true);
    await expect.poll(() => seen).toEqual([Status.SERVING, Status.NOT_SERVING, Status.SERVING]);
    stop.abort();
    await watching;
    await expect.poll(() => faces.readiness.listeners).toBe(0);
  });

  it("of an unknown service is SERVICE_UNKNOWN and stays open", async () => {
    const stop = new AbortController();
    const seen: Status[] = [];
    const watching = (async () => {
      for await (const { status } of health().watch({ service: "nope" }, { signal: stop.signal })) seen.push(status);
    })().catch(ConnectError.from);
    await expect.poll(() => seen).toEqual([Status.SERVICE_UNKNOWN]);
    stop.abort();
    await watching;
  });

  it("ends with NOT_SERVING and UNAVAILABLE when the server closes, and does not hold it", async () => {
    const seen: Status[] = [];
    const watching = (async () => {
      for await (const { status } of health().watch({ service: "" })) seen.push(status);
    })().catch((reason: unknown) => ConnectError.from(reason));
    await expect.poll(() => seen).toEqual([Status.SERVING]);
    const started = performance.now();
    await faces.controlPlane.close(10_000);
    expect(performance.now() - started).toBeLessThan(5_000);
    expect(((await watching) as ConnectError).code).toBe(Code.Unavailable);
    expect(seen).toEqual([Status.SERVING, Status.NOT_SERVING]);
  });
});
