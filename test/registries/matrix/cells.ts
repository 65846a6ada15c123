/** The generated cells: every sensible pairing of scheme, target, address and credential, with statuses and chain lengths in turn. */
import { type AddressClass, addressClasses, hosts } from "./network.ts";
import { type CredentialKind, credentialKinds, headerNameFor, type Plan, type PlannedHop } from "./plan.ts";
import { type Place, targetClasses } from "./targets.ts";

const statuses = [301, 302, 303, 307, 308] as const;
const chainLengths = [1, 2, 5] as const;

export interface Ports {
  readonly main: number;
  readonly other: number;
  /** Whether 80 and 443 could be listened on. */
  readonly hasDefaults: boolean;
}

export interface CellsOptions {
  readonly ports: Ports;
  readonly classes: readonly AddressClass[];
  /** Pairs of status and chain length tried per combination of the rest, at most 15. */
  readonly rounds: number;
}

interface Combination {
  readonly scheme: "http" | "https";
  readonly target: string;
  readonly addressClass: AddressClass;
  readonly kind: CredentialKind;
}

export function generateCells(options: CellsOptions): readonly Plan[] {
  return combinations(options).flatMap((combination, at) =>
    Array.from({ length: options.rounds }, (_, round) => {
      // Kind and scheme repeat every six; the quotient keeps status and length from repeating with them.
      const turn = at + Math.floor(at / 6) + round;
      const status = statuses[turn % statuses.length] ?? 302;
      const length = chainLengths[turn % chainLengths.length] ?? 1;
      return cell(combination, options.ports, status, length, turn);
    }),
  );
}

function combinations({ ports, classes }: CellsOptions): readonly Combination[] {
  return Object.keys(targetClasses)
    .flatMap((target) => addressClasses.map((addressClass) => ({ target, addressClass })))
    .filter(({ addressClass }) => classes.includes(addressClass))
    .flatMap((pair) => credentialKinds.map((kind) => ({ ...pair, kind })))
    .flatMap((triple) => (["http", "https"] as const).map((scheme) => ({ ...triple, scheme })))
    .filter((combination) => isSensible(combination, ports));
}

function isSensible({ scheme, target, addressClass }: Combination, ports: Ports): boolean {
  if (target === "default port") return ports.hasDefaults && addressClass === "loopback4";
  // Relative forms start below /api, where a registry on an unsafe address is refused before it can redirect.
  if (target.startsWith("relative")) return !(scheme === "http" && addressClass === "unlisted");
  return true;
}

function cell(combination: Combination, ports: Ports, status: number, length: number, turn: number): Plan {
  const { scheme, target, addressClass, kind } = combination;
  const host = hosts[addressClass];
  const isDefault = target === "default port";
  const port = isDefault ? (scheme === "http" ? 80 : 443) : ports.main;
  const place: Place = { scheme, host, port, otherPort: ports.other };
  const origin = `${scheme}://${host}${isDefault ? "" : `:${port}`}`;
  const goal = targetClasses[target]?.(place, turn) ?? { location: "", means: "" };
  // In clear on an unsafe address nothing in scope is reached, so the way to the target leads past the scope.
  const folder = scheme === "http" && addressClass === "unlisted" ? "/open" : "/api";
  const comesBack = target.startsWith("back ");
  const way = wayTo(
    origin,
    `${scheme}://evil.test:${ports.main}`,
    folder,
    comesBack,
    comesBack ? Math.max(2, length) : length,
  );
  const hops: PlannedHop[] = way.map((url, at) => {
    const next = way[at + 1];
    return { url, redirect: { status, location: next ?? goal.location } };
  });
  return {
    name: `${scheme} ${addressClass}, ${kind}, ${status}, ${hops.length} redirects, ${target}: ${goal.location}`,
    group: target,
    base: `${origin}/api`,
    kind,
    headerName: headerNameFor(kind, turn),
    hops: [...hops, { url: goal.means }],
    ...(target.startsWith("user info") ? { mayStopBefore: [hops.length] } : {}),
    flipsFrom: Math.floor(turn / 2) % 2 === 0 ? "safe" : "unsafe",
  };
}

/** The hops before the target. The last is on the registry's own origin, or elsewhere when the target is the way back. */
function wayTo(
  origin: string,
  elsewhere: string,
  folder: string,
  comesBack: boolean,
  length: number,
): readonly string[] {
  const first = `${origin}${folder}/definitions`;
  const last = comesBack ? `${elsewhere}/api/hop` : `${origin}${folder}/hop?at=1`;
  if (length === 1) return [comesBack ? last : `${origin}${folder}/hop`];
  if (length === 2) return [first, last];
  return [first, `${elsewhere}/api/away`, `${origin}/api-evil/aside`, `${origin}${folder}/hop0`, last];
}
