import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { ConfigError, type Environment, maskedSettings, parseSettings } from "../src/config.ts";

function problems(environment: Environment): string[] {
  try {
    parseSettings(environment);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(({ name }) => name);
  }
}

describe("settings", () => {
  it("have the decided defaults", () => {
    expect(parseSettings({})).toMatchObject({
      SERVICE_HTTP_HOST: "127.0.0.1",
      SERVICE_HTTP_PORT: 8080,
      SERVICE_GRPC_PORT: 8081,
      SERVICE_DATA_DIR: "./data",
      SERVICE_PROCESS_TIMEOUT_MS: 30_000,
      SERVICE_PROCESS_CONCURRENCY: 16,
      SERVICE_PROCESS_QUEUE_MAX: 10_000,
      SERVICE_PROCESS_MEMORY_MB: 128,
      SERVICE_PROCESS_OUTPUT_BYTES: 1_048_576,
      SERVICE_PROCESS_RETENTION: 30 * 86_400_000,
      SERVICE_EGRESS_ALLOWED_CIDRS: [],
    });
  });

  it("report all problems together, each with its name", () => {
    const bad = {
      SERVICE_HTTP_PORT: "http",
      SERVICE_GRPC_PORT: "70000",
      SERVICE_PROCESS_CONCURRENCY: "0",
      SERVICE_PROCESS_RETENTION: "a month",
      SERVICE_LOG_LEVEL: "loud",
      SERVICE_EGRESS_BLOCKED_CIDRS: "10.0.0.0/8, 300.1.1.1",
    };
    expect(problems(bad).sort()).toEqual(Object.keys(bad).sort());
  });

  it.each([
    ["30d", 2_592_000_000],
    ["12h", 43_200_000],
    ["5m", 300_000],
    ["0", null],
  ])("read a retention of %s", (text, ms) => {
    expect(parseSettings({ SERVICE_PROCESS_RETENTION: text }).SERVICE_PROCESS_RETENTION).toBe(ms);
  });

  it.each(["0x10", "1e3", " 7", "-1", "1.5", "１"])("take a number only in plain digits, not %j", (text) => {
    expect(problems({ SERVICE_HTTP_PORT: text })).toEqual(["SERVICE_HTTP_PORT"]);
  });

  it("take an empty value as not given", () => {
    expect(parseSettings({ SERVICE_HTTP_PORT: "" }).SERVICE_HTTP_PORT).toBe(8080);
  });

  it("take none among the allowed addresses only", () => {
    expect(problems({ SERVICE_EGRESS_ALLOWED_CIDRS: "none, 10.1.0.0/16" })).toEqual([]);
    expect(problems({ SERVICE_EGRESS_BLOCKED_CIDRS: "none" })).toEqual(["SERVICE_EGRESS_BLOCKED_CIDRS"]);
  });

  it("refuse an open address without keys, for either face", () => {
    expect(problems({ SERVICE_HTTP_HOST: "0.0.0.0", SERVICE_GRPC_HOST: "::" })).toEqual([
      "SERVICE_HTTP_HOST",
      "SERVICE_GRPC_HOST",
    ]);
    expect(problems({ SERVICE_HTTP_HOST: "0.0.0.0", SERVICE_API_KEYS: "a:agent:0123456789abcdef" })).toEqual([]);
    expect(problems({ SERVICE_HTTP_HOST: "0.0.0.0", SERVICE_ALLOW_ANONYMOUS: "1" })).toEqual([]);
    expect(problems({ SERVICE_HTTP_HOST: "::1", SERVICE_GRPC_HOST: "localhost" })).toEqual([]);
    expect(problems({ SERVICE_HTTP_HOST: "[::1]", SERVICE_GRPC_HOST: "::ffff:127.0.0.9" })).toEqual([]);
    // Not what it looks like: no system calls this loopback.
    expect(problems({ SERVICE_HTTP_HOST: "::127.0.0.1" })).toEqual(["SERVICE_HTTP_HOST"]);
  });

  it("read a secret from a file, and refuse it given twice or unreadable", () => {
    const file = join(mkdtempSync(join(tmpdir(), "troupe-config-")), "keys");
    writeFileSync(file, "ops:operator:0123456789abcdef\n");
    const given = parseSettings({ SERVICE_API_KEYS_FILE: file });
    expect(given.SERVICE_API_KEYS?.reveal()).toBe("ops:operator:0123456789abcdef");
    expect(inspect(given)).not.toContain("0123456789abcdef");
    expect(problems({ SERVICE_API_KEYS_FILE: file, SERVICE_API_KEYS: "x" })).toEqual(["SERVICE_API_KEYS_FILE"]);
    expect(problems({ SERVICE_API_KEYS_FILE: `${file}.absent` })).toEqual(["SERVICE_API_KEYS_FILE"]);
  });

  it("are printed without their secrets", () => {
    const settings = parseSettings({ SERVICE_API_KEYS: "a:agent:CANARY-1", SERVICE_SECRETS_PREVIOUS_KEYS: "CANARY-2" });
    const printed = JSON.stringify(maskedSettings(settings));
    expect(printed).not.toContain("CANARY");
    expect(printed).toContain("********");
  });
});
