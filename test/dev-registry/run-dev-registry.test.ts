/** `troupe dev-registry` as a real process: settings, the line for programs, the commands for people, the end. */
import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { readDevRegistrySettings } from "../../src/dev-registry/settings.ts";

const module = new URL("../../src/dev-registry/run-dev-registry.ts", import.meta.url).href;
/** As src/main.ts does: exit codes are on the error. */
const program = `
  import { runDevRegistry } from ${JSON.stringify(module)};
  try { await runDevRegistry(process.env); }
  catch (error) { process.stderr.write(error.message + "\\n"); process.exitCode = error.exitCode; }
`;
const hasCurl = spawnSync("curl", ["--version"]).status === 0;

function start(settings: Readonly<Record<string, string>>) {
  const named = Object.entries(settings).map(([name, value]) => [`SERVICE_DEV_REGISTRY_${name}`, value]);
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    env: { PATH: process.env.PATH, ...Object.fromEntries(named) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text) => {
    output.stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text) => {
    output.stderr += text;
  });
  return { child, output, ended: once(child, "close") };
}

async function listening(settings: Readonly<Record<string, string>>) {
  const started = start({ PORT: "0", ...settings });
  await expect.poll(() => started.output.stderr, { timeout: 20_000 }).toMatch(/\/registries .*\n/);
  return { ...started, line: JSON.parse(started.output.stdout) };
}

describe("settings", () => {
  test("have safe defaults, also where an empty value is given", () => {
    const defaults = {
      host: "127.0.0.1",
      port: 9090,
      auth: "none",
      drift: "off",
      apiKey: "dev-registry-key",
      clientId: "dev-client",
      clientSecret: "dev-secret",
    };
    expect(readDevRegistrySettings({})).toEqual(defaults);
    expect(readDevRegistrySettings({ SERVICE_DEV_REGISTRY_PORT: "", SERVICE_DEV_REGISTRY_API_KEY: "" })).toEqual(
      defaults,
    );
  });

  test.each(["127.0.0.1", "127.8.9.10", "::1", "localhost"])("the host may be %s", (host) => {
    expect(readDevRegistrySettings({ SERVICE_DEV_REGISTRY_HOST: host }).host).toBe(host);
  });

  test.each([
    ["HOST", "0.0.0.0"],
    ["HOST", "::"],
    ["HOST", "192.168.0.1"],
    ["HOST", "127.0.0.1.example.com"],
    ["HOST", "example.com"],
    ["PORT", "65536"],
    ["PORT", "-1"],
    ["PORT", "0x10"],
    ["PORT", "80 80"],
    ["AUTH_MODE", "basic"],
    ["AUTH_MODE", "OAuth2"],
    ["DRIFT_AUTH", "yes"],
    ["API_KEY", "two words"],
    ["API_KEY", "line\nbreak"],
    ["API_KEY", "schlüssel"],
    ["CLIENT_ID", "line\nbreak"],
    ["CLIENT_SECRET", "tab\t"],
  ])("%s may not be %j, and the error names the setting", (name, value) => {
    expect(() => readDevRegistrySettings({ [`SERVICE_DEV_REGISTRY_${name}`]: value })).toThrow(
      new RegExp(`^Cannot start with these settings:\n  SERVICE_DEV_REGISTRY_${name}: must .*$`),
    );
  });

  test("may hold credentials of 1000 characters, and no longer ones", () => {
    for (const name of ["API_KEY", "CLIENT_ID", "CLIENT_SECRET"]) {
      const read = (length: number) =>
        readDevRegistrySettings({ [`SERVICE_DEV_REGISTRY_${name}`]: "x".repeat(length) });
      expect(Object.values(read(1_000))).toContain("x".repeat(1_000));
      expect(() => read(1_001)).toThrow("must be 1 to 1000");
    }
  });

  test("that are wrong are reported together, without secrets", async () => {
    const { output, ended } = start({ PORT: "x", AUTH_MODE: "y", API_KEY: "geheim geheim" });
    expect(await ended).toEqual([78, null]);
    expect(output.stdout).toBe("");
    for (const name of ["PORT", "AUTH_MODE", "API_KEY"])
      expect(output.stderr).toContain(`SERVICE_DEV_REGISTRY_${name}: `);
    expect(output.stderr).not.toContain("geheim");
  });
});

describe("the process", () => {
  test.runIf(hasCurl).each([
    ["none", "SIGTERM"],
    ["apikey", "SIGINT"],
    ["oauth2", "SIGTERM"],
  ] as const)("in mode %s prints one JSON line and commands that work, and ends well on %s", async (mode, signal) => {
    const { child, line, output, ended } = await listening({ AUTH_MODE: mode });
    expect(line).toEqual({
      event: "listening",
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/$/),
      auth: mode,
      drift: "off",
      ...(mode === "oauth2" ? { tokenEndpoint: `${line.url}oauth/token` } : {}),
      pid: child.pid,
    });
    const commands = output.stderr.split("\n").filter((text) => text.startsWith("curl ") && !text.includes(":8080"));
    let token = "";
    const answers: Record<string, unknown>[] = [];
    for (const command of commands) {
      const { stdout } = await promisify(execFile)("sh", ["-c", command.replace("ACCESS_TOKEN", token)]);
      answers.push(JSON.parse(stdout));
      token = String(answers.at(-1)?.access_token ?? token);
    }
    expect(answers[0]).toMatchObject({ id: "dev-registry" });
    expect(answers.at(-1)).toMatchObject({ definitions: [{ id: "petstore" }, {}, {}] });
    child.kill(signal);
    expect(await ended).toEqual([0, null]);
    expect(output.stdout.trim().split("\n")).toHaveLength(1);
  });

  test("an address in use is said plainly", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const { output, ended } = start({ PORT: String(port) });
    expect(await ended).toEqual([74, null]);
    expect(output.stderr).toBe(`Cannot listen on "127.0.0.1:${port}": another program listens there\n`);
  });

  test("never shows credentials that somebody chose", async () => {
    const chosen = { CLIENT_ID: "mine-id", CLIENT_SECRET: "mine-secret" };
    const { output, line } = await listening({ AUTH_MODE: "oauth2", ...chosen });
    expect(output.stdout + output.stderr).not.toContain("mine");
    expect(output.stderr).toContain("client_secret=YOUR_CLIENT_SECRET");
    const fields = { grant_type: "client_credentials", client_id: "mine-id", client_secret: "mine-secret" };
    const response = await fetch(line.tokenEndpoint, { method: "POST", body: new URLSearchParams(fields) });
    expect(response.status).toBe(200);
  });

  test("with drift it advertises what it does not enforce, and says so", async () => {
    const { line, output } = await listening({ AUTH_MODE: "apikey", DRIFT_AUTH: "1" });
    expect(line.drift).toBe("values");
    expect(output.stderr).toContain('"auth":{"type":"apiKey","apiKey":"dev-registry-key"}');
    const advertised = await (await fetch(`${line.url}.well-known/registry.json`)).json();
    expect(advertised).toMatchObject({ auth: { name: "X-Dev-Registry-Key-Drift" } });
    const headers = { "X-Dev-Registry-Key": "dev-registry-key" };
    expect((await fetch(`${line.url}v1/definitions`, { headers })).status).toBe(200);
    await expect.poll(() => output.stderr).toContain("# Drift:");
  });
});
