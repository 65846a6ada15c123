/**
 * Mutual TLS as deploy/ sets it up, three ways: each names the same files, mounts them where its settings look for them, and a server with
 * those settings is reached by `troupe` as the operator's page says, and by nobody without a certificate.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import jsonPatch from "fast-json-patch";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { settingNames } from "../../src/certs/tls-files.ts";
import { parseSettings } from "../../src/config.ts";
import { runInProcess } from "../cli/run-in-process.ts";
import { removeFolder, type Server, startServer } from "../e2e/server.ts";
import { compose, type Document, deploy, documents, isProgramThere, manifests, text } from "./deploy-files.ts";
import { manifestFaults } from "./manifests.ts";

const overlay = documents("kubernetes/tls/kustomization.yaml")[0];
const composeTls = documents("compose.tls.yaml")[0];
const dropIn = text("troupe-tls.conf");
const page = text("README.md");

/** As kustomize makes it of one manifest of the base. */
function patched(kind: string, name = "troupe"): Document {
  const isMeant = (one: Document): boolean => one.kind === kind && (one.name ?? one.metadata?.name) === name;
  const patches = overlay.patches.filter(({ target }: Document) => isMeant(target));
  const document = structuredClone(manifests.find(isMeant));
  for (const { patch } of patches) jsonPatch.applyPatch(document, parse(patch), true);
  return document;
}

const statefulSet = patched("StatefulSet");
const pod = statefulSet.spec.template.spec;
const mount = pod.containers[0].volumeMounts.find(({ name }: Document) => name === "tls");
const files = ["tls.crt", "tls.key", "ca.crt"];
const tlsSettings = (settings: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.values(settingNames).map((name) => [name, settings[name] ?? ""]));

/** What each way sets, and the folder its files are in. */
const ways: readonly (readonly [string, Record<string, string>, string])[] = [
  ["the overlay for Kubernetes", patched("ConfigMap").data, mount?.mountPath],
  ["the second compose file", { ...compose.environment, ...composeTls.services.troupe.environment }, "/run/secrets"],
  [
    "the addition to the unit",
    Object.fromEntries(
      [...dropIn.matchAll(/^Environment=(\w+)=(.*)$/gm)].map(([, name = "", value = ""]) => [name, value]),
    ),
    "%d",
  ],
];

describe("the files", () => {
  it.each(ways)(
    "of %s are those its settings name, in the order certificate, key, authority",
    (_, settings, folder) => {
      expect(Object.values(tlsSettings(settings))).toEqual(files.map((file) => `${folder}/${file}`));
    },
  );

  it("are mounted read-only, as a folder, from a secret with the names of cert-manager", () => {
    expect(mount).toEqual({ name: "tls", mountPath: "/etc/troupe/tls", readOnly: true });
    const { secret } = pod.volumes.find(({ name }: Document) => name === "tls");
    expect(secret).toEqual({
      secretName: "troupe-tls",
      defaultMode: 0o440,
      items: files.map((file) => ({ key: file, path: file })),
    });
    const [certificate] = documents("kubernetes/tls/certificates.example.yaml");
    expect(certificate.spec.secretName).toBe(secret.secretName);
    expect(overlay.resources).toEqual(["../base"]);
  });

  it("of compose are secrets, and of the unit credentials", () => {
    expect(composeTls.services.troupe.secrets).toEqual(files);
    expect(Object.entries(composeTls.secrets)).toEqual(files.map((file) => [file, { file: `./secrets/${file}` }]));
    const loaded = [...dropIn.matchAll(/^LoadCredential=([^:]+):\/etc\/troupe-tls\/(.+)$/gm)];
    expect(loaded.map(([, name, file]) => [name, file])).toEqual(files.map((file) => [file, file]));
  });
});

describe("the overlay", () => {
  it("is what the API server takes, and leaves the probes to REST", () => {
    for (const one of [statefulSet, patched("ConfigMap"), patched("Service")]) expect(manifestFaults(one)).toEqual([]);
    const { containers } = manifests.find(({ kind }) => kind === "StatefulSet").spec.template.spec;
    for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
      expect(pod.containers[0][probe]).toEqual(containers[0][probe]);
      expect(pod.containers[0][probe].httpGet.port).toBe("http");
    }
    expect(patched("Service").spec.ports.map((port: Document) => [port.name, port.appProtocol])).toEqual([
      ["http", "http"],
      ["grpc", "https"],
    ]);
  });

  it("asks cert-manager for the names that callers use", () => {
    const [server, client] = documents("kubernetes/tls/certificates.example.yaml");
    expect(server.spec.dnsNames).toEqual(expect.arrayContaining(["troupe.troupe.svc", "localhost"]));
    expect([server.spec.usages[1], client.spec.usages[1]]).toEqual(["server auth", "client auth"]);
    expect(`${client.spec.commonName}:operator:KEY`).toMatch(/^ops:/);
  });

  it.runIf(isProgramThere("kubectl"))("is rendered by kustomize as it is read here (needs kubectl)", () => {
    const rendered = execFileSync("kubectl", ["kustomize", join(deploy, "kubernetes/tls")], { encoding: "utf8" });
    const found = rendered.split(/^---$/m).map((one): Document => parse(one));
    const { data } = found.find(({ kind }) => kind === "ConfigMap");
    expect(data).toEqual(patched("ConfigMap").data);
    expect(found.find(({ kind }) => kind === "StatefulSet").spec).toEqual(statefulSet.spec);
  });
});

