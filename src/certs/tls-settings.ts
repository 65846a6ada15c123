/** The three settings of the control plane's TLS: which go together, and what they come to. */
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import { type CertificateInUse, certificatesInUse } from "./certificates-in-use.ts";
import { judgeTlsFiles, readTlsFilesNow, settingNames, type TlsFiles, type TlsPaths } from "./tls-files.ts";
import { watchTlsFiles } from "./tls-watch.ts";

type Given = Readonly<Partial<Record<(typeof settingNames)[keyof TlsPaths] | "SERVICE_API_KEYS", unknown>>>;

interface SettingProblem {
  readonly name: string;
  readonly reason: string;
}

/** Of files as well, when the settings that are given make sense together. Blocking: for the start only. */
export function tlsSettingProblems(given: Given, nowMs: number): readonly SettingProblem[] {
  const together = relationProblems(given);
  const paths = pathsOf(given);
  if (together.length > 0 || paths === undefined) return together;
  const verdict = judgeTlsFiles(readTlsFilesNow(paths), nowMs);
  if ("files" in verdict) return [];
  return verdict.problems.map(({ file, reason }) => ({ name: settingNames[file], reason }));
}

export interface ControlPlaneTls extends TlsFiles {
  /** Hands over files that were renewed, until the answer is called. */
  readonly onRenewed: (use: (renewed: TlsFiles) => void) => () => void;
  readonly onRefused: (reason: string) => void;
  /** Those that new connections are met with, for each file the one that ends next. */
  readonly certificates: () => readonly CertificateInUse[];
}

/** Undefined: plain text. A text is why there can be none, although the settings were good a moment ago. */
export function openControlPlaneTls(given: Given, clock: Clock, log: Log): ControlPlaneTls | undefined | string {
  const paths = pathsOf(given);
  if (paths === undefined) return undefined;
  const verdict = judgeTlsFiles(readTlsFilesNow(paths), clock.now());
  if ("problems" in verdict) return verdict.problems.map(({ reason }) => reason).join("; ");
  const { files } = verdict;
  let certificates = certificatesInUse(files);
  return {
    ...files,
    onRenewed(use) {
      const renew = (renewed: TlsFiles): void => {
        use(renewed);
        certificates = certificatesInUse(renewed);
      };
      return watchTlsFiles({ paths, inUse: files, use: renew, clock, log });
    },
    onRefused: (reason) => log.debug("tls-refused", `A connection was refused before any request: ${reason}`),
    certificates: () => certificates(clock.now()),
  };
}

function relationProblems(given: Given): SettingProblem[] {
  const problems: SettingProblem[] = [];
  const { cert, key, clientCa } = settingNames;
  const isGiven = (name: keyof Given): boolean => given[name] !== undefined;
  if (isGiven(cert) && !isGiven(key)) problems.push({ name: key, reason: `is needed with ${cert}` });
  if (isGiven(key) && !isGiven(cert)) problems.push({ name: cert, reason: `is needed with ${key}` });
  if (!isGiven(clientCa)) return problems;
  if (!isGiven(cert) && !isGiven(key)) problems.push({ name: clientCa, reason: `needs ${cert} and ${key}` });
  if (!isGiven("SERVICE_API_KEYS")) {
    const reason =
      "needs SERVICE_API_KEYS: the name in a client's certificate must be the name of a key, whose role it has";
    problems.push({ name: clientCa, reason });
  }
  return problems;
}

function pathsOf(given: Given): TlsPaths | undefined {
  const [cert, key, clientCa] = [given[settingNames.cert], given[settingNames.key], given[settingNames.clientCa]];
  if (typeof cert !== "string" || typeof key !== "string") return undefined;
  return { cert, key, ...(typeof clientCa === "string" ? { clientCa } : {}) };
}
