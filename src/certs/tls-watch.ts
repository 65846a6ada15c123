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
import {
  judgeTlsFiles,
  readTlsFiles,
  settingNames,
  type TlsFiles,
  type TlsPaths,
  type TlsReadings,
  validityOf,
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
  /** What was wrong at the last look. */
  #suspicion: string | undefined;
  /** What was wrong when it was told. */
  #complaint: string | undefined;
  #expiryToldAt: number | undefined;

  constructor(options: TlsWatchOptions) {
    this.#options = options;
    this.#inUse = options.inUse;
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
    this.#expiryToldAt = undefined;
    const until = new Date(validityOf(found.cert).untilMs).toISOString();
    this.#options.log.info("tls-files-renewed", `New connections get the certificate that is valid until ${until}`);
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
    const { clock, log, paths } = this.#options;
    const { fromMs, untilMs } = validityOf(this.#inUse.cert);
    const leftMs = untilMs - clock.now();
    if (leftMs > Math.min(tlsExpiryWarnMs, (untilMs - fromMs) * tlsExpiryWarnShare)) return;
    if (this.#expiryToldAt !== undefined && clock.monotonic() - this.#expiryToldAt < tlsExpiryRepeatMs) return;
    this.#expiryToldAt = clock.monotonic();
    const tense = leftMs > 0 ? "expires" : "expired";
    const until = new Date(untilMs).toISOString();
    log.warn(
      "tls-certificate-expires",
      `The certificate in use ${tense} at ${until}; put a new one in "${paths.cert}"`,
    );
  }
}

function areTheSame(readings: TlsReadings, files: TlsFiles): boolean {
  return (["cert", "key", "clientCa"] as const).every((file) => {
    const reading = readings[file];
    return reading === undefined ? files[file] === undefined : "text" in reading && reading.text === files[file];
  });
}
