/** The operator's page names what there is: rpcs with their requests, metrics, events of the log. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { troupeServices } from "../../src/control-plane/services.ts";
import { root, text } from "./deploy-files.ts";
import { collectLabels, ownMetrics } from "./metric-labels.ts";

const metricLabels = await collectLabels();

describe("the operator's page", () => {
  const page = text("README.md");

  it("calls only rpcs that there are, with requests that they take", () => {
    const folder = join(root, "proto/troupe/v1");
    const known = readdirSync(folder).flatMap((name) => {
      const [, service] = /^service (\w+)/m.exec(readFileSync(join(folder, name), "utf8")) ?? [];
      const rpcs = readFileSync(join(folder, name), "utf8").matchAll(/^ {2}rpc (\w+)/gm);
      return [...rpcs].map(([, rpc]) => `troupe.v1.${service}/${rpc}`);
    });
    const named = [...page.matchAll(/\btroupe\.v1\.\w+\/\w+/g)].map(([name]) => name);
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((name) => !known.includes(name))).toEqual([]);

    const requests = [
      ...page.matchAll(/-d '(\{[^']*\})' \S+(troupe\.v1\.\w+)\/(\w+)|-d '(\{[^']*\})' \$G (troupe\.v1\.\w+)\/(\w+)/g),
    ];
    expect(requests.length).toBeGreaterThan(5);
    for (const [, buf, bufService, bufRpc, grpcurl, service, rpc] of requests) {
      const method = troupeServices
        .find(({ typeName }) => typeName === (service ?? bufService))
        ?.methods.find(({ name }) => name === (rpc ?? bufRpc));
      if (method !== undefined) fromJson(method.input, JSON.parse(grpcurl ?? buf ?? "") as JsonValue);
    }
  });

  it("explains every metric of the server's own, and none that there is not", () => {
    const own = ownMetrics(metricLabels);
    const named = new Set([...page.matchAll(/\btroupe_[a-z_]+/g)].map(([name]) => name));
    expect(own.filter((name) => !named.has(name))).toEqual([]);
    expect([...named].filter((name) => !own.includes(name))).toEqual([]);
  });

  it("names only log events that the sources write", () => {
    const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".ts"))
      .map((path) => readFileSync(join(root, "src", path), "utf8"))
      .join("\n");
    const [table = ""] = /^### Log events[\s\S]*?(?=^##)/m.exec(page) ?? [];
    const events = [...table.matchAll(/^\| ([^|]*) \|/gm)].flatMap(([, cell = ""]) =>
      [...cell.matchAll(/`([a-z-]+)`/g)].map(([, name]) => name),
    );
    expect(events.length).toBeGreaterThan(15);
    expect(events.filter((name) => !sources.includes(`"${name}"`))).toEqual([]);
  });
});
