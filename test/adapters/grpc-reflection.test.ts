/** Discovery by reflection: both versions, honest servers of several habits, and servers that lie. */
import { clone, create, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, ServiceDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { grpcServicesMax } from "../../src/limits.ts";
import type { Adapter } from "../../src/ports/adapter.ts";
import { openTwoFaces } from "../control-plane/two-faces.ts";
import { recordingLog } from "./adapter-bench.ts";
import { discover, documentOf, failureOf, hydrated, loopbackJudge, openTestGrpc } from "./grpc-bench.ts";
import { honestReflection, listed } from "./grpc-reflection-server.ts";
import {
  openServer,
  type Reflection,
  type ReflectionAnswer,
  registryOf,
  type ServerOptions,
  shopSet,
  type TestServer,
} from "./grpc-server.ts";

let adapter: Adapter;
const log = recordingLog();
const open: { close(): void }[] = [];
beforeAll(async () => {
  adapter = await openTestGrpc(loopbackJudge(), log);
});
afterEach(() => {
  for (const each of open.splice(0)) each.close();
});
afterAll(() => adapter.close());

async function serve(options: ServerOptions): Promise<TestServer> {
  const server = await openServer({ handlers: { GetItem: () => ({ title: "Hat" }) }, ...options });
  open.push(server);
  return server;
}

async function installed(text: string, settings: Parameters<typeof hydrated>[2] = {}) {
  const shop = await hydrated(adapter, text, settings);
  open.push({ close: () => shop.service.close?.() });
  return shop;
}

describe("an honest target", () => {
  it.each<[string, ServerOptions]>([
    ["v1, one file at a time", { reflection: honestReflection(shopSet) }],
    ["v1, all files at once", { reflection: honestReflection(shopSet, { files: "all" }) }],
    ["v1alpha alone", { reflection: honestReflection(shopSet), reflectionVersion: "v1alpha" }],
    ["no comments and no JSON names", { reflection: honestReflection(shopSet, { bare: true }) }],
    [
      "no well-known types",
      {
        reflection: honestReflection(shopSet, {
          withheld: ["google/protobuf/any.proto", "google/protobuf/struct.proto"],
        }),
      },
    ],
  ])("with %s is described, and its tools can be called", async (_what, options) => {
    const { target } = await serve(options);
    const document = await discover(adapter, { url: target });
    const listed = ["acme.legacy.Shop", "acme.shop.v1.Shop"];
    expect(JSON.parse(document)).toEqual({ target, reflection: true, listed, descriptorSet: expect.any(String) });
    const shop = await installed(document);
    expect(shop.definition.tools.length).toBeGreaterThan(10);
    const { message } = await shop.call("acme_shop_v1_Shop_GetItem", { itemId: "7" });
    expect(message).toEqual({ itemId: "", title: "Hat", colour: "COLOUR_UNSPECIFIED" });
  });

  it("is described the same each time", async () => {
    const { target } = await serve({ reflection: honestReflection(shopSet) });
    expect(await discover(adapter, { url: target })).toBe(await discover(adapter, { url: target }));
  });

  it("does not offer reflection and health as tools", async () => {
    const names = ["grpc.reflection.v1.ServerReflection", "grpc.health.v1.Health"];
    const { target } = await serve({ reflection: honestReflection(shopSet, { alsoListed: names }) });
    const { definition } = await installed(await discover(adapter, { url: target }));
    expect(definition.tools.filter(({ id }) => /Reflection|Health/.test(id))).toEqual([]);
  });

  it("that lists a service it does not describe is used without it, and the log says so", async () => {
    const { target } = await serve({ reflection: honestReflection(shopSet, { alsoListed: ["acme.Ghost"] }) });
    const { definition } = await installed(await discover(adapter, { url: target }));
    expect(definition.tools.length).toBeGreaterThan(10);
    expect(log.lines).toContainEqual(expect.objectContaining({ event: "grpc-services-not-described" }));
  });

  it("is offered with the services it lists, not with others in the same files", async () => {
    const honest = honestReflection(shopSet);
    const { target } = await serve({
      reflection: (question) => (question.case === "listServices" ? listed(["acme.legacy.Shop"]) : honest(question)),
    });
    const { definition } = await installed(await discover(adapter, { url: target }));
    expect(definition.tools.map(({ id }) => id)).toEqual(["Shop_Greet"]);
  });

  it("is asked for the services that the document names", async () => {
    const { target } = await serve({ reflection: honestReflection(shopSet) });
    const document = await discover(adapter, { document: JSON.stringify({ target, services: ["acme.legacy.Shop"] }) });
    const { definition } = await installed(document);
    expect(definition.tools.map(({ id }) => id)).toEqual(["Shop_Greet"]);
  });

  it("that is our own control plane is described and called", async () => {
    const faces = await openTwoFaces({ keys: "a:agent:agent-key" });
    open.push({ close: () => void faces.close() });
    const target = `grpc://127.0.0.1:${faces.controlPlane.address.port}`;
    const shop = await installed(await discover(adapter, { url: target }), { secrets: { bearerToken: "agent-key" } });
    const ids = shop.definition.tools.map(({ id }) => id);
    expect(ids).toContain("ProcessService_ListProcesses");
    const { message } = await shop.call("ProcessService_ListProcesses", {});
    expect(message).toHaveProperty("items");
  });
});

describe("whom it asks", () => {
  it("the configured target comes before the url, which stays the service's own", async () => {
    const { target } = await serve({ reflection: honestReflection(shopSet) });
    const document = await discover(adapter, { url: "grpc://127.0.0.1:1", config: { target } });
    expect(JSON.parse(document).target).toBe("grpc://127.0.0.1:1");
  });

  it("a document whose descriptors were given comes back as it was, and nobody is asked", async () => {
    const document = documentOf("grpc://127.0.0.1:1");
    expect(await discover(adapter, { document })).toBe(document);
  });

  it("a document that came from reflection is made anew", async () => {
    const { target } = await serve({ reflection: honestReflection(shopSet) });
    const old = JSON.stringify({ target, reflection: true, descriptorSet: Buffer.from([10, 0]).toString("base64") });
    const { definition } = await installed(await discover(adapter, { document: old }));
    expect(definition.tools.length).toBeGreaterThan(10);
  });

  it("credentials and metadata go along", async () => {
    const { target } = await serve({ reflection: honestReflection(shopSet), key: "s3cret" });
    const refused = await failureOf(discover(adapter, { url: target }));
    expect(refused.kind).toBe("upstream_failed");
    expect(refused.message).toMatch(
      /UNAUTHENTICATED: Who are you; install .*\{"target": "grpc:.*\}, set its secrets, then sync/,
    );
    const document = JSON.stringify({ target });
    const before = await installed(document);
    expect(before.definition.tools).toEqual([]);
    const wrong = await failureOf(discover(adapter, { document, secrets: { bearerToken: "wrong" } }));
    expect(wrong.message).toMatch(/check the secrets/);
    const synced = await discover(adapter, { document, secrets: { bearerToken: "s3cret" } });
    expect(synced).not.toMatch(/s3cret/);
    const after = await installed(synced, { secrets: { bearerToken: "s3cret" } });
    expect((await after.call("acme_shop_v1_Shop_GetItem")).message.title).toBe("Hat");
  });

  it.each<[string, Parameters<typeof discover>[1], RegExp]>([
    ["nothing", {}, /needs a url or a definition/],
    [
      "a descriptor set of a reflecting target without its name",
      { document: JSON.stringify({ reflection: true, descriptorSet: "CgA=" }) },
      /needs a url/,
    ],
    ["a url of another kind", { url: "ftp://x" }, /"target" of a gRPC service/],
    ["a document that is none", { document: "{" }, /not valid JSON/],
    [
      "metadata that cannot be sent",
      { url: "grpc://127.0.0.1:1", config: { metadata: { "grpc-x": "1" } } },
      /cannot be set/,
    ],
  ])("%s is refused", async (_what, target, why) => {
    const failure = await failureOf(discover(adapter, target));
    expect(failure).toMatchObject({ kind: "invalid_request", message: expect.stringMatching(why) });
  });

  it("a private address is not asked", async () => {
    const failure = await failureOf(discover(adapter, { url: "grpc://10.0.0.1:50051" }));
    expect(failure).toMatchObject({
      kind: "upstream_failed",
      message: expect.stringMatching(/it is a private address/),
    });
  });

  it("a target that is not there fails", async () => {
    const { target, close } = await serve({});
    close();
    expect((await failureOf(discover(adapter, { url: target }))).message).toMatch(/UNAVAILABLE/);
  });

  it("a caller that goes away ends it", async () => {
    const { target } = await serve({ reflection: () => "silence" });
    const leave = new AbortController();
    const asked = failureOf(discover(adapter, { url: target, signal: leave.signal }));
    setTimeout(() => leave.abort(), 100);
    expect((await asked).kind).toBe("cancelled");
    expect((await failureOf(discover(adapter, { url: target, signal: AbortSignal.abort() }))).kind).toBe("cancelled");
  });
});

describe("a target that cannot or will not describe itself", () => {
  it("is refused naming the way out", async () => {
    const { target } = await serve({});
    const failure = await failureOf(discover(adapter, { url: target }));
    expect(failure.kind).toBe("upstream_failed");
    expect(failure.message).toMatch(/has no reflection; make a descriptor set \("buf build -o set\.binpb"\)/);
    expect(failure.message).toContain(`{"target": "${target}", "descriptorSet": "<base64 of set.binpb>"}`);
  });

  const registry = registryOf(shopSet);
  const shopFile = registry.getFile("shop.proto")!.proto;
  const files = (...protos: Uint8Array[]): ReflectionAnswer => ({
    case: "fileDescriptorResponse",
    value: { $typeName: "grpc.reflection.v1.FileDescriptorResponse", fileDescriptorProto: protos },
  });
  const file = (name: string, dependency: string[], service?: string) =>
    toBinary(
      FileDescriptorProtoSchema,
      create(FileDescriptorProtoSchema, {
        name,
        dependency,
        syntax: "proto3",
        service: service === undefined ? [] : [create(ServiceDescriptorProtoSchema, { name: service })],
      }),
    );
  const withoutImports = () => {
    const copy = clone(FileDescriptorProtoSchema, shopFile);
    copy.dependency = ["gone.proto"];
    copy.messageType[0]!.field[0]!.type = 11;
    copy.messageType[0]!.field[0]!.typeName = ".gone.Type";
    return toBinary(FileDescriptorProtoSchema, copy);
  };

  it.each<[string, Reflection, RegExp]>([
    ["lists nothing", () => listed([]), /lists no services/],
    [
      "lists too much",
      () => listed(Array.from({ length: grpcServicesMax + 1 }, (_, at) => `S${at}`)),
      /lists more than/,
    ],
    ["answers a list with files", () => files(file("a.proto", [])), /does not list its services/],
    ["answers files with a list", () => listed(["acme.Shop"]), /describes none of the services/],
    ["answers with noise", () => Buffer.from([0xff, 0xff, 0xff]), /cannot be understood/],
    ["answers with nothing", () => Buffer.alloc(0), /cannot be understood: it answers nothing/],
    ["gives files that are noise", honestly(() => files(Buffer.from([0xff]))), /cannot be understood/],
    ["gives files of something else", honestly(() => files(file("other.proto", [], "Other"))), /describes none/],
    ["answers twice", () => "twice", /cannot be understood|answers what was not asked/],
    ["ends the conversation", () => "end", /ended the conversation/],
  ])("%s: refused", async (_what, reflection, why) => {
    const { target } = await serve({ reflection });
    const failure = await failureOf(discover(adapter, { url: target }));
    expect(failure).toMatchObject({ kind: "upstream_failed", message: expect.stringMatching(why) });
  });

  it("a missing import that holds a type is named when the service is defined", async () => {
    const { target } = await serve({ reflection: honestly(() => files(withoutImports())) });
    const document = await discover(adapter, { url: target });
    const failure = await failureOf(adapter.define({ text: document }));
    expect(failure.message).toMatch(/lacks the imports "gone\.proto"/);
  });

  it("imports in a circle end, and are named when the service is defined", async () => {
    const circle: Reflection = (question) =>
      question.value === "b.proto" ? files(file("b.proto", ["a.proto"])) : files(file("a.proto", ["b.proto"], "Shop"));
    const { target } = await serve({
      reflection: (question) => (question.case === "listServices" ? listed(["Shop"]) : circle(question)),
    });
    const document = await discover(adapter, { url: target });
    expect((await failureOf(adapter.define({ text: document }))).message).toMatch(/circle/);
  });

  it("imports without end are given up", async () => {
    let last = 0;
    const endless = () => {
      const many = Array.from({ length: 2_000 }, () =>
        file(`${last++}.proto`, [`${last}.proto`], last === 1 ? "Shop" : undefined),
      );
      return files(...many);
    };
    const { target } = await serve({
      reflection: (question) => (question.case === "listServices" ? listed(["Shop"]) : endless()),
    });
    const failure = await failureOf(discover(adapter, { url: target }));
    expect(failure).toMatchObject({ kind: "upstream_failed", message: expect.stringMatching(/more than \d+ files/) });
  });

  it("files without end are given up by their bytes", async () => {
    let last = 0;
    const huge = () => {
      last += 1;
      return files(
        Buffer.concat([file(`${last}.proto`, [`${last + 1}.proto`], last === 1 ? "Shop" : undefined), padding]),
      );
    };
    // An unknown field of 7 MiB.
    const padding = Buffer.concat([Buffer.from([0xfa, 0x3e, 0x80, 0x80, 0xc0, 0x03]), Buffer.alloc(7 * 1024 * 1024)]);
    const { target } = await serve({
      reflection: (question) => (question.case === "listServices" ? listed(["Shop"]) : huge()),
    });
    const failure = await failureOf(discover(adapter, { url: target }));
    expect(failure).toMatchObject({ kind: "upstream_failed", message: expect.stringMatching(/more than \d+ bytes/) });
  });

  it("an answer larger than may be is given up", async () => {
    const { target } = await serve({ reflection: () => Buffer.alloc(9 * 1024 * 1024) });
    expect((await failureOf(discover(adapter, { url: target }))).message).toMatch(/RESOURCE_EXHAUSTED/);
  });

  function honestly(answer: () => ReflectionAnswer): Reflection {
    return (question) => (question.case === "listServices" ? listed(["acme.shop.v1.Shop"]) : answer());
  }
});
