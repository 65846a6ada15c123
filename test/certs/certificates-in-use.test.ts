/** What is told of the certificates in use: which of a file, until when, and after a renewal the new ones; as a scrape reads it as well. */
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { certificatesInUse } from "../../src/certs/certificates-in-use.ts";
import { makeCertificates } from "../../src/certs/make-certificates.ts";
import { settingNames, type TlsFiles } from "../../src/certs/tls-files.ts";
import { openControlPlaneTls } from "../../src/certs/tls-settings.ts";
import { tlsLookMs } from "../../src/limits.ts";
import { Metrics } from "../../src/observability/metrics.ts";
import { type MetricSources, readOnCollect } from "../../src/observability/metrics-sources.ts";
import { rememberingLog } from "../control-plane/two-faces.ts";
import { readExposition } from "../observability/exposition.ts";
import { ManualClock } from "../runtime/manual-clock.ts";
import { type CertificateFiles, day, filesIn, newFolder } from "./certificate-files.ts";

/** Authorities last for ten years from when they are made: `aging` has one with 20 days left, `ended` one that is past its time. */
let files: Record<"fresh" | "renewed" | "aging" | "ended", CertificateFiles>;
let now: number;
beforeAll(async () => {
  now = Math.floor(Date.now() / 1_000) * 1_000;
  const root = newFolder();
  const made = async (name: string, days: number, nowMs = now): Promise<CertificateFiles> => {
    const folder = join(root, name);
    await makeCertificates({ folder, days, nowMs });
    return filesIn(folder);
  };
  const [fresh, renewed, aging, ended] = await Promise.all([
    made("fresh", 30),
    made("renewed", 90),
    made("aging", 5, now - 3_630 * day),
    made("ended", 5, now - 4_000 * day),
  ]);
  files = { fresh, renewed, aging, ended };
});

const authority = (name: keyof typeof files): string => files[name].text("ca.crt");
const names = (inUse: TlsFiles, at = now) =>
  certificatesInUse(inUse)(at).map(({ name, untilMs }) => [name, Math.round((untilMs - now) / day)]);

describe("the certificates in use", () => {
  it("are none of the clients' where no authority is given, and have their subject", () => {
    const [server, ...rest] = certificatesInUse({ cert: files.fresh.text("server.crt"), key: "" })(now);
    expect(server).toEqual({
      name: "server",
      subject: expect.stringMatching(/^CN=\S/),
      fromMs: expect.any(Number),
      untilMs: now + 30 * day,
    });
    expect(rest).toEqual([]);
  });

  it.each<[string, () => Pick<TlsFiles, "cert" | "clientCa">, number, number | undefined]>([
    ["a certificate of its own", () => ({ cert: files.fresh.text("server.crt") }), 30, undefined],
    [
      "a chain, whose later part ends first",
      () => ({ cert: files.fresh.text("server.crt") + authority("aging") }),
      20,
      undefined,
    ],
    [
      "a chain, whose first part ends first",
      () => ({ cert: files.fresh.text("server.crt") + authority("fresh") }),
      30,
      undefined,
    ],
    ["one authority", () => ({ cert: files.fresh.text("server.crt"), clientCa: authority("renewed") }), 30, 3_650],
    [
      "authorities while one takes the place of the other",
      () => ({ cert: files.fresh.text("server.crt"), clientCa: authority("renewed") + authority("aging") }),
      30,
      20,
    ],
    [
      "authorities, one past its time",
      () => ({ cert: files.fresh.text("server.crt"), clientCa: authority("ended") + authority("renewed") }),
      30,
      3_650,
    ],
    [
      "authorities that are all past their time",
      () => ({ cert: files.fresh.text("server.crt"), clientCa: authority("ended") }),
      30,
      -350,
    ],
  ])("are of each file the one that ends next: %s", (_, inUse, server, clientCa) => {
    const expected =
      clientCa === undefined
        ? [["server", server]]
        : [
            ["server", server],
            ["client_ca", clientCa],
          ];
    expect(names({ ...inUse(), key: "" })).toEqual(expected);
  });

  it("are looked at anew as time goes by", () => {
    const inUse = {
      cert: files.fresh.text("server.crt"),
      key: "",
      clientCa: authority("renewed") + authority("aging"),
    };
    expect(names(inUse, now + 21 * day).at(-1)).toEqual(["client_ca", 3_650]);
    expect(names(inUse, now + 40 * day)[0]).toEqual(["server", 30]);
  });
});

describe("a scrape", () => {
  let stop = (): void => undefined;
  afterEach(() => stop());

  function metricsOf(certificates: MetricSources["certificates"]): Metrics {
    const metrics = new Metrics("1");
    readOnCollect(metrics.registry, {
      runs: () => ({ waiting: 0, executing: 0, slots: 1 }),
      actors: () => [],
      deadLetters: () => ({}),
      store: () => ({ commits: 0, queued: 0, reopens: 0, isFailing: false }),
      moduleProcesses: () => 0,
      certificates,
    });
    return metrics;
  }

  it("tells until when they are valid, and after a renewal of the new ones", async () => {
    const own = filesIn(newFolder());
    const put = (from: CertificateFiles): void => {
      for (const name of ["server.crt", "server.key", "ca.crt"]) own.write(name, from.text(name));
    };
    put(files.fresh);
    const clock = new ManualClock(now);
    const settings = {
      [settingNames.cert]: own.path("server.crt"),
      [settingNames.key]: own.path("server.key"),
      [settingNames.clientCa]: own.path("ca.crt"),
    };
    const tls = openControlPlaneTls(settings, clock, rememberingLog().log);
    if (tls === undefined || typeof tls === "string") expect.unreachable();
    const used: TlsFiles[] = [];
    stop = tls.onRenewed((renewed) => used.push(renewed));
    const metrics = metricsOf(tls.certificates);
    const ends = async () => {
      const { values } = readExposition(await metrics.collect());
      const end = (name: string) => values.get(`troupe_certificate_expires_timestamp_seconds{certificate="${name}"}`);
      return { server: end("server"), clientCa: end("client_ca") };
    };
    const seconds = (days: number): number => (now + days * day) / 1_000;
    expect(await ends()).toEqual({ server: seconds(30), clientCa: seconds(3_650) });

    // Half of it is not taken, and not told of.
    own.write("server.crt", files.renewed.text("server.crt"));
    await clock.advance(tlsLookMs);
    await vi.waitFor(() => expect(clock.timers).toBe(1));
    expect(await ends()).toEqual({ server: seconds(30), clientCa: seconds(3_650) });

    put(files.renewed);
    own.write("ca.crt", authority("aging"));
    await clock.advance(tlsLookMs);
    await vi.waitFor(() => expect(used).toHaveLength(1));
    expect(await ends()).toEqual({ server: seconds(90), clientCa: seconds(20) });
  });

  it("tells of none without TLS", async () => {
    const metrics = metricsOf(() => []);
    expect(await metrics.collect()).not.toContain("troupe_certificate_expires_timestamp_seconds{");
  });
});