describe("the addition to the unit", () => {
  it.runIf(isProgramThere("systemd-analyze"))("is accepted by systemd (needs systemd-analyze)", () => {
    const folder = mkdtempSync(join(tmpdir(), "troupe-unit-tls-"));
    try {
      mkdirSync(join(folder, "troupe.service.d"));
      writeFileSync(join(folder, "troupe.service"), text("troupe.service").replace("/usr/bin/node", process.execPath));
      writeFileSync(join(folder, "troupe.service.d/tls.conf"), dropIn);
      const env = { ...process.env, SYSTEMD_UNIT_PATH: `${folder}:` };
      const verify = ["verify", "--man=no", "troupe.service"];
      execFileSync("systemd-analyze", verify, { env, stdio: "pipe" });
      writeFileSync(join(folder, "troupe.service.d/tls.conf"), `${dropIn}LoadCredentials=misspelt\n`);
      const said = execFileSync("sh", ["-c", `systemd-analyze ${verify.join(" ")} 2>&1`], { env, encoding: "utf8" });
      expect(said).toContain("LoadCredentials");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("a server set up so", () => {
  let folder: string;
  let server: Server;
  const here = (settings: Record<string, string>, mounted: string): Record<string, string> =>
    Object.fromEntries(
      Object.entries(tlsSettings(settings)).map(([name, path]) => [name, path.replace(mounted, folder)]),
    );

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "troupe-deploy-tls-"));
    const made = await runInProcess([
      "certs",
      "--into",
      join(folder, "certs"),
      "--host",
      "troupe.troupe.svc",
      "--client",
      "ops",
    ]);
    expect(made).toMatchObject({ exitCode: 0, stderr: "" });
    const sources = [...text("kubernetes/tls/kustomization.yaml").matchAll(/--from-file=(\S+)=certs\/(\S+)/g)];
    expect(sources.map(([, name]) => name)).toEqual(files);
    for (const [, name = "", source = ""] of sources) copyFileSync(join(folder, "certs", source), join(folder, name));
    const [[, settings, mounted] = ["", {}, ""]] = ways;
    writeFileSync(join(folder, "api-keys"), "ops:operator:a-key-that-no-caller-shows\n");
    server = await startServer({
      settings: {
        ...(settings as Record<string, string>),
        ...here(settings, mounted),
        SERVICE_HTTP_HOST: "127.0.0.1",
        SERVICE_GRPC_HOST: "127.0.0.1",
        SERVICE_HTTP_PORT: "0",
        SERVICE_GRPC_PORT: "0",
        SERVICE_DATA_DIR: join(folder, "data"),
        SERVICE_API_KEYS_FILE: join(folder, "api-keys"),
        SERVICE_SECRETS_KEY_FILE: "",
      },
    });
  });
  afterAll(async () => {
    await server?.kill();
    if (server !== undefined) await removeFolder(server.folder);
    rmSync(folder, { recursive: true, force: true });
  });

  it.each(ways)("by %s has settings that hold", (_, settings, mounted) => {
    const keys = { SERVICE_API_KEYS: "ops:operator:a-key-that-no-caller-shows" };
    const parsed = parseSettings({ ...keys, ...here(settings, mounted) });
    expect(parsed.SERVICE_GRPC_TLS_CERT_FILE).toBe(join(folder, "tls.crt"));
  });

  it("is reached by a command with the variables of the operator's page, as whom the certificate names", async () => {
    const variables = /^export (TROUPE_SERVER=.*)$/m.exec(page)?.[1]?.split(" ") ?? [];
    const given = Object.fromEntries(variables.map((one) => one.split("=") as [string, string]));
    expect(Object.keys(given)).toEqual(["TROUPE_SERVER", "TROUPE_TLS_CA", "TROUPE_TLS_CERT", "TROUPE_TLS_KEY"]);
    const environment = Object.fromEntries(Object.entries(given).map(([name, path]) => [name, join(folder, path)]));
    const options = { environment: { ...environment, TROUPE_SERVER: server.grpc } };
    // Only operators may: the role is that of the key with the certificate's name, and no key was shown.
    expect(await runInProcess(["diagnostics", "--json"], options)).toMatchObject({ exitCode: 0, stderr: "" });
    const words = [
      "--tls-ca",
      given.TROUPE_TLS_CA,
      "--tls-cert",
      given.TROUPE_TLS_CERT,
      "--tls-key",
      given.TROUPE_TLS_KEY,
    ];
    expect(page).toContain(`troupe ${words.join(" ")} status`);
  });

  it("lets nobody in without a certificate, and answers probes without one", async () => {
    const options = { environment: { TROUPE_SERVER: server.grpc, TROUPE_TLS_CA: join(folder, "ca.crt") } };
    expect(await runInProcess(["status"], options)).toMatchObject({ exitCode: 69, stdout: "" });
    for (const path of ["/healthz", "/readyz"]) expect((await server.get(path)).status).toBe(200);
  });
});
