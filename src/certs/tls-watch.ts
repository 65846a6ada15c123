/**
 * Certificates are renewed while the server runs: whoever renews them puts new files in place of the old, and the server finds them. It
 * looks at what is in the files, not at their dates: links that are moved (Kubernetes, certbot) and copies that keep their date count too.
 *
 * 1. What is in use works. Files that are not fit for use change nothing, and are told about once.
 * 2. Files are replaced one after the other. What does not fit together is told about only when it is the same at the next look.
 */
import { tlsExpiryRepeatMs, tlsExpiryWarnMs, tlsExpiryWarnShare, tlsLookMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import { type CertificateInUse, certificatesInUse } from "./certificates-in-use.ts";
import {
  judgeTlsFiles,
  readTlsFiles,
  settingNames,
  type TlsFiles,
  type TlsPaths,
  type TlsReadings,
} from "./tls-files.ts";

export interface TlsWatchOptions {
  readonly paths: TlsPaths;
  readonly inUse: TlsFiles;
  readonly use: (renewed: TlsFiles) => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** The answer ends it. */
export function watchTlsFiles(options: TlsWatchOptions): () => void {
  const { clock, log } = options;
  const watch = new TlsWatch(options);
  let isOver = false;
  let cancel: () => void = () => undefined;
  const goOn = (): void => {
    if (isOver) return;
    cancel = clock.after(tlsLookMs, () => {
      watch
        .look(() => isOver)
        .catch((error: unknown) => log.error("tls-renewal-failed", "Certificate files were not looked at", { error }))
        .finally(goOn);
    });
  };
  goOn();
  return () => {
    isOver = true;
    cancel();
  };
}

class TlsWatch {
  readonly #options: TlsWatchOptions;
  #inUse: TlsFiles;
  #certificates: ReturnType<typeof certificatesInUse>;
  /** What was wrong at the last look. */
  #suspicion: string | undefined;
  /** What was wrong when it was told. */
  #complaint: string | undefined;
  /** By name of the certificate, on the monotonic clock. */
  readonly #expiryToldAt = new Map<CertificateInUse["name"], number>();

  constructor(options: TlsWatchOptions) {
    this.#options = options;
    this.#inUse = options.inUse;
    this.#certificates = certificatesInUse(options.inUse);
  }

  async look(isOver: () => boolean): Promise<void> {
    const { paths, clock } = this.#options;
    const readings = await readTlsFiles(paths);
    if (isOver()) return;
    if (areTheSame(readings, this.#inUse)) this.#trust();
    else {
      const verdict = judgeTlsFiles(readings, clock.now());
      if ("files" in verdict) this.#take(verdict.files);
      else this.#suspect(verdict.problems.map(({ file, reason }) => `${settingNames[file]} ${reason}`).join("; "));
    }
    this.#warnOfExpiry();
  }

  #trust(): void {
    this.#suspicion = undefined;
    this.#complaint = undefined;
  }

  #take(found: TlsFiles): void {
    this.#trust();
    this.#options.use(found);
    this.#inUse = found;
    this.#certificates = certificatesInUse(found);
    this.#expiryToldAt.clear();
    const inUse = this.#certificates(this.#options.clock.now());
    const ends = inUse.map(({ name, untilMs }) => `${settingNames[fileOf[name]]} until ${isoTime(untilMs)}`);
    this.#options.log.info("tls-files-renewed", `New connections get what is in the files: ${ends.join(", ")}`);
  }

  #suspect(problem: string): void {
    if (problem === this.#suspicion && problem !== this.#complaint) {
      this.#options.log.warn(
        "tls-files-unusable",
        `The certificate in use stays, what is in the files now is not fit: ${problem}`,
      );
      this.#complaint = problem;
    }
    this.#suspicion = problem;
  }

  #warnOfExpiry(): void {
    const { paths, clock, log } = this.#options;
    for (const { name, fromMs, untilMs, subject } of this.#certificates(clock.now())) {
      const leftMs = untilMs - clock.now();
      if (leftMs > Math.min(tlsExpiryWarnMs, (untilMs - fromMs) * tlsExpiryWarnShare)) continue;
      const toldAt = this.#expiryToldAt.get(name);
      if (toldAt !== undefined && clock.monotonic() - toldAt < tlsExpiryRepeatMs) continue;
      this.#expiryToldAt.set(name, clock.monotonic());
      const tense = leftMs > 0 ? "expires" : "expired";
      const file = fileOf[name];
      log.warn(
        "tls-certificate-expires",
        `"${subject}" of ${settingNames[file]} ${tense} at ${isoTime(untilMs)}; put a new one in "${paths[file]}"`,
      );
    }
  }
}

const fileOf = { server: "cert", client_ca: "clientCa" } as const satisfies Record<
  CertificateInUse["name"],
  keyof TlsPaths
>;

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

function areTheSame(readings: TlsReadings, files: TlsFiles): boolean {
  return (["cert", "key", "clientCa"] as const).every((file) => {
    const reading = readings[file];
    return reading === undefined ? files[file] === undefined : "text" in reading && reading.text === files[file];
  });
}
